"""Values, gradients and Hessians of an expression at many points, in float64.

It is what guesses are made with; nothing is proved by it.

>>> from pgeom.geometry.certificates.algebra import Graph
>>> g = Graph(2)
>>> evaluate(g.power(g.p(0), 3), np.array([[0.5, 0.5]])).bends[0].tolist()
[[3.0, 0.0], [0.0, 0.0]]
"""

import math
from typing import NamedTuple

import numpy as np

from pgeom.geometry.certificates.expression import Node, is_affine, reachable
from pgeom.geometry.certificates.frames import affine
from pgeom.geometry.simplex import tangent_basis

MEMORY = 2e7  # second derivatives that are held at a time


class Batch(NamedTuple):
    """Values `[N]`, slopes `[N, K]` and second derivatives `[N, K, K]`."""

    value: np.ndarray
    slopes: np.ndarray
    bends: np.ndarray


def evaluate(root: Node, points: np.ndarray) -> Batch:
    """The root at the points `[N, K]`; NaN where it is not defined."""
    known: dict[Node, Batch] = {}
    with np.errstate(all="ignore"):
        for x in reachable(root):
            args = [] if is_affine(x) else [known[y] for y in x.args]
            known[x] = _evaluate(x, args, points)
    return known[root]


def values(root: Node, points: np.ndarray) -> np.ndarray:
    """The values alone, `[N]`."""
    known: dict[Node, np.ndarray] = {}
    empty = np.empty((len(points), 0))
    with np.errstate(all="ignore"):
        for x in reachable(root):
            inner = [] if is_affine(x) else x.args
            args = [Batch(known[y], empty, empty[:, :, None]) for y in inner]
            known[x] = _evaluate(x, args, points, slopes=False).value
    return known[root]


def _evaluate(x: Node, args: list[Batch], points: np.ndarray, slopes: bool = True) -> Batch:
    if is_affine(x):
        const, form = affine(x)
        w = np.array([float(form.get(k, 0)) for k in range(points.shape[1])])
        n = points.shape[1] if slopes else 0
        N = len(points)
        return Batch(float(const) + points @ w, np.tile(w[:n], (N, 1)), np.zeros((N, n, n)))
    if x.op == "lin":
        factors = [float(c) for c in x.data[1:]]
        return _sum(float(x.data[0]), factors, args)
    if x.op == "mono":
        powers = [_chain(y, _power(y.value, r)) for y, r in zip(args, x.data, strict=True)]
        result = powers[0]
        for other in powers[1:]:
            result = _product(result, other)
        return result
    if x.op == "quadratic":
        return _quadratic(x, points, slopes)
    if x.op == "lse":
        return _log_sum_exp([float(c) for c in x.data], args)
    if x.op == "max":
        return _pick(np.argmax([y.value for y in args], axis=0), args)
    if x.op == "ramp":
        return _chain(args[0], _ramp(args[0].value, x.data[0]))
    return _chain(args[0], FUNCTIONS[x.op](args[0].value))


def _quadratic(x: Node, points: np.ndarray, slopes: bool) -> Batch:
    N, K = points.shape
    Q = np.array([float(q) for q in x.data]).reshape(K, K)
    Qp, n = points @ Q, K if slopes else 0
    bends = np.broadcast_to(2 * Q[:n, :n], (N, n, n))
    return Batch(np.sum(Qp * points, axis=1), 2 * Qp[:, :n], bends)


def _sum(const: float, factors: list[float], args: list[Batch]) -> Batch:
    pairs = list(zip(factors, args, strict=True))
    value, slopes, bends = (np.zeros_like(part) for part in args[0])
    for c, y in pairs:
        value, slopes, bends = value + c * y.value, slopes + c * y.slopes, bends + c * y.bends
    return Batch(const + value, slopes, bends)


