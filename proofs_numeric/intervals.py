"""Interval arithmetic with outward rounding, and a derivative carried along; arrays of intervals.

IEEE addition, multiplication and square root are correctly rounded, so that the next float64 below
and above encloses the exact result.

>>> x = variable(np.array([0.0]), np.array([0.5]), slope=1.0)
>>> product = x * (1 - x)
>>> bool(product.low[0] <= 0.0 and 0.25 <= product.high[0] <= 0.51)
True
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Interval:
    """Enclosures of a value and of its derivative in one variable, each an array of ends."""

    low: np.ndarray
    high: np.ndarray
    slope_low: np.ndarray
    slope_high: np.ndarray

    def __add__(self, other: "Term") -> "Interval":
        other = _lift(other, self)
        value = _outward(self.low + other.low, self.high + other.high)
        return Interval(*value, *_add(self.slope, other.slope))

    def __mul__(self, other: "Term") -> "Interval":
        other = _lift(other, self)
        first, second = _multiply(self.slope, other.value), _multiply(self.value, other.slope)
        return Interval(*_multiply(self.value, other.value), *_add(first, second))

    def __neg__(self) -> "Interval":
        return Interval(-self.high, -self.low, -self.slope_high, -self.slope_low)

    def __sub__(self, other: "Term") -> "Interval":
        return self + -_lift(other, self)

    def __rsub__(self, other: float) -> "Interval":
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    @property
    def value(self) -> "Ends":
        return self.low, self.high

    @property
    def slope(self) -> "Ends":
        return self.slope_low, self.slope_high


Ends = tuple[np.ndarray, np.ndarray]
Term = Interval | float


def variable(low: np.ndarray, high: np.ndarray, *, slope: float) -> Interval:
    """A variable between the ends; its slope is 1 if derivatives are taken in it, else 0."""
    fixed = np.full(low.shape, slope)
    return Interval(low, high, fixed, fixed)


def square(x: Interval) -> Interval:
    """x², which is never negative."""
    product = x * x
    crosses = (x.low <= 0) & (x.high >= 0)
    smallest = np.minimum(x.low**2, x.high**2)
    low = np.where(crosses, 0.0, np.maximum(np.nextafter(smallest, -np.inf), 0.0))
    return Interval(low, product.high, *product.slope)


def square_root(x: Interval) -> Interval:
    """√x of x ≥ 0, whatever rounding says; its slope is unbounded where x may be zero."""
    low, high = _outward(np.sqrt(np.maximum(x.low, 0.0)), np.sqrt(np.maximum(x.high, 0.0)))
    low = np.maximum(low, 0.0)
    positive = low > 0
    divisor = np.where(positive, 2 * low, 1.0), np.where(positive, 2 * high, 1.0)
    inverse = _outward(1 / divisor[1], 1 / divisor[0])
    slope = _multiply(x.slope, inverse)
    unbounded = (np.where(positive, slope[0], -np.inf), np.where(positive, slope[1], np.inf))
    return Interval(low, high, *unbounded)


def maximum(x: Interval, y: Interval) -> Interval:
    """The larger of the two; its slope is that of the larger, or of either."""
    return _select(x, y, np.maximum, x.low >= y.high, y.low >= x.high)


def minimum(x: Interval, y: Interval) -> Interval:
    """The smaller of the two."""
    return _select(x, y, np.minimum, x.high <= y.low, y.high <= x.low)


def _select(x: Interval, y: Interval, choose: Callable, first, second) -> Interval:
    slopes = (
        np.where(first, own, np.where(second, others, either(own, others)))
        for own, others, either in zip(x.slope, y.slope, (np.minimum, np.maximum), strict=True)
    )
    return Interval(choose(x.low, y.low), choose(x.high, y.high), *slopes)


def _lift(x: Term, like: Interval) -> Interval:
    if isinstance(x, Interval):
        return x
    constant = np.full(like.low.shape, float(x))
    return Interval(constant, constant, np.zeros_like(constant), np.zeros_like(constant))


def _outward(low: np.ndarray, high: np.ndarray) -> Ends:
    return np.nextafter(low, -np.inf), np.nextafter(high, np.inf)


def _add(x: Ends, y: Ends) -> Ends:
    return _outward(x[0] + y[0], x[1] + y[1])


def _multiply(x: Ends, y: Ends) -> Ends:
    """All products of ends; 0 · ∞ bounds nothing, which is what an unbounded slope says."""
    with np.errstate(invalid="ignore"):
        products = np.stack([a * b for a in x for b in y])
    unknown = np.isnan(products).any(axis=0)
    low, high = _outward(products.min(axis=0), products.max(axis=0))
    return np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)
