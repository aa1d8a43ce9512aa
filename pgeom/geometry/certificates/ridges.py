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

from flint import arb, arb_series, fmpq

from pgeom.geometry.certificates.enclosures import (
    NOTHING,
    Interval,
    Undefined,
    enclosure,
    exactly,
)
from pgeom.geometry.certificates.expression import Node, is_affine, is_constant, reachable
from pgeom.geometry.certificates.frames import (
    END,
    START,
    Direction,
    Ridge,
    direction,
    rational,
)
from pgeom.geometry.certificates.jets import Jets
from pgeom.geometry.certificates.ranges import Ranges
from pgeom.geometry.certificates.series import Series, is_positive

Terms = Sequence[tuple[Fraction | int, Node]]
TYPICAL = fmpq(2, 7)  # a point where no function of interest is flat
POSITIVE = 1e-9  # by how much it bends there
PROBES = fmpq(1, 16), fmpq(1, 2), fmpq(15, 16)  # points where a bend may be negative
TOLERANCE = 5e-4  # of the bound, relative
FINEST = fmpq(1, 2**60)  # width of the narrowest interval
SINGULAR = fmpq(1, 2**16)  # the same, where there is no bound
SLACK = 1e-9  # by which bounds are lowered, relative
MOST = 200  # intervals of one bound


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
        series = Series([along.point(lo), along.point(hi)], along.step())
        if lo < hi and len(terms) > 1 and _is_monotone(terms, series):
            ends = [Series([along.point(u)], along.step()) for u in (lo, hi)]
            first, last = (enclosure(2 * _sum(terms, at, 2)) for at in ends)
            return first.hull(last)
        jets = Jets(Ridge(along, lo, hi), self.ranges)
        total = NOTHING
        for c, x in terms:
            simple = is_simple(c, x, self.ranges.K)
            bend = jets(x).bend if simple else _taylor_bend(x, series(x), along, lo, hi)
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
            finest = SINGULAR if math.isinf(lowest) else FINEST
            if lowest >= best - gap or b - a < finest:
                break
            heapq.heapreplace(queue, (below(a, middle), a, middle))
            heapq.heappush(queue, (below(middle, b), middle, b))
        bound, a, b = queue[0]
        place = (a + b) / 2
        if math.isfinite(bound):
            bound -= _slack(terms) * abs(bound)
        return bound, int(place.p) / int(place.q)

    def is_convex(self, terms: Terms, along: Direction) -> bool:
        """Whether φ″ ≥ 0 is proved."""
        if any(self._falls(terms, along, u) for u in PROBES):  # before a bound is computed in vain
            return False
        least = self.least_bend(terms, along)
        return least >= 0

    def _falls(self, terms: Terms, along: Direction, u: fmpq) -> bool:
        try:
            return bool(self.bend(terms, along, u, u).hi < 0)
        except Undefined:
            return False

    def is_strict(self, terms: Terms, along: Direction) -> bool:
        """Whether a φ with φ″ ≥ 0 is strictly convex: analytic, with φ″ > 0 somewhere.

        Then the zeros of φ″ are isolated. It is analytic inside, because a bound on φ″ was found.
        """
        if any(y.op in ("max", "ramp") for _, x in terms for y in reachable(x)):
            return False
        return round_down(self.bend(terms, along, TYPICAL, TYPICAL)) >= POSITIVE


def _sum(terms: Terms, at: Series, order: int) -> arb:
    """A coefficient of the Taylor series of Σ c·x."""
    return sum((at(x)[order] * rational(Fraction(c)) for c, x in terms), arb(0))


def _is_monotone(terms: Terms, at: Series) -> bool:
    """Whether φ‴ has one sign, so that φ″ is least at an end."""
    third = _sum(terms, at, 3)
    return bool(third >= 0 or third <= 0)


def _slack(terms: Terms) -> float:
    """By how much a bound is lowered, relative, so that other arithmetic confirms it.

    Whole powers are exact. A checker that halves intervals and takes terms one by one comes close
    to the bound of a sum, or of the closed form of a softplus, only.
    """
    if all(x.op in ("mono", "ramp") and x.data[0] % 1 == 0 for _, x in terms):
        return 0.0
    return TOLERANCE if len(terms) > 1 or terms[0][1].op == "softplus" else SLACK


def _taylor_bend(x: Node, known: arb_series, along: Direction, lo: fmpq, hi: fmpq) -> Interval:
    """The range of φ″ from its Taylor series on [lo, hi]: at the ends if φ‴ has one sign there.

    Otherwise around the middle, where φ‴ bounds how far φ″ is from its value.
    """

    def at(u: fmpq) -> arb:
        return 2 * Series([along.point(u)], along.step())(x)[2]

    direct = enclosure(2 * known[2])
    if lo == hi or not known[3].is_finite():
        return direct
    if known[3] >= 0 or known[3] <= 0:
        return enclosure(at(lo)).hull(enclosure(at(hi)))
    middle, change = at((lo + hi) / 2), abs(6 * known[3]) * ((hi - lo) / 2)
    below, above = enclosure(middle - change), enclosure(middle + change)
    return Interval(max(direct.lo, below.lo), min(direct.hi, above.hi))


def is_simple(c: Fraction | int, x: Node, K: int) -> bool:
    """Whether x is y^r, log y or y·log y of an affine y > 0, max(y, 0)^r, or softplus.

    Constant factors do not count. Their second derivatives are monotone, that of softplus on either
    side of 0; −max(y, 0)^r has one if r ≥ 2.
    """
    if not x.args or not is_affine(x.args[0]) or not all(map(is_constant, x.args[1:])):
        return False
    if x.op in ("ramp", "softplus"):
        return x.op == "softplus" or x.data[0] >= 2 or c > 0
    return x.op in ("mono", "log", "xlogx") and all(is_positive(y, K) for y in x.args)


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
