"""What formulas say of the library's generators: curvature, range and Lipschitz constant.

>>> import jax.numpy as jnp
>>> from pgeom.generators import quadratic
>>> formulas = known_formulas(quadratic(jnp.diag(jnp.array([1.0, 3.0]))), 2)
>>> formulas.envelope
Envelope(m=1.0, M=3.0, m_tangent=2.0, M_tangent=2.0, how='exact')
"""

import math
from functools import singledispatch
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from pgeom import checks, simplex, special
from pgeom.generators import Combination, Hyperbolic, Quadratic, SquaredNorm, parts
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


class Formulas(NamedTuple):
    """Bounds on K classes, and how they hold: see `Envelope`.

    Attributes:
      m, M, m_tangent, M_tangent: of the curvature.
      loss_range: the largest loss.
      lipschitz: the Lipschitz constant of p ↦ H(p).
      tangent_lipschitz: that of its restriction to the tangent space.
      how: 'exact' or 'closed form'.
    """

    m: float
    M: float
    m_tangent: float
    M_tangent: float
    loss_range: float
    lipschitz: float
    tangent_lipschitz: float
    how: str

    @property
    def envelope(self) -> Envelope:
        return Envelope(*self[:4], self.how)


@singledispatch
def known_formulas(F: Generator, K: int) -> Formulas | None:
    """The formulas for F on K classes, or None if there are none."""
    return None


@known_formulas.register
def _(F: SquaredNorm, K: int) -> Formulas:
    return Formulas(2.0, 2.0, 2.0, 2.0, 2.0, 0.0, 0.0, "exact")


@known_formulas.register
def _(F: Quadratic, K: int) -> Formulas:
    """The loss is convex in p, so its maximum is at a vertex, ½(e_i − e_j)ᵀA(e_i − e_j)."""
    A = np.asarray(F.A, np.float64)
    checks.check_same_classes("F", A.shape[0], K)
    diagonal = np.diag(A)
    largest = np.max(0.5 * (diagonal[:, None] + diagonal[None]) - A)
    full, tangent = np.linalg.eigvalsh(A), _tangent_spectrum(A)
    return _formulas([full[0], full[-1], tangent[0], tangent[-1], largest, 0, 0], "exact")


@known_formulas.register
def _(F: Hyperbolic, K: int) -> Formulas:
    """The largest loss is at most λ plus every ridge at its own worst vertex, and at most M_T."""
    checks.check_same_classes("F", F.w.shape[1], K)
    with jax.enable_x64(True):
        F = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), F)
        v = (F.w - F.b[:, None]) / F.rho[:, None]
        between = v[:, :, None] - v[:, None, :]  # [R, y, k]
        ridges = jax.jit(special.log_cosh_divergence)(v[:, None, :], between)
    worst = np.sum((F.a * F.rho**2)[:, None] * np.max(np.asarray(ridges), axis=2), axis=0)
    norms = np.linalg.norm(F.w, axis=1)
    low, high = sech2_range(F)
    M_tangent = _tangent_spectrum(ridge_hessian(F, high))[-1]

    slope = F.a / F.rho
    peak = 4 / (3 * math.sqrt(3))  # the maximum of |2 tanh v sech² v|, at tanh v = ±1/√3
    tangent = F.w - F.w.mean(axis=1, keepdims=True)
    weights = slope * _steepest(*ridge_range(F)) * np.linalg.norm(tangent, axis=1)
    return _formulas(
        [
            F.scale * F.lam,
            F.scale * (F.lam + np.sum(F.a * norms**2)),
            _tangent_spectrum(ridge_hessian(F, low))[0],
            M_tangent,
            min(np.max(F.scale * (F.lam + worst)), M_tangent),
            F.scale * np.sum(peak * slope * norms**3),
            F.scale * np.linalg.eigvalsh((tangent.T * weights) @ tangent)[-1],
        ],
        "closed form",
    )


@known_formulas.register
def _(F: Combination, K: int) -> Formulas | None:
    """Sums over the parts, if all of them are known; the largest loss is at most M_T, too."""
    total = np.zeros(7)
    for c, part in parts(F):
        if (known := known_formulas(part, K)) is None:
            return None
        total += float(c) * np.array(known[:7])
    known = _formulas(total, "closed form")
    return known._replace(loss_range=min(known.loss_range, known.M_tangent))


def ridge_hessian(F: Hyperbolic, sech2: Float[np.ndarray, " R"]) -> Float[np.ndarray, "K K"]:
    """s[λI + Σ_r a_r S_r w_r w_rᵀ], Eq. (hpg-hessian), for given values S_r of sech²."""
    return F.scale * (F.lam * np.eye(F.w.shape[1]) + (F.w.T * (F.a * sech2)) @ F.w)


def ridge_range(F: Hyperbolic) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, " R"]]:
    """The (lowest, highest) v_r = (w_rᵀp − b_r)/ρ_r over the simplex, attained at vertices."""
    return (F.w.min(axis=1) - F.b) / F.rho, (F.w.max(axis=1) - F.b) / F.rho


def sech2_range(F: Hyperbolic) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, " R"]]:
    """The (lowest, highest) sech²(v_r) over the simplex."""
    low, high = ridge_range(F)
    nearest = np.clip(0.0, low, high)
    farthest = np.maximum(np.abs(low), np.abs(high))
    return _sech2(farthest), _sech2(nearest)


def _sech2(v: np.ndarray) -> np.ndarray:
    return np.exp(-2 * (np.logaddexp(v, -v) - np.log(2)))


def _steepest(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The maximum of |2 tanh v sech² v| over low ≤ v ≤ high."""
    turn = math.atanh(1 / math.sqrt(3))
    candidates = [low, high, np.clip(turn, low, high), np.clip(-turn, low, high)]
    tanh = np.tanh(np.stack(candidates))
    return np.max(np.abs(2 * tanh * (1 - tanh**2)), axis=0)


def _tangent_spectrum(A: np.ndarray) -> np.ndarray:
    basis = simplex.tangent_basis(len(A))
    return np.linalg.eigvalsh(basis.T @ A @ basis)


def _formulas(numbers: list | np.ndarray, how: str) -> Formulas:
    return Formulas(*map(float, numbers), how=how)
