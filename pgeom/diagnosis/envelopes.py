"""Curvature: envelopes by formula, and extreme eigenvalues at a point.

Curvature envelopes by formula: those of structured generators and their sums.

>>> import jax.numpy as jnp
>>> from pgeom.generators import quadratic
>>> known_envelope(quadratic(jnp.diag(jnp.array([1.0, 3.0]))), 2)
Envelope(m=1.0, M=3.0, m_tangent=2.0, M_tangent=2.0, how='exact')

The extreme eigenvalues of a generator's Hessian at a point, with their tangent directions.

Up to 32 classes they are computed from the matrix; beyond, by Lanczos iterations with
Hessian-vector products, in memory linear in the number of classes.

>>> import jax.numpy as jnp
>>> e = extremes(lambda p: jnp.sum(jnp.array([1.0, 2.0, 6.0]) * p**2), jnp.full(3, 1 / 3))
>>> [round(float(x), 4) for x in (e.m, e.m_tangent, e.M_tangent, e.M)]
[2.0, 2.9449, 9.0551, 12.0]
"""

from collections.abc import Sequence
from functools import singledispatch
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pgeom import checks, simplex
from pgeom.generators import Combination, Hyperbolic, Quadratic, SquaredNorm, parts
from pgeom.types import AnyArray, Generator


class Envelope(NamedTuple):
    """m ≤ λ(H(p)) ≤ M over the simplex, and the same on the tangent space.

    `how` is 'exact', 'closed form' (a true bound, attained or not) or 'searched' (the extremes
    found by a search: the true envelope may be wider).
    """

    m: float
    M: float
    m_tangent: float
    M_tangent: float
    how: str


@singledispatch
def known_envelope(F: Generator, K: int) -> Envelope | None:
    """The curvature envelope of F on K classes by formula, or None if there is none."""
    return None


@known_envelope.register
def _(F: SquaredNorm, K: int) -> Envelope:
    return Envelope(2.0, 2.0, 2.0, 2.0, "exact")


@known_envelope.register
def _(F: Quadratic, K: int) -> Envelope:
    A = np.asarray(F.A, np.float64)
    checks.check_same_classes("F", A.shape[0], K)
    full, tangent = np.linalg.eigvalsh(A), _tangent_spectrum(A)
    return _envelope([full[0], full[-1], tangent[0], tangent[-1]], "exact")


@known_envelope.register
def _(F: Hyperbolic, K: int) -> Envelope:
    checks.check_same_classes("F", F.w.shape[1], K)
    F = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), F)
    low, high = sech2_range(F)
    full = F.scale * (F.lam + np.sum(F.a * np.sum(F.w**2, axis=1)))
    m_tangent = _tangent_spectrum(ridge_hessian(F, low))[0]
    M_tangent = _tangent_spectrum(ridge_hessian(F, high))[-1]
    return _envelope([F.scale * F.lam, full, m_tangent, M_tangent], "closed form")


@known_envelope.register
def _(F: Combination, K: int) -> Envelope | None:
    """The sum of the envelopes of the parts, if all of them are known."""
    total = np.zeros(4)
    for c, part in parts(F):
        if (known := known_envelope(part, K)) is None:
            return None
        total += float(c) * np.array(known[:4])
    return _envelope(total, "closed form")


def ridge_hessian(F: Hyperbolic, sech2: Float[np.ndarray, " R"]) -> Float[np.ndarray, "K K"]:
    """s[λI + Σ_r a_r S_r w_r w_rᵀ], Eq. (hpg-hessian), for given values S_r of sech²."""
    return F.scale * (F.lam * np.eye(F.w.shape[1]) + (F.w.T * (F.a * sech2)) @ F.w)


def ridge_range(F: Hyperbolic) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, " R"]]:
    """The (lowest, highest) v_r = (w_rᵀp − b_r)/ρ_r over the simplex, attained at vertices."""
    return (F.w.min(axis=1) - F.b) / F.rho, (F.w.max(axis=1) - F.b) / F.rho


def sech2_range(F: Hyperbolic) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, " R"]]:
    """The (lowest, highest) sech²(v_r) over the simplex."""
    low, high = ridge_range(F)
    nearest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    farthest = np.maximum(np.abs(low), np.abs(high))
    return np.exp(-2 * _np_log_cosh(farthest)), np.exp(-2 * _np_log_cosh(nearest))


def _envelope(extremes: Sequence[float] | np.ndarray, how: str) -> Envelope:
    m, M, m_tangent, M_tangent = map(float, extremes)
    return Envelope(m, M, m_tangent, M_tangent, how)


