"""Functions of one direction u = w·p, and rigorous bounds on their second derivatives.

>>> from pgeom.geometry.certificates.algebra import Graph
>>> from pgeom.geometry.certificates.ranges import Ranges
>>> g = Graph(3)
>>> x = g.power(g.p(0), 4)
>>> along = direction_of(x, 3)
>>> [float(v) for v in along.w], Ridges(Ranges(3)).least_bend([(1, x)], along)
([1.0, 0.0, 0.0], 0.0)
"""

import heapq
import math
from collections.abc import Sequence
from fractions import Fraction

from flint import arb, fmpq

from pgeom.geometry.certificates.enclosures import (
    NOTHING,
    Interval,
    Undefined,
    enclosure,
    exactly,
)
from pgeom.geometry.certificates.expression import Node, is_affine
from pgeom.geometry.certificates.frames import END, START, Direction, Ridge, direction
from pgeom.geometry.certificates.jets import Jets
from pgeom.geometry.certificates.ranges import Ranges
from pgeom.geometry.certificates.series import Series

Terms = Sequence[tuple[Fraction | int, Node]]
TYPICAL = fmpq(2, 7), fmpq(5, 7)  # points where no function of interest is flat
TOLERANCE = 1e-4  # of the bound, relative
FINEST = fmpq(1, 2**60)  # width of the narrowest interval
SLACK = 1e-9  # by which the bound of other functions than powers is lowered, relative
MOST = 400  # intervals of one bound


def directions(x: Node, K: int) -> set[Direction]:
    """The directions that x depends on."""
    found = set()
    todo, seen = [x], set()
    while todo:
        y = todo.pop()
        if y in seen:
            continue
        seen.add(y)
        if is_affine(y):
            if (along := direction(y, K)) is not None:
                found.add(along)
        else:
            todo += y.args
    return found


def direction_of(x: Node, K: int) -> Direction | None:
    """The direction that x is a function of, None if there are several or none."""
    found = directions(x, K)
    return found.pop() if len(found) == 1 else None


class Ridges:
    """Bounds on φ″ for φ(u) = Σ c·x, each computed once for equal functions."""

    def __init__(self, ranges: Ranges):
        self.ranges = ranges
        self._bounds: dict[tuple, tuple[float, float]] = {}

    def least_bend(self, terms: Terms, along: Direction, lo: fmpq = START, hi: fmpq = END) -> float:
        """A lower bound on φ″ where lo ≤ u ≤ hi, close to the best; −∞ if there is none."""
        return self._lowest(terms, along, lo, hi)[0]

    def lowest_place(self, terms: Terms, along: Direction) -> float | None:
        """The u where φ″ is lowest, if it may be negative."""
        bound, place = self._lowest(terms, along, START, END)
        return place if bound < 0 else None

    def _lowest(self, terms: Terms, along: Direction, lo: fmpq, hi: fmpq) -> tuple[float, float]:
        key = (signature(terms, along), lo, hi)
        if key not in self._bounds:
            self._bounds[key] = self._least_bend(terms, along, lo, hi)
        return self._bounds[key]

    def bend(self, terms: Terms, along: Direction, lo: fmpq, hi: fmpq) -> Interval:
        """The range of φ″ by one interval evaluation; `Undefined` where φ is not."""
        jets = Jets(Ridge(along, lo, hi), self.ranges)
        series = Series([along.point(lo), along.point(hi)], along.step())
        total = NOTHING
        for c, x in terms:
            bend = jets(x).bend if is_simple(x) else enclosure(2 * series(x)[2])
            total = total + exactly(Fraction(c)) * bend
        return total

    def _least_bend(
        self, terms: Terms, along: Direction, lo: fmpq, hi: fmpq
    ) -> tuple[float, float]:
        """By branch and bound: always halve the interval with the lowest bound."""

        def below(lo: fmpq, hi: fmpq) -> float:
            try:
                return round_down(self.bend(terms, along, lo, hi))
            except Undefined:
                return -math.inf

        def at(u: fmpq) -> float:
            try:
                return -round_down(-self.bend(terms, along, u, u))
            except Undefined:
                return math.inf

        best = min(at(lo), at(hi))  # the least value at a point
        queue = [(below(lo, hi), lo, hi)]
        for _ in range(MOST):
            lowest, a, b = queue[0]
            middle = (a + b) / 2
            best = min(best, at(middle))
            gap = TOLERANCE * abs(best)
            if lowest >= best - gap or b - a < FINEST:
                break
            heapq.heapreplace(queue, (below(a, middle), a, middle))
            heapq.heappush(queue, (below(middle, b), middle, b))
        bound, a, b = queue[0]
        place = (a + b) / 2
        if not is_exact(terms):  # so that other roundings than these confirm it, too
            bound -= SLACK * abs(bound)
        return bound, int(place.p) / int(place.q)

    def is_convex(self, terms: Terms, along: Direction) -> bool:
        """Whether φ″ ≥ 0 is proved; φ″ = 0 at a point is, for sums of powers."""
        least = self.least_bend(terms, along)
        return least > 0 or (least == 0 and is_exact(terms))

    def is_strict(self, terms: Terms, along: Direction) -> bool:
        """Whether a φ with φ″ ≥ 0 is strictly convex: analytic, with φ″ > 0 somewhere.

        Then the zeros of φ″ are isolated.
        """
        if any(x.op == "ramp" for _, x in terms):
            return False
        return all(round_down(self.bend(terms, along, u, u)) > 0 for u in TYPICAL)


def is_simple(x: Node) -> bool:
    """Whether x is x^r, log x, x·log x, max(x, 0)^r or softplus of an affine x.

    Their second derivatives are monotone, that of softplus on either side of 0.
    """
    single = len(x.args) == 1 and is_affine(x.args[0])
    return single and x.op in ("mono", "log", "xlogx", "ramp", "softplus")


def is_exact(terms: Terms) -> bool:
    """Whether a bound on φ″ is attained by all that bound it: of powers and logarithms."""
    return all(is_simple(x) and x.op != "softplus" for _, x in terms)


def round_down(x: Interval) -> float:
    """The lower end as a float that does not exceed it."""
    value = float(x.lo)
    if math.isinf(value) or arb(value) <= x.lo:
        return value
    return math.nextafter(value, -math.inf)


def signature(terms: Terms, along: Direction) -> tuple:
    """The same for functions that are equal as functions of u."""
    known: dict[Node, tuple] = {}

    def sign(x: Node) -> tuple:
        if x not in known:
            known[x] = (
                ("u", along.relate(x))
                if is_affine(x)
                else (x.op, x.data, tuple(sign(y) for y in x.args))
            )
        return known[x]

    return tuple(sorted((str(c), str(sign(x))) for c, x in terms))
