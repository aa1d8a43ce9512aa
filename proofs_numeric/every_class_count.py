"""½(‖J‖‖d‖ + ‖Jd‖) ≤ 8√2/27 for every K at once, by interval arithmetic; part of `gradients`.

Let s = p_y, t the largest competitor, r = 1 − s − t the rest, u = min(t, r), and Σp_j² = t² + b·ur
over j ≠ y, 0 ≤ b ≤ 1. With c = Σp_j² − s(1 − s),

    ‖d‖² = (1 − s)² + Σp_j²,    ‖J‖ ≤ 2 max(s(1 − s), t(1 − t))        (Gershgorin)
    ‖Jd‖² = s²‖d‖⁴ + Σ p_j²(p_j − c)²

and in the last sum each rest p_j ≤ u, where the convex (p − c)² is below its chord; the weighted
mean of the rest is at least bu (Cauchy–Schwarz) and at most u. That is a function f(s, t, b).

Boxes of (s, t/(1 − s), b) are dropped where the interval of f stays below the constant, and where
f grows with t throughout, for then it is largest at r = 0, where f = 2√2 s(1 − s)² ≤ 8√2/27.

IEEE addition, multiplication, division and square root are correctly rounded, so that the next
float64 below and above encloses the exact result.

>>> prove(0.42).high    # where 8√2/27 = 0.41903 takes more boxes
0.42
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from pgeom.diagnosis.bounds import SHARP_GRADIENT
from proofs_numeric.search import MOST, Proof, prove_maximum

CUT = 8  # boxes of each side at first
EDGE = 8 * math.sqrt(2) / 27  # the largest 2√2 s(1 − s)², at s = 1/3


def proved_constant() -> float:
    """The constant, where nothing is left that might exceed it; else infinity."""
    return EDGE if prove(SHARP_GRADIENT).high <= SHARP_GRADIENT else math.inf


@cache
def prove(constant: float) -> Proof:
    """An upper bound on max(f, EDGE): `high` is the constant if f is nowhere above it."""

    def assess(boxes):
        s, share, b = (variable(*boxes[:, :, i].T, slope=float(i == 1)) for i in range(3))
        f = bound(s, share, b)
        return np.where(f.slope[0] >= 0, -np.inf, f.value[1]), -np.inf, np.zeros(0)

    corners = np.stack(np.meshgrid(*[np.arange(CUT)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    boxes = np.stack([corners / CUT, (corners + 1) / CUT], axis=1)
    return prove_maximum(boxes, assess, halve, known=constant, gap=0.0, most=MOST)


def halve(boxes: np.ndarray) -> np.ndarray:
    """Each box in two: across b, which matters least, only where it is four times as long."""
    sides = (boxes[:, 1] - boxes[:, 0]) * np.array([1.0, 1.0, 0.25])
    rows, axis = np.arange(len(boxes)), np.argmax(sides, axis=1)
    lower, upper = boxes.copy(), boxes.copy()
    lower[rows, 1, axis] = upper[rows, 0, axis] = boxes[rows, :, axis].mean(axis=1)
    return np.concatenate([lower, upper])


def bound(s: "Interval", share: "Interval", b: "Interval") -> "Interval":
    """f over boxes; t = share·(1 − s)."""
    rest_of_one = 1 - s
    t, r = share * rest_of_one, (1 - share) * rest_of_one
    u = minimum(t, r)
    spread = b * u * r
    squares = square(t) + spread
    c = squares - s * rest_of_one
    d = square(rest_of_one) + squares
    ends = u * (u - 2 * c)
    rest = spread * (square(c) + maximum(ends, b * ends))
    push = square_root(square(s * d) + square(t * (t - c)) + rest)
    return maximum(s * rest_of_one, t * (1 - t)) * square_root(d) + 0.5 * push


@dataclass(frozen=True)
class Interval:
    """Enclosures `[2, n]` of a value and of its derivative in one variable, low ends first."""

    value: np.ndarray
    slope: np.ndarray

    def __add__(self, other: "Interval | float") -> "Interval":
        return _both(np.add, self, _lift(other))

    def __sub__(self, other: "Interval") -> "Interval":
        return _both(np.subtract, self, other)

    def __rsub__(self, other: float) -> "Interval":
        return _lift(other) - self

    def __mul__(self, other: "Interval | float") -> "Interval":
        other = _lift(other)
        slopes = (
            enclose(np.multiply, self.slope, other.value),
            enclose(np.multiply, self.value, other.slope),
        )
        return Interval(enclose(np.multiply, self.value, other.value), enclose(np.add, *slopes))

    __radd__, __rmul__ = __add__, __mul__


def variable(low: np.ndarray, high: np.ndarray, *, slope: float) -> Interval:
    """A variable between the ends; its slope is 1 if derivatives are taken in it, else 0."""
    return Interval(np.stack([low, high]), np.full((2, 1), slope))


def square(x: Interval) -> Interval:
    """x², which is never negative."""
    product = x * x
    return Interval(np.maximum(product.value, 0.0), product.slope)


def square_root(x: Interval) -> Interval:
    """√x of x ≥ 0, whatever rounding says; its slope is unbounded where x may be zero."""
    root = np.sqrt(np.maximum(x.value, 0.0))
    root = np.maximum(enclose(np.add, root, np.zeros((2, 1))), 0.0)
    return Interval(root, enclose(np.divide, x.slope, 2 * root))


def maximum(x: Interval, y: Interval) -> Interval:
    """The larger of the two; its slope is that of the larger, or of either."""
    either = [np.minimum(x.slope[0], y.slope[0]), np.maximum(x.slope[1], y.slope[1])]
    first, second = x.value[0] >= y.value[1], y.value[0] >= x.value[1]
    slope = np.where(first, x.slope, np.where(second, y.slope, np.stack(either)))
    return Interval(np.maximum(x.value, y.value), slope)


def minimum(x: Interval, y: Interval) -> Interval:
    """The smaller of the two."""
    return 0.0 - maximum(0.0 - x, 0.0 - y)


def enclose(operation: Callable, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """An operation that is monotone in each argument: the extremes of the ends, rounded outward.

    0 · ∞ and 0 / 0 bound nothing, which is what an unbounded slope says.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        ends = operation(x[:, None], y[None]).reshape(4, -1)
    unknown = np.isnan(ends).any(axis=0)
    low = np.where(unknown, -np.inf, np.nextafter(ends.min(axis=0), -np.inf))
    return np.stack([low, np.where(unknown, np.inf, np.nextafter(ends.max(axis=0), np.inf))])


def _both(operation: Callable, x: Interval, y: Interval) -> Interval:
    return Interval(enclose(operation, x.value, y.value), enclose(operation, x.slope, y.slope))


def _lift(x: "Interval | float") -> Interval:
    if isinstance(x, Interval):
        return x
    return Interval(np.full((2, 1), float(x)), np.zeros((2, 1)))
