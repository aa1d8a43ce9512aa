"""Functions φ(u) of one direction u = w·p, and lower bounds on their second derivatives.

The method is the checker's: where a second derivative is known to be monotone, or φ‴ has one sign,
φ″ is least at an end of an interval; elsewhere a Taylor series bounds it, and the interval with the
lowest bound is halved.

>>> from pgeom.certificates.algebra import Graph
>>> from pgeom.certificates.expression import direction_of
>>> g = Graph(3)
>>> x = g.power(g.p(0), 4)
>>> along = direction_of(x, 3)
>>> [float(v) for v in along.w], Ridges(3).lowest([(1, x)], along).bound
([1.0, 0.0, 0.0], 0.0)
"""

import heapq
import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from flint import arb, fmpq

from pgeom.certificates.arithmetics import Series, is_positive
from pgeom.certificates.expression import (
    Node,
    is_affine,
    is_constant,
    is_softplus,
    reachable,
)

Terms = Sequence[tuple[fmpq | int, Node]]  # c·x of a sum
START, END = fmpq(0), fmpq(1)
TYPICAL = fmpq(2, 7)  # a point where no function of interest is flat
POSITIVE = 1e-9  # the least second derivative there of a strictly convex function
TOLERANCE = 5e-4  # of a bound, relative
FINEST = fmpq(1, 2**60)  # width of the narrowest interval
SINGULAR = fmpq(1, 2**16)  # the same, where there is no bound
SLACK = 1e-9  # by which bounds are lowered, relative
LIMIT = 200  # intervals of one bound


class Lowest(NamedTuple):
    """A lower bound on φ″, and a place close to where φ″ is lowest."""

    bound: float
    place: fmpq


