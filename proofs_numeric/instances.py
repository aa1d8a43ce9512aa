"""Generators at which a bound is attained or a shortcut fails, and random ones beside them.

>>> one_ridge(3).w
array([[ 0.70710678, -0.70710678,  0.        ]])
"""

from dataclasses import replace
from typing import cast

import jax
import numpy as np
from numpy.typing import ArrayLike

from pgeom.generators import Hyperbolic, Quadratic


def pair_metric(K: int, c: float = 3.0) -> Quadratic:
    """A = I + c(e₁ − e₂)(e₁ − e₂)ᵀ: its top eigenvector is a difference of vertices.

    There the loss attains M = 1 + 2c, and ‖∇_pℓ‖ attains √2 M, at p = e₂ for the label 1.
    """
    difference = np.eye(K)[0] - np.eye(K)[1]
    return Quadratic(float64(np.eye(K) + c * np.outer(difference, difference)))


def one_ridge(K: int, *, rho: float = 0.25) -> Hyperbolic:
    """A single ridge along (e₁ − e₂)/√2 through the centre, with s ≠ 1.

    Because Σw = 0 and wᵀp = b is met, M_T = M is attained at the centre; for K ≥ 3 a tangent
    direction misses the ridge, and m_T = m = sλ everywhere. L_H is attained at v = artanh(1/√3)
    where the ridge is sharp enough to get there, and the range M as ρ grows.
    """
    w = (np.eye(K)[:1] - np.eye(K)[1:2]) / np.sqrt(2)
    return _hyperbolic(lam=0.4, a=[0.9], rho=[rho], w=w, b=[0.0], scale=1.7)


def tilted_ridge(K: int) -> Hyperbolic:
    """A single ridge with Σw ≠ 0 and ‖w‖ ≠ 1, sharp enough to meet v = artanh(1/√3).

    L_H is attained along w, which is no direction of the simplex: on the tangent space the Hessian
    changes more slowly.
    """
    w = np.eye(K)[:1] + 0.3
    return _hyperbolic(lam=0.2, a=[0.7], rho=[0.3], w=w, b=[0.6], scale=1.3)


def two_minima() -> Hyperbolic:
    """K = 2: D_F(η, ·) + βρ has a local minimum beside the global one; see `displacement`."""
    w = np.array([[1.0, -1.0]]) / np.sqrt(2)
    return _hyperbolic(lam=0.01, a=[1.0], rho=[0.1], w=w, b=[0.5 / np.sqrt(2)], scale=1.0)


def off_vertex() -> Hyperbolic:
    """K = 3: the loss is largest inside an edge, half as large again as at any vertex."""
    w = [
        [-0.32077569, -0.53254316, -0.78326288],
        [0.87247708, -0.45643424, 0.17450369],
        [-0.83728459, -0.44432106, 0.31864291],
    ]
    return _hyperbolic(
        lam=0.0010676549635252042,
        a=[0.31845323, 0.73799637, 0.3939093],
        rho=[0.69359086, 0.03566439, 0.05079797],
        w=w,
        b=[0.16869431, 0.10368032, -0.35156302],
        scale=1.0,
    )


def isotropic(K: int, m: float = 1.0) -> Hyperbolic:
    """H = mI: no ridge at all."""
    zero = np.zeros((1, K))
    return _hyperbolic(lam=m, a=[0.0], rho=[1.0], w=zero, b=[0.0], scale=1.0)


def anisotropic(K: int) -> Hyperbolic:
    """H constant, m = ½, and m_T = 1 along e₁ − e₂; up to 2 along the rest of the tangent space.

    Its ridges, one per tangent direction, are too wide for the Hessian to change on the simplex.
    """
    directions = np.tril(np.ones((K - 1, K)), 0) - np.diag(np.arange(1.0, K), 1)[:-1]
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    a, wide = np.linspace(0.5, 1.5, K - 1), np.full(K - 1, 1e4)
    return _hyperbolic(lam=0.5, a=a, rho=wide, w=directions, b=np.zeros(K - 1), scale=1.0)


def random_ridges(K: int, seed: int) -> Hyperbolic:
    """Eight ridges of random direction, width and offset, each crossing the simplex."""
    rng = np.random.default_rng([2, K, seed])
    w = rng.normal(size=(8, K))
    w /= np.linalg.norm(w, axis=1, keepdims=True) * rng.uniform(1.0, 1.5, (8, 1))
    mix = rng.uniform(size=8)
    return _hyperbolic(
        lam=10 ** rng.uniform(-2, 0),
        a=rng.uniform(0, 1, 8),
        rho=10 ** rng.uniform(-1.5, 0, 8),
        w=w,
        b=mix * w.min(axis=1) + (1 - mix) * w.max(axis=1),
        scale=10 ** rng.uniform(-0.5, 0.5),
    )


def fill_ridges(F: Hyperbolic, ridges: int) -> Hyperbolic:
    """F padded with ridges of zero weight to `ridges` in all."""
    F = _hyperbolic(**{name: getattr(F, name) for name in ("lam", "a", "rho", "w", "b", "scale")})
    missing = ridges - len(F.a)
    return replace(
        F,
        a=float64(np.pad(F.a, (0, missing))),
        rho=float64(np.pad(F.rho, (0, missing), constant_values=1.0)),
        w=float64(np.pad(F.w, ((0, missing), (0, 0)))),
        b=float64(np.pad(F.b, (0, missing))),
    )


def float64(values: ArrayLike) -> jax.Array:
    """`values` in float64, whatever the precision of JAX: NumPy's, which JAX takes for its own."""
    return cast(jax.Array, np.asarray(values, np.float64))


def _hyperbolic(**parameters: ArrayLike) -> Hyperbolic:
    return Hyperbolic(**{name: float64(values) for name, values in parameters.items()})
