"""Lemma (regret): conditional regret is a Bregman divergence between quadratic bounds.

    R(η, p) − R(η, η) = D_F(η, p),    m/2 ‖η − p‖² ≤ D_F(η, p) ≤ M/2 ‖η − p‖²

Sharper: the tangent envelope m_T, M_T for m, M, and for HPG a matrix on either side,
½dᵀH⁻d ≤ D_F ≤ ½dᵀH⁺d, with each ridge's smallest and largest sech² over the simplex.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.compilation import quick_jit
from pgeom.geometry import curvature, envelopes, simplex
from pgeom.geometry.bregman import bregman_divergence, bregman_score, conditional_risk
from proofs_numeric import configurations, probes
from proofs_numeric.check import Check, above, agrees, attains, below, for_each
from proofs_numeric.configurations import Configurations

LABEL = "Lemma (regret)"
QUADRATIC = "Eq. (bregman-quadratic)"
IDENTITY = 1e-12  # relative to the largest curvature, where that exceeds one


def checks(
    K: int,
    *,
    divergence: Callable = bregman_divergence,
    envelope: Callable = curvature.envelope,
) -> list[Check]:
    """Every check of the lemma on K classes, with the divergence and envelope under test."""
    ridges = configurations.hyperbolics(K)
    return [
        *capm_checks(K, divergence=divergence, envelope=envelope),
        *of_ridges(ridges, divergence, envelope),
        *searched(ridges, divergence, envelope),
    ]


def capm_checks(
    K: int, *, divergence: Callable = bregman_divergence, envelope: Callable = curvature.envelope
) -> list[Check]:
    """CAPM: the identity, its closed form, and the bounds, attained along eigenvectors."""
    found = configurations.quadratics(K)
    A = found.stacked.A
    basis = simplex.tangent_basis(K)
    directions = np.linalg.eigh(basis.T @ A @ basis)[1].transpose(0, 2, 1) @ basis.T
    eta, p = _pairs(found)
    eta = np.concatenate([eta, np.full(directions.shape, 1 / K)], axis=1)
    p = np.concatenate([p, 1 / K + 0.5 / K * directions], axis=1)
    values, errors = _evaluate(found.stacked, eta, p, divergence=divergence)
    d, how = eta - p, f"{p.shape[1]} pairs, eigenvectors among them"
    closed, square = 0.5 * np.einsum("cni,cij,cnj->cn", d, A, d), np.sum(d**2, axis=2)
    apart = square > 1e-4
    ratios = 2 * np.asarray(values) / np.where(apart, square, 1.0)
    m, M, m_T, M_T = found.each_of(envelope, "m", "M", "m_tangent", "M_tangent")
    low, high = ratios.min(1, where=apart, initial=np.inf), ratios.max(1, where=apart, initial=0)
    gap = np.abs(values - closed).max(axis=1) / np.maximum(1, M)
    return [
        *_identity(found, errors, M, how),
        *for_each(
            agrees, "CAPM: D = ½dᵀAd", "Prop. (capm)", found, how, error=gap, tolerance=IDENTITY
        ),
        *for_each(above, *LOWER, found, how, observed=low, paper=m, sharp=m_T),
        *for_each(below, *UPPER, found, how, observed=high, paper=M, sharp=M_T),
        *for_each(attains, "CAPM: m_T is attained", "§2.1", found, how, observed=m_T, sharp=low),
        *for_each(attains, "CAPM: M_T is attained", "§2.1", found, how, observed=high, sharp=M_T),
    ]


LOWER = ("½m‖η−p‖² ≤ D", QUADRATIC)
UPPER = ("D ≤ ½M‖η−p‖²", QUADRATIC)


def of_ridges(found: Configurations, divergence, envelope) -> list[Check]:
    """HPG: the identity."""
    eta, p = _pairs(found)
    _, errors = _evaluate(found.stacked, eta, p, divergence=divergence)
    (M,) = found.each_of(envelope, "M")
    return _identity(found, errors, M, f"{p.shape[1]} pairs")


def searched(found: Configurations, divergence, envelope) -> list[Check]:
    """HPG: the quadratic and the matrix bounds, the worst p sought for each of several η."""
    K = found.K
    ranges = [(F, *envelopes.sech2_range(F)) for F in found.each]
    low = np.stack([envelopes.ridge_hessian(F, least) for F, least, _ in ranges])
    high = np.stack([envelopes.ridge_hessian(F, most) for F, _, most in ranges])
    plain = np.broadcast_to(np.eye(K), low.shape)
    sides = np.stack([plain, plain, low, high], axis=1)
    eta = np.concatenate([np.eye(K)[:1], probes.draws(K, count=1, seed=3)])
    starts = np.concatenate([np.eye(K)[:3], probes.draws(K, count=1, seed=4)])
    extremes = _extremes(found.stacked, sides, eta, starts, divergence=divergence)
    lowest, highest, least, most = np.asarray(extremes).T
    m, M, m_T, M_T = found.each_of(envelope, "m", "M", "m_tangent", "M_tangent")
    how = f"ascents over p from {len(starts)} starts for each of {len(eta)} η"
    return [
        *for_each(above, *LOWER, found, how, observed=-lowest, paper=m, sharp=m_T),
        *for_each(below, *UPPER, found, how, observed=highest, paper=M, sharp=M_T),
        *for_each(above, "HPG: ½dᵀH⁻d ≤ D", "§2.1", found, how, observed=-least, sharp=1.0),
        *for_each(below, "HPG: D ≤ ½dᵀH⁺d", "§2.1", found, how, observed=most, sharp=1.0),
    ]


def _identity(found: Configurations, errors, M, how: str) -> list[Check]:
    error = np.abs(errors).max(axis=1) / np.maximum(1, M)
    claim = "R(η,p) − R(η,η) = D(η,p)"
    return for_each(agrees, claim, LABEL, found, how, error=error, tolerance=IDENTITY)


def _pairs(found: Configurations) -> tuple[np.ndarray, np.ndarray]:
    """The same pairs (η, p), `[c, n, K]` each, for every configuration."""
    points = probes.points(found.K, count=12)
    eta = np.concatenate([points, points])
    p = np.concatenate([np.roll(points, 1, axis=0), np.roll(points, 7, axis=0)])
    return tuple(np.broadcast_to(x, (len(found.names), *x.shape)) for x in (eta, p))


@partial(quick_jit, static_argnames="divergence")
def _evaluate(stacked, eta, p, *, divergence):
    """D(η, p) and the error of the regret identity, `[c, n]` each."""

    def one(F, eta, p):
        risk, D = conditional_risk(bregman_score(F)), divergence(F)(eta, p)
        return D, risk(eta, p) - risk(eta, eta) - D

    return jax.vmap(one)(stacked, eta, p)


@partial(quick_jit, static_argnames="divergence")
def _extremes(stacked, sides, eta, starts, *, divergence):
    """The extremes ± over (η, p) of D/(½dᵀHd), for the matrices H of `sides[c, 4, K, K]`."""
    signs = jnp.array([-1.0, 1.0, -1.0, 1.0])

    def one(F, H, sign, eta):
        def ratio(p):
            d = eta - p
            half = 0.5 * jnp.dot(d, jnp.dot(H, d))
            # nearer than this, D has lost the digits that the ratio is judged by
            return jnp.where(jnp.sum(d**2) > 1e-4, sign * divergence(F)(eta, p) / half, jnp.nan)

        return probes.highest(ratio, starts).value

    over_eta = jax.vmap(one, in_axes=(None, None, None, 0))
    over_sides = jax.vmap(over_eta, in_axes=(None, 0, 0, None))
    return jnp.max(jax.vmap(over_sides, in_axes=(0, 0, None, None))(stacked, sides, signs, eta), 2)