class Ridges:
    """Bounds on φ″ for φ(u) = Σ c·x, each computed once for equal functions."""

    def __init__(self, K):
        self.K = K
        self._lowest = {}

    def lowest(self, terms, along, lo=START, hi=END) -> Lowest:
        """A lower bound on φ″ where lo ≤ u ≤ hi, close to the best; −∞ if there is none."""
        key = (_signature(terms, along), lo, hi)
        if key not in self._lowest:
            self._lowest[key] = self._branch_and_bound(terms, along, lo, hi)
        return self._lowest[key]

    def is_convex(self, terms, along):
        """Whether φ″ ≥ 0 is proved."""
        return self.lowest(terms, along).bound >= 0

    def is_strictly_convex(self, terms, along):
        """Whether a φ with φ″ ≥ 0 is strictly convex: analytic, with φ″ > 0 somewhere.

        Then the zeros of φ″ are isolated. It is analytic inside, because a bound on φ″ was found.
        """
        if any(y.op in ("max", "ramp") for _, x in terms for y in reachable(x)):
            return False
        return self._below(terms, along, TYPICAL, TYPICAL) >= POSITIVE

    def is_simple(self, c, x):
        """Whether x is y^r, log y or y·log y of an affine y > 0, max(y, 0)^r, or softplus.

        Constant factors do not count. Their second derivatives are monotone, that of softplus on
        either side of 0; −max(y, 0)^r has one if r ≥ 2.
        """
        if not x.args or not is_affine(x.args[0]) or not all(map(is_constant, x.args[1:])):
            return False
        if x.op == "ramp":
            return x.data[0] >= 2 or c > 0
        powers = x.op in ("mono", "log", "xlogx") and all(is_positive(y, self.K) for y in x.args)
        return powers or is_softplus(x)

    def _branch_and_bound(self, terms, along, lo, hi):
        """Always halve the interval with the lowest bound."""
        best = min(self._above(terms, along, u) for u in (lo, hi))  # at a point
        queue = [(self._below(terms, along, lo, hi), lo, hi)]
        for _ in range(LIMIT):
            lowest, a, b = queue[0]
            middle = (a + b) / 2
            best = min(best, self._above(terms, along, middle))
            finest = SINGULAR if math.isinf(lowest) else FINEST
            if lowest >= best - TOLERANCE * abs(best) or b - a < finest:
                break
            heapq.heapreplace(queue, (self._below(terms, along, a, middle), a, middle))
            heapq.heappush(queue, (self._below(terms, along, middle, b), middle, b))
        bound, a, b = queue[0]
        if math.isfinite(bound):
            bound -= _slack(terms) * abs(bound)
        return Lowest(bound, (a + b) / 2)

    def _above(self, terms, along, u):
        """φ″(u) from above, ∞ where there is none."""
        at = Series([along.point(u)], along.step())
        return -_round_down(-sum((self._second(c, x, at) for c, x in terms), arb(0)))

    def _below(self, terms, along, lo, hi):
        """A lower bound on φ″ by one evaluation, −∞ where there is none."""

        @cache
        def at(*places):
            return Series([along.point(u) for u in places], along.step())

        third = sum((fmpq(c) * at(lo, hi)(x)[3] for c, x in terms), arb(0))
        if len(terms) > 1 and _has_a_sign(third):  # whose shares may cancel
            sums = [sum(self._second(c, x, at(u)) for c, x in terms) for u in (lo, hi)]
            return min(map(_round_down, sums))
        return _round_down(sum(self._term_below(c, x, along, at, lo, hi) for c, x in terms))

    def _term_below(self, c, x, along, at, lo, hi):
        """A lower bound on c·x″."""
        simple, places = self.is_simple(c, x), [lo, hi]
        if simple and is_softplus(x):  # whose second derivative is largest where y = 0
            slope, start = along.relate(x.args[0])
            peak = -start / slope
            places += [peak] if lo < peak < hi else []
        ends = min(_lower(self._second(c, x, at(u))) for u in places)
        change = 6 * fmpq(c) * at(lo, hi)(x)[3]
        if simple or _has_a_sign(change):
            return ends
        around = self._second(c, x, at((lo + hi) / 2)) - abs(change) * ((hi - lo) / 2)
        return max(_lower(self._second(c, x, at(lo, hi))), _lower(around))

    def _second(self, c, x, at):
        """c·x″, at a point where it tends to infinity or zero its limit."""
        c = fmpq(c)
        second = 2 * c * at(x)[2]
        if not second.is_nan() or not self.is_simple(c, x) or len(at.points) > 1:
            return second
        if x.op in ("log", "xlogx"):
            return arb.pos_inf() * (c if x.op == "xlogx" else -c)
        r = x.data[0]
        return arb(0) if x.op == "ramp" or r > 2 else arb.pos_inf() * c * r * (r - 1)


def _has_a_sign(third):
    """Whether φ‴ has one sign, so that φ″ is least at an end."""
    return bool(third >= 0 or third <= 0)


def _slack(terms):
    """By how much a bound is lowered, relative, so that other arithmetic confirms it.

    Whole powers are exact. A checker that halves intervals and takes terms one by one comes close
    to the bound of a sum, or of the closed form of a softplus, only.
    """
    if all(x.op in ("mono", "ramp") and x.data[0].denominator == 1 for _, x in terms):
        return 0.0
    return TOLERANCE if len(terms) > 1 or is_softplus(terms[0][1]) else SLACK


def _lower(x):
    return arb.neg_inf() if x.is_nan() else x.lower()


def _round_down(x):
    """The lower end as a float that does not exceed it."""
    value = float(_lower(x))
    if math.isinf(value) or arb(value) <= _lower(x):
        return value
    return math.nextafter(value, -math.inf)


def _signature(terms, along):
    """The same for functions that are equal as functions of u."""
    known = {}
    for x in (y for _, root in terms for y in reachable(root)):
        if is_affine(x):
            known[x] = along.relate(x)
        else:
            known[x] = (x.op, x.data, *map(known.get, x.args))
    return tuple(sorted((str(c), str(known[x])) for c, x in terms))