def _outer(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x[:, :, None] * y[:, None, :]


def _product(x: Batch, y: Batch) -> Batch:
    u, v = x.value[:, None], y.value[:, None]
    cross = _outer(x.slopes, y.slopes) + _outer(y.slopes, x.slopes)
    bends = u[:, :, None] * y.bends + v[:, :, None] * x.bends + cross
    return Batch(x.value * y.value, u * y.slopes + v * x.slopes, bends)


def _chain(x: Batch, triple: tuple) -> Batch:
    value, first, second = triple
    bends = first[:, None, None] * x.bends
    bends = bends + second[:, None, None] * _outer(x.slopes, x.slopes)
    return Batch(value, first[:, None] * x.slopes, bends)


def _power(x: np.ndarray, r) -> tuple:
    e = float(r)
    if e == 1:
        return x, np.ones_like(x), np.zeros_like(x)
    second = e * (e - 1) * x ** (e - 2) if e != 2 else np.full_like(x, 2.0)
    return x**e, e * x ** (e - 1), second


def _ramp(x: np.ndarray, r) -> tuple:
    value, first, second = _power(np.maximum(x, 0), r)
    return value, first, np.where(x > 0, second, 0.0)


def _log_sum_exp(factors: list[float], args: list[Batch]) -> Batch:
    x = np.stack([y.value for y in args]) + np.log(factors)[:, None]
    top = x.max(axis=0)
    grown = np.exp(x - top)
    shares = grown / grown.sum(axis=0)
    slopes, bends = np.zeros_like(args[0].slopes), np.zeros_like(args[0].bends)
    for s, y in zip(shares, args, strict=True):
        slopes = slopes + s[:, None] * y.slopes
        bends = bends + s[:, None, None] * (y.bends + _outer(y.slopes, y.slopes))
    return Batch(top + np.log(grown.sum(axis=0)), slopes, bends - _outer(slopes, slopes))


def _pick(which: np.ndarray, args: list[Batch]) -> Batch:
    rows = np.arange(len(which))
    return Batch(*(np.stack(part)[which, rows] for part in zip(*args, strict=True)))


def _exp(x):
    return np.exp(x), np.exp(x), np.exp(x)


def _xlogx(x):
    return np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), x * 0), 1 + np.log(x), 1 / x


def _softplus(x):
    share = 1 / (1 + np.exp(-x))
    return np.logaddexp(x, 0.0), share, share / (1 + np.exp(x))


def _tan(x):
    value = np.tan(x)
    return value, 1 + value**2, 2 * value * (1 + value**2)


def _atan(x):
    return np.arctan(x), 1 / (1 + x**2), -2 * x / (1 + x**2) ** 2


def _erf(x):
    slope = 2 / math.sqrt(math.pi) * np.exp(-(x**2))
    return np.vectorize(math.erf)(x), slope, -2 * x * slope


FUNCTIONS = {
    "exp": _exp,
    "tan": _tan,
    "atan": _atan,
    "erf": _erf,
    "log": lambda x: (np.log(x), 1 / x, -1 / x**2),
    "xlogx": _xlogx,
    "sin": lambda x: (np.sin(x), np.cos(x), -np.sin(x)),
    "cos": lambda x: (np.cos(x), -np.sin(x), -np.cos(x)),
    "softplus": _softplus,
}


class Spectra(NamedTuple):
    """Per point `[N]`: extreme eigenvalues on tangents, and their directions `[N, K]`."""

    points: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    down: np.ndarray
    up: np.ndarray


def affordable(root: Node, K: int) -> int:
    """How many points are evaluated at a time."""
    return max(1, int(MEMORY / (K**2 * len(reachable(root)))))


def spectra(root: Node, points: np.ndarray) -> Spectra:
    """Of the points where the Hessian is finite."""
    K = points.shape[1]
    basis, step, rows = tangent_basis(K), affordable(root, K), []
    for start in range(0, len(points), step):
        some = points[start : start + step]
        with np.errstate(all="ignore"):
            bends = basis.T @ evaluate(root, some).bends @ basis
        fine = np.isfinite(bends).all(axis=(1, 2))
        values, vectors = np.linalg.eigh(bends[fine])
        down, up = vectors[:, :, 0] @ basis.T, vectors[:, :, -1] @ basis.T
        rows.append((some[fine], values[:, 0], values[:, -1], down, up))
    return Spectra(*(np.concatenate(column) for column in zip(*rows, strict=True)))
