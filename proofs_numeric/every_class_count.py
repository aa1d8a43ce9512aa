"""½(‖J‖‖d‖ + ‖Jd‖) ≤ 8√2/27 for every K at once, by branch and bound; part of `gradients`.

Let s = p_y, t the largest competitor, r = 1 − s − t the rest, u = min(t, r), and Σp_j² = t² + b·ur
over j ≠ y, 0 ≤ b ≤ 1. With c = Σp_j² − s(1 − s),

    ‖d‖² = (1 − s)² + Σp_j²,    ‖J‖ ≤ 2 max(s(1 − s), t(1 − t))        (Gershgorin)
    ‖Jd‖² = s²‖d‖⁴ + Σ p_j²(p_j − c)²

and in the last sum each rest p_j ≤ u, where the convex (p − c)² is below its chord; the weighted
mean of the rest is at least bu (Cauchy–Schwarz) and at most u. That is a function f(s, t, b).

Boxes of (s, t/(1 − s), b) are dropped where the interval of f stays below the constant, and where
f grows with t throughout, for then it is largest at r = 0, where f = 2√2 s(1 − s)² ≤ 8√2/27.

>>> prove(0.42).undecided    # where 8√2/27 = 0.41903 takes more boxes
0
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from proofs_numeric.intervals import Interval, maximum, minimum, square, square_root, variable

MOST = 300_000  # boxes, before the search gives up
CUT = 8  # boxes of each side at first
EDGE = 8 * math.sqrt(2) / 27  # the largest 2√2 s(1 − s)², at s = 1/3


class Proof(NamedTuple):
    """How a branch and bound ended: the boxes looked at, and those left undecided."""

    boxes: int
    undecided: int


@cache
def prove(constant: float) -> Proof:
    """Show that f ≤ max(constant, EDGE): it is shown if nothing is left undecided."""
    low, high = _first_boxes()
    boxes = 0
    while len(low) and boxes < MOST:
        boxes += len(low)
        value = bound(*(variable(low[:, i], high[:, i], slope=float(i == 1)) for i in range(3)))
        open_ = ~((value.high <= constant) | (value.slope_low >= 0))
        low, high = _halve(low[open_], high[open_])
    return Proof(boxes, len(low))


def bound(s: Interval, share: Interval, b: Interval) -> Interval:
    """f over boxes; t = share·(1 − s)."""
    rest_of_one = 1 - s
    t = share * rest_of_one
    r = (1 - share) * rest_of_one
    u = minimum(t, r)
    spread = b * u * r
    squares = square(t) + spread
    c = squares - s * rest_of_one
    d = square(rest_of_one) + squares
    ends = u * (u - 2 * c)
    rest = spread * (square(c) + maximum(ends, b * ends))
    push = square_root(square(s * d) + square(t * (t - c)) + rest)
    jacobian = maximum(s * rest_of_one, t * (1 - t))
    return jacobian * square_root(d) + 0.5 * push


def _first_boxes() -> tuple[np.ndarray, np.ndarray]:
    """The unit cube in CUT³ boxes: their low and high corners, `[n, 3]` each."""
    corners = np.stack(np.meshgrid(*[np.arange(CUT)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    return corners / CUT, (corners + 1) / CUT


def _halve(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each box in two: across b, which matters least, only where it is four times as long."""
    width = (high - low) * np.array([1.0, 1.0, 0.25])
    rows, axis = np.arange(len(low)), np.argmax(width, axis=1)
    middle = 0.5 * (low[rows, axis] + high[rows, axis])
    upper, lower = low.copy(), high.copy()
    upper[rows, axis], lower[rows, axis] = middle, middle
    return np.concatenate([low, upper]), np.concatenate([lower, high])
