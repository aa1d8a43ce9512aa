"""The extreme eigenvalues of a generator's Hessian at a point, with their tangent directions.

Up to 32 classes they are computed from the matrix; beyond, by Lanczos iterations with
Hessian-vector products, in memory linear in the number of classes.

>>> import jax.numpy as jnp
>>> e = extremes(lambda p: jnp.sum(jnp.array([1.0, 2.0, 6.0]) * p**2), jnp.full(3, 1 / 3))
>>> [round(float(x), 4) for x in (e.m, e.m_tangent, e.M_tangent, e.M)]
[2.0, 2.9449, 9.0551, 12.0]
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pgeom.geometry import simplex
from pgeom.types import AnyArray, Generator

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
