"""Curvature envelopes by formula: those of structured generators and their sums.

>>> import jax.numpy as jnp
>>> from pgeom.geometry.generators import quadratic
>>> known_envelope(quadratic(jnp.diag(jnp.array([1.0, 3.0]))), 2)
Envelope(m=1.0, M=3.0, m_tangent=2.0, M_tangent=2.0, how='exact')
"""

from collections.abc import Sequence
from functools import singledispatch
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from pgeom import edge
from pgeom.geometry import simplex
from pgeom.geometry.closed_forms import Combination, parts
from pgeom.geometry.generators import Hyperbolic, Quadratic, SquaredNorm
from pgeom.types import Generator


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
    edge.check_same_classes("F", A.shape[0], K)
    full, tangent = np.linalg.eigvalsh(A), _tangent_spectrum(A)
    return _envelope([full[0], full[-1], tangent[0], tangent[-1]], "exact")


@known_envelope.register
def _(F: Hyperbolic, K: int) -> Envelope:
    edge.check_same_classes("F", F.w.shape[1], K)
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
