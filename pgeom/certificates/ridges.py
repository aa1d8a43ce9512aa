"""Functions φ(u) of one direction u = w·p, and rigorous bounds on their second derivatives.

>>> from pgeom.certificates.algebra import Graph
>>> g = Graph(3)
>>> x = g.power(g.p(0), 4)
>>> along = direction_of(x, 3)
>>> [float(v) for v in along.w], Ridges(3).lower_bound([(1, x)], along)
([1.0, 0.0, 0.0], 0.0)
"""

import heapq
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from flint import arb, arb_series, fmpq

from pgeom.certificates.arithmetics import (
    ZERO,
    Interval,
    Intervals,
    Series,
    Undefined,
    exactly,
    interval_exp,
    interval_power,
    is_positive,
)
from pgeom.certificates.expression import (
    Direction,
    Node,
    direction_of,
    is_affine,
    is_constant,
    is_softplus,
    rational,
    reachable,
)

__all__ = ["Ridges", "direction_of"]

Terms = Sequence[tuple[Fraction | int, Node]]  # c·x of a sum
START, END = fmpq(0), fmpq(1)
TYPICAL = fmpq(2, 7)  # a point where no function of interest is flat
POSITIVE = 1e-9  # the least second derivative there of a strictly convex function
PROBES = fmpq(1, 16), fmpq(1, 2), fmpq(15, 16)  # where a second derivative may be negative
TOLERANCE = 5e-4  # of a bound, relative
FINEST = fmpq(1, 2**60)  # width of the narrowest interval
SINGULAR = fmpq(1, 2**16)  # the same, where there is no bound
SLACK = 1e-9  # by which bounds are lowered, relative
LIMIT = 200  # intervals of one bound
POWERS = {"log": (-1, -2), "xlogx": (1, -1)}  # (c, r): the second derivative is c·y^r
NOTHING, ONE = Interval.between(0, 0), Interval.between(1, 1)


class Lowest(NamedTuple):
    """A lower bound on φ″, and a place close to where φ″ is lowest."""

    bound: float
    place: float


class Ridges:
    """Bounds on φ″ for φ(u) = Σ c·x, each computed once for equal functions."""

    def __init__(self, K: int):
        self.K = K
        self._constants = Intervals(K)
        self._lowest: dict[tuple, Lowest] = {}

    def lower_bound(
        self, terms: Terms, along: Direction, lo: fmpq = START, hi: fmpq = END
    ) -> float:
        """A lower bound on φ″ where lo ≤ u ≤ hi, close to the best; −∞ if there is none."""
        return self.lowest(terms, along, lo, hi).bound

    def lowest(self, terms: Terms, along: Direction, lo: fmpq = START, hi: fmpq = END) -> Lowest:
        key = (_signature(terms, along), lo, hi)
        if key not in self._lowest:
            self._lowest[key] = self._branch_and_bound(terms, along, lo, hi)
        return self._lowest[key]

    def is_convex(self, terms: Terms, along: Direction) -> bool:
        """Whether φ″ ≥ 0 is proved."""
        if any(self._largest(terms, along, u) < 0 for u in PROBES):
            return False  # before a bound is computed in vain
        return self.lower_bound(terms, along) >= 0

    def is_strictly_convex(self, terms: Terms, along: Direction) -> bool:
        """Whether a φ with φ″ ≥ 0 is strictly convex: analytic, with φ″ > 0 somewhere.

        Then the zeros of φ″ are isolated. It is analytic inside, because a bound on φ″ was found.
        """
        if any(y.op in ("max", "ramp") for _, x in terms for y in reachable(x)):
            return False
        return round_down(self._second(terms, along, TYPICAL, TYPICAL)) >= POSITIVE

    def is_simple(self, c: Fraction | int, x: Node) -> bool:
        """Whether x is y^r, log y or y·log y of an affine y > 0, max(y, 0)^r, or softplus.

        Constant factors do not count. Their second derivatives are monotone, that of softplus on
        either side of 0; −max(y, 0)^r has one if r ≥ 2.
        """
        if not x.args or not is_affine(x.args[0]) or not all(map(is_constant, x.args[1:])):
            return False
        if x.op == "ramp":
            return x.data[0] >= 2 or c > 0
        powers = x.op in ("mono", *POWERS) and all(is_positive(y, self.K) for y in x.args)
        return powers or is_softplus(x)

    def _branch_and_bound(self, terms: Terms, along: Direction, lo: fmpq, hi: fmpq) -> Lowest:
        """Always halve the interval with the lowest bound."""

        def below(lo: fmpq, hi: fmpq) -> float:
            try:
                return round_down(self._second(terms, along, lo, hi))
            except Undefined:
                return -math.inf

        best = min(self._largest(terms, along, u) for u in (lo, hi))  # at a point
        queue = [(below(lo, hi), lo, hi)]
        for _ in range(LIMIT):
            lowest, a, b = queue[0]
            middle = (a + b) / 2
            best = min(best, self._largest(terms, along, middle))
            finest = SINGULAR if math.isinf(lowest) else FINEST
            if lowest >= best - TOLERANCE * abs(best) or b - a < finest:
                break
            heapq.heapreplace(queue, (below(a, middle), a, middle))
            heapq.heappush(queue, (below(middle, b), middle, b))
        bound, a, b = queue[0]
        if math.isfinite(bound):
            bound -= _slack(terms) * abs(bound)
        return Lowest(bound, float(arb((a + b) / 2)))

    def _largest(self, terms: Terms, along: Direction, u: fmpq) -> float:
        """φ″(u) from above, ∞ where there is none."""
        try:
            return -round_down(-self._second(terms, along, u, u))
        except Undefined:
            return math.inf

    def _second(self, terms: Terms, along: Direction, lo: fmpq, hi: fmpq) -> Interval:
        """The range of φ″ by one evaluation; `Undefined` where φ is not."""
        step = along.step()

        def at(*places: fmpq) -> Series:
            return Series([along.point(u) for u in places], step)

        hull = at(lo, hi)
        if lo < hi and len(terms) > 1 and _has_a_sign(_coefficient(terms, hull, 3)):
            first, last = (_interval(2 * _coefficient(terms, at(u), 2)) for u in (lo, hi))
            return first.hull(last)
        total = NOTHING
        for c, x in terms:
            if self.is_simple(c, x):
                second = self._simple_second(x, along, lo, hi)
            else:
                second = _taylor_second(x, hull(x), at, lo, hi)
            total = total + exactly(Fraction(c)) * second
        return total

    def _simple_second(self, x: Node, along: Direction, lo: fmpq, hi: fmpq) -> Interval:
        """The range of φ″ of a simple x, whose first argument is αu + β."""
        alpha, beta = along.relate(x.args[0])
        values = [rational(alpha) * u + rational(beta) for u in (lo, hi)]
        y = Interval.between(min(values), max(values))
        square = exactly(alpha**2)
        if is_softplus(x):
            return _softplus_second(y) * square
        factor, r = POWERS.get(x.op) or (x.data[0] * (x.data[0] - 1), x.data[0] - 2)
        if factor == 0 or (x.op == "ramp" and y.hi <= 0):
            return NOTHING
        second = interval_power(Interval(max(y.lo, ZERO), y.hi), Fraction(r))
        if x.op == "ramp" and y.lo <= 0:
            second = second.hull(NOTHING)  # it jumps at 0 if r ≤ 2
        second = exactly(Fraction(factor)) * second * square
        for z, s in zip(x.args[1:], x.data[1:], strict=True):
            second = second * interval_power(self._constants(z), s)
        return second


