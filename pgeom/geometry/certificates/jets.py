"""Values and first two derivatives of an expression along a line, over a region, as intervals.

>>> from pgeom.geometry.certificates.algebra import Graph
>>> from pgeom.geometry.certificates.frames import Ridge, direction
>>> g = Graph(2)
>>> along = direction(g.p(0), 2)
>>> Jets(Ridge(along, START, END))(g.power(g.p(0), 3))
Jet(value=[0, 1], slope=[0, 3], bend=[0, 6])
"""

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from pgeom.geometry.certificates import enclosures as on
from pgeom.geometry.certificates.enclosures import INFINITY, NOTHING, Interval, exactly
from pgeom.geometry.certificates.expression import Node, are_opposite, is_affine, reachable
from pgeom.geometry.certificates.frames import END, START, Region
from pgeom.geometry.certificates.univariate import derivatives

__all__ = ["END", "START", "Jet", "Jets"]

if TYPE_CHECKING:  # which imports this module
    from pgeom.geometry.certificates.ranges import Ranges


class Jet(NamedTuple):
    """What a function does along a line, over a region.

    Attributes:
      value: its range.
      slope: the range of its derivative.
      bend: that of its second derivative. Where slopes jump, the upper end is infinite: they jump
        upwards, and downwards only where the lower end is infinite.
    """

    value: Interval
    slope: Interval = NOTHING
    bend: Interval = NOTHING


class Jets:
    """Evaluates nodes on one region, each of them once."""

    def __init__(self, region: Region, ranges: "Ranges | None" = None):
        """`ranges` is what is known on the whole simplex; without it there are values alone."""
        self.region, self.ranges = region, ranges
        self._known: dict[Node, Jet] = {}

    def __call__(self, x: Node) -> Jet:
        if x not in self._known:
            for y in reachable(x):
                if y not in self._known:
                    self._known[y] = self._evaluate(y)
        return self._known[x]

    def _evaluate(self, x: Node) -> Jet:
        if is_affine(x):
            return Jet(*self.region.affine(x))
        if self.ranges is not None:
            self.ranges.require_smooth(x)
        args = [self._known[y] for y in x.args]
        if x.op == "lin":
            factors = [exactly(c) for c in x.data[1:]]
            return total(exactly(x.data[0]), list(zip(factors, args, strict=True)))
        if x.op == "mono":
            powers = [apply("mono", y, (r,)) for y, r in zip(args, x.data, strict=True)]
            result = powers[0]
            for other in powers[1:]:
                result = product(result, other)
            return result
        if x.op == "quadratic":
            pairs = zip(x.data, ((y, z) for y in args for z in args), strict=True)
            return total(NOTHING, [(exactly(q), product(*pair)) for q, pair in pairs if q])
        if x.op == "lse":
            return self._log_sum_exp(x, args)
        if x.op == "max":
            top = largest(args)
            either = len(x.args) == 2 and are_opposite(*x.args)  # |x| ≥ 0
            floor = max(top.value.lo, on.ZERO) if either else top.value.lo
            return top._replace(value=Interval(floor, top.value.hi))
        return apply(x.op, args[0], x.data)

    def _log_sum_exp(self, x: Node, args: list[Jet]) -> Jet:
        grown = [(exactly(c), apply("exp", y, ())) for c, y in zip(x.data, args, strict=True)]
        return apply("log", total(NOTHING, grown), ())


def total(const: Interval, pairs: list[tuple[Interval, Jet]]) -> Jet:
    """const + Σ factor·jet."""
    value, slope, bend = const, NOTHING, NOTHING
    for factor, jet in pairs:
        value, slope = value + factor * jet.value, slope + factor * jet.slope
        bend = bend + factor * jet.bend
    return Jet(value, slope, bend)


def product(x: Jet, y: Jet) -> Jet:
    for a, b in ((x.value, y.value), (y.value, x.value)):
        if a.lo == a.hi == 0 and not b.finite:
            raise on.Undefined("0·∞")  # on a face, where it says nothing about the limit
    cross = x.slope * y.slope
    bend = x.value * y.bend + y.value * x.bend + cross + cross
    return Jet(x.value * y.value, x.value * y.slope + y.value * x.slope, bend)


def apply(op: str, x: Jet, data: tuple) -> Jet:
    """f(x) by the chain rule."""
    if op == "mono" and data == (1,):
        return x
    value, first, second = derivatives(op, x.value, data)
    return Jet(value, first * x.slope, first * x.bend + second * on.power(x.slope, Fraction(2)))


def largest(args: list[Jet]) -> Jet:
    """The maximum; where more than one argument may be the largest, slopes may jump upwards."""
    lo = max(x.value.lo for x in args)
    able = [x for x in args if not x.value.hi < lo]
    if len(able) == 1:
        return able[0]
    slope, least = able[0].slope, able[0].bend.lo
    for x in able[1:]:
        slope, least = slope.hull(x.slope), min(least, x.bend.lo)
    value = Interval(lo, max(x.value.hi for x in args))
    return Jet(value, slope, Interval(least, INFINITY))
