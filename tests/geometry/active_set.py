"""Maximisers of ⟨z, p⟩ − F(p) over the simplex by a primal active-set method in NumPy float64.

It shares no code with the library. Every direction is a Newton step within the current face, by a
dense factorisation; a step that meets the boundary drops a class, and at the optimum of a face the
class with the largest violation joins it.
"""

from typing import NamedTuple

import numpy as np


class Smooth(NamedTuple):
    """A function of a point `[K]`, with its derivatives."""

    value: object
    gradient: object
    hessian: object


def quadratic(A):
    centre = 1 / len(A)
    return Smooth(
        lambda p: 0.5 * (p - centre) @ A @ (p - centre),
        lambda p: A @ (p - centre),
        lambda p: A,
    )


def hyperbolic(*, lam, a, rho, w, b, scale=1.0):
    K = w.shape[1]

    def ridge(p):
        return (w @ p - b) / rho

    def log_cosh(x):
        return np.abs(x) + np.log1p(np.exp(-2 * np.abs(x))) - np.log(2)

    return Smooth(
        lambda p: scale * (lam / 2 * np.sum((p - 1 / K) ** 2) + a * rho**2 @ log_cosh(ridge(p))),
        lambda p: scale * (lam * (p - 1 / K) + w.T @ (a * rho * np.tanh(ridge(p)))),
        lambda p: scale * (lam * np.eye(K) + (w.T * (a / np.cosh(ridge(p)) ** 2)) @ w),
    )


def maximise(F, z):
    """The maximiser for one vector of logits `[K]`."""
    z = z - z.max()
    p = np.eye(len(z))[z.argmax()]
    face = p > 0
    for _ in range(50 * len(z)):
        slope = F.gradient(p) - z
        d = newton_direction(F.hessian(p), slope, face)
        if np.abs(d).max() > 1e-13:
            p, dropped = advance(lambda p: F.value(p) - z @ p, p, d, slope @ d)
            face = face & ~dropped
            continue
        p = np.maximum(p + d, 0)
        residual = z - F.gradient(p)
        violation = np.where(face, -np.inf, residual - residual @ p)
        if violation.max() <= 1e-13:
            return p
        face = face | (np.arange(len(z)) == violation.argmax())
    raise AssertionError("the active-set method did not end")


def newton_direction(H, slope, face):
    places = np.flatnonzero(face)
    matrix = np.ones((len(places) + 1,) * 2)
    matrix[:-1, :-1], matrix[-1, -1] = H[np.ix_(places, places)], 0
    d = np.zeros_like(slope)
    d[places] = np.linalg.solve(matrix, np.append(-slope[places], 0))[:-1]
    return d


def advance(objective, p, d, descent):
    """The next point, by halving from the boundary, and the class that reached zero."""
    room = np.where(d < 0, p / np.where(d < 0, -d, 1), np.inf)
    farthest = min(1.0, room.min())
    length = farthest
    while objective(p + length * d) > objective(p) + 1e-4 * length * descent + 1e-15:
        length /= 2
    dropped = (room <= length) & (length == farthest)
    return np.where(dropped, 0.0, np.maximum(p + length * d, 0)), dropped
