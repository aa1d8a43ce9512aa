"""Intervals with endpoints from Arb, rounded outwards.

Endpoints rather than a midpoint and a radius: [0, h] stays nonnegative under products, and an end
may be infinite. Wherever a function is not defined on the whole interval, `Undefined` is raised.

>>> x = interval(0, 1) * interval(2, 3)
>>> float(x.lo), float(x.hi)
(0.0, 3.0)
>>> float(power(interval(-1, 2), Fraction(2)).lo)
0.0
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import flint
from flint import arb

INFINITY, ZERO = arb.pos_inf(), arb(0)


class Undefined(ArithmeticError):
    """A function was applied outside its domain."""


class Interval:
    """All numbers from lo to hi; endpoints are exact and may be infinite."""

    __slots__ = ("hi", "lo")

    def __init__(self, lo: arb, hi: arb):
        self.lo, self.hi = lo, hi

    def __repr__(self) -> str:
        return f"[{float(self.lo):.6g}, {float(self.hi):.6g}]"

    def __add__(self, other: "Interval") -> "Interval":
        return Interval(_down(self.lo + other.lo), _up(self.hi + other.hi))

    def __neg__(self) -> "Interval":
        return Interval(-self.hi, -self.lo)

    def __sub__(self, other: "Interval") -> "Interval":
        return self + -other

    def __mul__(self, other: "Interval") -> "Interval":
        a, b, c, d = self.lo, self.hi, other.lo, other.hi
        if a >= 0 and c >= 0:
            return Interval(_product(a, c).lower(), _product(b, d).upper())
        products = [_product(x, y) for x in (a, b) for y in (c, d)]
        return Interval(min(x.lower() for x in products), max(x.upper() for x in products))

    def hull(self, other: "Interval") -> "Interval":
        return Interval(min(self.lo, other.lo), max(self.hi, other.hi))

    @property
    def finite(self) -> bool:
        return bool(self.lo.is_finite() and self.hi.is_finite())


def _product(x: arb, y: arb) -> arb:
    """x·y with 0·∞ = 0: an infinite end is never attained."""
    return ZERO if x == 0 or y == 0 else x * y


def _down(x: arb) -> arb:
    return -INFINITY if x.is_nan() else x.lower()


def _up(x: arb) -> arb:
    return INFINITY if x.is_nan() else x.upper()


def between(lo: flint.fmpq, hi: flint.fmpq) -> "Interval":
    """From one rational number to another."""
    return Interval(arb(lo).lower(), arb(hi).upper())


@cache
def exactly(value: Fraction) -> Interval:
    """The interval of one rational number, as narrow as the precision allows."""
    ball = arb(flint.fmpq(value.numerator, value.denominator))
    return Interval(ball.lower(), ball.upper())


def interval(lo: Fraction | int, hi: Fraction | int) -> Interval:
    return Interval(exactly(Fraction(lo)).lo, exactly(Fraction(hi)).hi)


def enclosure(ball: arb) -> Interval:
    """The ends of a ball; of NaN all numbers."""
    return Interval(_down(ball), _up(ball))


NOTHING, UNIT = exactly(Fraction(0)), exactly(Fraction(1))


def increasing(f: Callable[[arb], arb], x: Interval) -> Interval:
    """The values of an increasing function."""
    return Interval(_down(f(x.lo)), _up(f(x.hi)))


def decreasing(f: Callable[[arb], arb], x: Interval) -> Interval:
    return Interval(_down(f(x.hi)), _up(f(x.lo)))


def exp(x: Interval) -> Interval:
    return Interval(ZERO if x.lo == -INFINITY else x.lo.exp().lower(), _up(x.hi.exp()))


def log(x: Interval) -> Interval:
    if not x.lo >= 0:
        raise Undefined("log of a negative number")
    lo = -INFINITY if x.lo == 0 else x.lo.log().lower()
    return Interval(lo, -INFINITY if x.hi == 0 else _up(x.hi.log()))


def power(x: Interval, r: Fraction) -> Interval:
    """x^r; at 0 with a negative exponent infinite, and undefined for roots of negative numbers."""
    if r == 0:
        return UNIT
    whole = r.denominator == 1
    if x.lo >= 0:
        ends = _power(x.lo, r), _power(x.hi, r)
        lo, hi = ends if r > 0 else ends[::-1]
        return Interval(lo.lower(), hi.upper())
    if not whole or (r < 0 and not x.hi < 0):
        raise Undefined(f"power {r} of a number that may be negative or zero")
    if not x.finite:
        return Interval(ZERO if r % 2 == 0 else -INFINITY, INFINITY)
    if x.hi <= 0 or r % 2 == 1:
        ends = [arb(e) ** int(r) for e in (x.lo, x.hi)]
        return Interval(min(e.lower() for e in ends), max(e.upper() for e in ends))
    return Interval(ZERO, max((e ** int(r)).upper() for e in (x.lo, x.hi)))


def _power(x: arb, r: Fraction) -> arb:
    """x^r of an exact x ≥ 0."""
    if x == 0 or x == INFINITY:
        return ZERO if (x == 0) == (r > 0) else INFINITY
    if r.denominator == 1:
        return x ** int(r)
    if r.denominator == 2 and abs(r.numerator) == 1:
        return x.sqrt() if r > 0 else x.rsqrt()
    return x ** arb(flint.fmpq(r.numerator, r.denominator))


def waves(f: Callable[[arb], arb], x: Interval) -> Interval:
    """sin or cos, by Arb's own enclosure of the ball around x."""
    if not x.finite:
        return Interval(arb(-1), arb(1))
    value = f(x.lo.union(x.hi))
    return Interval(max(value.lower(), arb(-1)), min(value.upper(), arb(1)))