def _softplus_second(y: Interval) -> Interval:
    """s·(1 − s) for s = 1/(1 + e^{−y}), which is largest at 0."""
    share = interval_power(ONE + interval_exp(-y), Fraction(-1))
    ends = [e * (1 - e) for e in (share.lo, share.hi)]
    largest = arb(1) / 4 if y.lo <= 0 <= y.hi else max(e.upper() for e in ends)
    return Interval(max(ZERO, min(e.lower() for e in ends)), largest)


def _taylor_second(
    x: Node, hull: arb_series, at: Callable[..., Series], lo: fmpq, hi: fmpq
) -> Interval:
    """The range of φ″ from its Taylor series on a hull: at the ends if φ‴ has one sign there.

    Otherwise around the middle, where φ‴ bounds how far φ″ is from its value.
    """
    direct = _interval(2 * hull[2])
    if lo == hi or not hull[3].is_finite():
        return direct
    if _has_a_sign(hull[3]):
        first, last = (_interval(2 * at(u)(x)[2]) for u in (lo, hi))
        return first.hull(last)
    middle, change = 2 * at((lo + hi) / 2)(x)[2], abs(6 * hull[3]) * ((hi - lo) / 2)
    around = Interval(middle - change, middle + change)
    return Interval(max(direct.lo, around.lo), min(direct.hi, around.hi))


def _interval(ball: arb) -> Interval:
    return Interval(ball, ball)


def _coefficient(terms: Terms, at: Series, order: int) -> arb:
    """A coefficient of the Taylor series of Σ c·x."""
    return sum((at(x)[order] * rational(Fraction(c)) for c, x in terms), arb(0))


def _has_a_sign(third: arb) -> bool:
    """Whether φ‴ has one sign, so that φ″ is least at an end."""
    return bool(third >= 0 or third <= 0)


def _slack(terms: Terms) -> float:
    """By how much a bound is lowered, relative, so that other arithmetic confirms it.

    Whole powers are exact. A checker that halves intervals and takes terms one by one comes close
    to the bound of a sum, or of the closed form of a softplus, only.
    """
    if all(x.op in ("mono", "ramp") and x.data[0] % 1 == 0 for _, x in terms):
        return 0.0
    return TOLERANCE if len(terms) > 1 or is_softplus(terms[0][1]) else SLACK


def round_down(x: Interval) -> float:
    """The lower end as a float that does not exceed it."""
    value = float(x.lo)
    if math.isinf(value) or arb(value) <= x.lo:
        return value
    return math.nextafter(value, -math.inf)


def _signature(terms: Terms, along: Direction) -> tuple:
    """The same for functions that are equal as functions of u."""
    known: dict[Node, tuple] = {}
    for x in (y for _, root in terms for y in reachable(root)):
        inner = ("u", along.relate(x)) if is_affine(x) else (x.op, x.data)
        known[x] = (*inner, *(() if is_affine(x) else (known[y] for y in x.args)))
    return tuple(sorted((str(c), str(known[x])) for c, x in terms))
