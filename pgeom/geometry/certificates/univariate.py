"""Functions of one variable with their first two derivatives, on intervals.

>>> from pgeom.geometry.certificates.enclosures import interval
>>> [str(x) for x in derivatives("exp", interval(0, 0), ())]
['[1, 1]', '[1, 1]', '[1, 1]']
"""

from collections.abc import Callable
from fractions import Fraction

from flint import arb, arb_series

from pgeom.geometry.certificates import enclosures as on
from pgeom.geometry.certificates.enclosures import NOTHING, UNIT, ZERO, Interval, exactly

Triple = tuple[Interval, Interval, Interval]


def derivatives(op: str, x: Interval, data: tuple) -> Triple:
    """The ranges of f, f′ and f″ over x."""
    if op == "ramp":
        return ramp(x, data[0])
    return power(x, data[0]) if op == "mono" else FUNCTIONS[op](x)


def ramp(x: Interval, r: Fraction) -> Triple:
    """max(x, 0)^r for r > 1; f″ jumps at 0 if r ≤ 2, which no bound on it minds."""
    above = Interval(max(x.lo, ZERO), max(x.hi, ZERO))
    value, first, second = power(above, r)
    if x.hi <= 0:
        return value, first, NOTHING
    return value, first, second if x.lo > 0 else second.hull(NOTHING)


def power(x: Interval, r: Fraction) -> Triple:
    first, second = exactly(r), exactly(r * (r - 1))
    slope = first * on.power(x, r - 1) if r != 1 else UNIT
    return on.power(x, r), slope, second * on.power(x, r - 2) if second.hi != 0 else second


def _exp(x: Interval) -> Triple:
    value = on.exp(x)
    return value, value, value


def _log(x: Interval) -> Triple:
    slope = on.power(x, Fraction(-1))
    return on.log(x), slope, -on.power(x, Fraction(-2))


def _xlogx(x: Interval) -> Triple:
    if not x.lo >= 0:
        raise on.Undefined("log of a negative number")
    lowest = (-arb(1)).exp()
    ends = [ZERO if e == 0 else e * e.log() for e in (x.lo, x.hi)]
    inside = x.lo < lowest and not x.hi < lowest.lower()
    lo = (-lowest).lower() if inside else min(e.lower() for e in ends)
    value = Interval(lo, max(e.upper() for e in ends))
    return value, UNIT + on.log(x), on.power(x, Fraction(-1))


def _sin(x: Interval) -> Triple:
    value = on.waves(arb.sin, x)
    return value, on.waves(arb.cos, x), -value


def _cos(x: Interval) -> Triple:
    value = on.waves(arb.cos, x)
    return value, -on.waves(arb.sin, x), -value


def _softplus(x: Interval) -> Triple:
    up = on.exp(x)
    share = on.power(UNIT + on.exp(-x), Fraction(-1))
    ends = [e * (1 - e) for e in (share.lo, share.hi)]
    most = arb(1) / 4 if x.lo <= 0 and x.hi >= 0 else max(e.upper() for e in ends)
    return on.log(UNIT + up), share, Interval(max(ZERO, min(e.lower() for e in ends)), most)


def _in_a_ball(f: Callable[[arb_series], arb_series]) -> Callable[[Interval], Triple]:
    """By Arb's own enclosures around the whole interval."""

    def triple(x: Interval) -> Triple:
        if not x.finite:
            raise on.Undefined("a function of an infinite number")
        value = f(arb_series([x.lo.union(x.hi), 1], prec=3))
        return on.enclosure(value[0]), on.enclosure(value[1]), on.enclosure(2 * value[2])

    return triple


FUNCTIONS: dict[str, Callable[[Interval], Triple]] = {
    "exp": _exp,
    "log": _log,
    "xlogx": _xlogx,
    "sin": _sin,
    "cos": _cos,
    "softplus": _softplus,
    "tan": _in_a_ball(arb_series.tan),
    "atan": _in_a_ball(arb_series.atan),
    "erf": _in_a_ball(arb_series.erf),
}