def _tangent_spectrum(A: np.ndarray) -> np.ndarray:
    basis = simplex.tangent_basis(len(A))
    return np.linalg.eigvalsh(basis.T @ A @ basis)


def _np_log_cosh(v: np.ndarray) -> np.ndarray:
    return np.logaddexp(v, -v) - np.log(2)


DENSE = 32  # classes up to which the Hessian is a matrix
STEPS = 24  # of a Lanczos iteration, by default


class Extremes(NamedTuple):
    """m ≤ m_T ≤ M_T ≤ M at a point, and unit tangent vectors of m_T and M_T; or arrays of these."""

    m: Float[AnyArray, "*batch"]
    M: Float[AnyArray, "*batch"]
    m_tangent: Float[AnyArray, "*batch"]
    M_tangent: Float[AnyArray, "*batch"]
    flattest: Float[AnyArray, "*batch K"]
    steepest: Float[AnyArray, "*batch K"]


def extremes(F: Generator, p: Float[Array, " K"], *, steps: int = STEPS) -> Extremes:
    """The extreme eigenvalues of H(p) in the full space and on {x : Σx = 0}.

    Lanczos iterations, with the given number of steps, approach them from inside.
    """
    return _dense_extremes(F, p) if p.shape[0] <= DENSE else _lanczos_extremes(F, p, steps)


def _dense_extremes(F: Generator, p) -> Extremes:
    H, basis = jax.hessian(F)(p), jnp.asarray(simplex.tangent_basis(p.shape[0]), p.dtype)
    full = jnp.linalg.eigvalsh(H)
    values, vectors = jnp.linalg.eigh(basis.T @ H @ basis)
    directions = basis @ vectors
    return _ordered(full, values, directions[:, 0], directions[:, -1])


def _lanczos_extremes(F: Generator, p, steps: int) -> Extremes:
    def product(x):
        return jax.jvp(jax.grad(F), (p,), (x,))[1]

    def tangent(x):
        return x - jnp.mean(x)

    start = jnp.asarray(np.random.default_rng(0).standard_normal(p.shape[0]), p.dtype)
    full, _ = _lanczos(product, start, lambda x: x, steps)
    values, directions = _lanczos(product, start, tangent, steps)
    return _ordered(full, values, directions[0], directions[-1])


def _ordered(full, values, flattest, steepest) -> Extremes:
    """The extremes, in the order that holds for the true ones."""
    m, M = jnp.minimum(full[0], values[0]), jnp.maximum(full[-1], values[-1])
    return Extremes(m, M, values[0], values[-1], flattest, steepest)


def _lanczos(product, start, project, steps: int) -> tuple[Array, Array]:
    """Ritz values in ascending order, and vectors `[steps, K]`, of an operator on a subspace."""
    steps = min(steps, start.shape[0] - 1)
    first = project(start) / jnp.linalg.norm(project(start))

    def step(i, state):
        basis, diagonal, off_diagonal, alive = state
        image = project(product(basis[i]))
        along = jnp.sum(image * basis[i])
        # an invariant subspace ends the iteration; the values after it repeat the first one
        diagonal = diagonal.at[i].set(jnp.where(alive, along, diagonal[0]))
        for _ in range(2):  # twice is enough for orthogonality to the last digit
            image = project(image - basis.T @ (basis @ image))
        length = jnp.linalg.norm(image)
        alive = alive & (length > 1e-10 * jnp.abs(along))
        off_diagonal = off_diagonal.at[i].set(jnp.where(alive, length, 0.0))
        following = jnp.where(alive, image / jnp.where(length > 0, length, 1.0), 0.0)
        return basis.at[i + 1].set(following), diagonal, off_diagonal, alive

    basis = jnp.zeros((steps + 1, start.shape[0]), start.dtype).at[0].set(first)
    zeros = jnp.zeros(steps, start.dtype)
    state = (basis, zeros, zeros, jnp.asarray(True))
    basis, diagonal, off_diagonal, _ = jax.lax.fori_loop(0, steps, step, state)
    tridiagonal = (
        jnp.diag(diagonal) + jnp.diag(off_diagonal[:-1], 1) + jnp.diag(off_diagonal[:-1], -1)
    )
    values, vectors = jnp.linalg.eigh(tridiagonal)
    ritz = vectors.T @ basis[:-1]
    norms = jnp.linalg.norm(ritz, axis=1, keepdims=True)
    return values, ritz / jnp.where(norms > 0, norms, 1.0)
