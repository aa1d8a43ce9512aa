"""The Hessian of a generator: its envelope over the simplex, its mean, and matching its mean.

Two envelopes: the paper's mI ⪯ H(p) ⪯ MI, and the tangent one, the extreme eigenvalues m_T, M_T of
H on {x : Σx = 0}. Displacements on the simplex lie in that space, so that m_T and M_T may stand
for m and M in every bound on regret, range and logit gradient.

>>> import jax.numpy as jnp
>>> from pgeom.geometry.generators import quadratic
>>> envelope(quadratic(jnp.diag(jnp.array([1.0, 3.0]))), 2)
Envelope(m=1.0, M=3.0, m_tangent=2.0, M_tangent=2.0, how='exact')
"""

from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import edge
from pgeom.geometry import simplex
from pgeom.geometry.generators import Hyperbolic, Quadratic, rescale
from pgeom.geometry.search import maximise
from pgeom.types import Generator

DRAWS = 4096  # Dirichlet(1) points of a mean curvature


class Envelope(NamedTuple):
    """m ≤ λ(H(p)) ≤ M over the simplex, and the same on the tangent space.

    `how` is 'exact', 'closed form' (a true bound, attained or not) or 'sampled and optimised'
    (the extremes that a search found: the true envelope may be wider).
    """

    m: float
    M: float
    m_tangent: float
    M_tangent: float
    how: str


def hessian(F: Generator) -> Callable[[jax.Array], jax.Array]:
    """`H(p[..., K]) -> [..., K, K]`, the Hessian of F."""
    lifted = jnp.vectorize(jax.hessian(F), signature="(k)->(k,k)")
    return lambda p: lifted(edge.vectors("p", p))


@singledispatch
def envelope(F: Generator, K: int) -> Envelope:
    """The curvature envelope of F on K classes.

    Args:
      F: a generator.
      K: the number of classes.

    Returns:
      An `Envelope`: exact for `quadratic`, in closed form for `hyperbolic`, and for any other F
      searched for; infinite where H is not finite at the vertices.
    """
    edge.number_of_classes(K)
    with jax.enable_x64(True):
        starts = simplex.probe_points(jax.random.key(0), K, 64)
        bounded, extremes = jax.jit(lambda *at: _search(F, *at))(starts, jnp.eye(K))
    m, M, m_tangent, M_tangent = map(float, extremes)
    M, M_tangent = (M, M_tangent) if bounded else (np.inf, np.inf)
    return Envelope(-m, M, -m_tangent, M_tangent, "sampled and optimised")


def _search(F: Generator, starts: jax.Array, vertices: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Whether H is finite at the vertices, and the found −m, M, −m_T and M_T, `[4]`.

    The vertices are an argument because XLA takes 0 · ∞ for 0 where it knows the first.
    """
    K = starts.shape[1]
    basis = jnp.asarray(simplex.tangent_basis(K))
    bounded = jnp.all(jnp.isfinite(jax.vmap(jax.hessian(F))(vertices)))
    # a divergent Hessian is searched a little inside, where its eigenvalues can be computed
    margin = jnp.where(bounded, 0.0, 1e-6)

    def extremes(p):
        H = jax.hessian(F)((1 - margin) * p + margin / K)
        full, tangent = jnp.linalg.eigvalsh(H), jnp.linalg.eigvalsh(basis.T @ H @ basis)
        return jnp.stack([-full[0], full[-1], -tangent[0], tangent[-1]])

    def search(which):  # one search vmapped over the four, to compile one
        return maximise(lambda p: extremes(p)[which], starts).value

    return bounded, jax.vmap(search)(jnp.arange(4))


@envelope.register
def _(F: Quadratic, K: int) -> Envelope:
    known = np.asarray(F.A, np.float64)
    edge.same_classes("F", known.shape[0], K)
    full, tangent = np.linalg.eigvalsh(known), _tangent_spectrum(known)
    return Envelope(*map(float, (full[0], full[-1], tangent[0], tangent[-1])), "exact")


@envelope.register
def _(F: Hyperbolic, K: int) -> Envelope:
    edge.same_classes("F", F.w.shape[1], K)
    F = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), F)
    low, high = sech2_range(F)
    full = F.scale * (F.lam + np.sum(F.a * np.sum(F.w**2, axis=1)))
    m_tangent = _tangent_spectrum(ridge_hessian(F, low))[0]
    M_tangent = _tangent_spectrum(ridge_hessian(F, high))[-1]
    values = (F.scale * F.lam, full, m_tangent, M_tangent)
    return Envelope(*map(float, values), "closed form")


def ridge_hessian(F: Hyperbolic, sech2: np.ndarray) -> np.ndarray:
    """s[λI + Σ_r a_r S_r w_r w_rᵀ], Eq. (hpg-hessian), with given values S_r of sech²."""
    return F.scale * (F.lam * np.eye(F.w.shape[1]) + (F.w.T * (F.a * sech2)) @ F.w)


def ridge_range(F: Hyperbolic) -> tuple[np.ndarray, np.ndarray]:
    """The (lowest, highest) v_r = (w_rᵀp − b_r)/ρ_r over the simplex, `[R]` each, at vertices."""
    return (F.w.min(axis=1) - F.b) / F.rho, (F.w.max(axis=1) - F.b) / F.rho


def sech2_range(F: Hyperbolic) -> tuple[np.ndarray, np.ndarray]:
    """The (lowest, highest) sech²(v_r) over the simplex, `[R]` each."""
    low, high = ridge_range(F)
    nearest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    farthest = np.maximum(np.abs(low), np.abs(high))
    return np.exp(-2 * _np_log_cosh(farthest)), np.exp(-2 * _np_log_cosh(nearest))


@singledispatch
def mean_curvature(F: Generator, K: int, *, key: jax.Array) -> jax.Array:
    """The mean of trace(H(p))/K over Dirichlet(1) draws."""
    points = simplex.interior(simplex.uniform(key, K, DRAWS))
    return jnp.mean(jax.lax.map(lambda p: jnp.trace(jax.hessian(F)(p)), points, batch_size=64)) / K


@mean_curvature.register
def _(F: Quadratic, K: int, *, key: jax.Array) -> jax.Array:
    edge.same_classes("F", F.A.shape[0], K)
    return jnp.trace(F.A) / K


@mean_curvature.register
def _(F: Hyperbolic, K: int, *, key: jax.Array) -> jax.Array:
    """By trace(H) = s[λK + Σ_r a_r sech²(v_r)‖w_r‖²]: no K×K matrix for each draw."""
    edge.same_classes("F", F.w.shape[1], K)
    points = simplex.uniform(key, K, DRAWS).astype(F.w.dtype)
    v = (jnp.dot(points, F.w.T) - F.b[None]) / F.rho[None]
    sech2 = jnp.mean(1 - jnp.tanh(v) ** 2, axis=0)
    return F.scale * (F.lam + jnp.sum(F.a * sech2 * jnp.sum(F.w**2, axis=1)) / K)


def match_curvature(F: Generator, K: int, *, target, key: jax.Array) -> Generator:
    """F rescaled so that its mean curvature over the same draws is `target`."""
    edge.positive("target", target)
    return rescale(F, target / mean_curvature(F, K, key=key))


def _tangent_spectrum(A: np.ndarray) -> np.ndarray:
    basis = simplex.tangent_basis(len(A))
    return np.linalg.eigvalsh(basis.T @ A @ basis)


def _np_log_cosh(v: np.ndarray) -> np.ndarray:
    return np.logaddexp(v, -v) - np.log(2)
