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

from pgeom import simplex
from pgeom.compilation import quick_jit
from pgeom.diagnosis import curvature, formulas
from pgeom.scores import bregman_divergence, bregman_score, conditional_risk
from proofs_numeric import configurations, probes
from proofs_numeric.check import Check, agreement, attainment, check_each, lower_bound, upper_bound
from proofs_numeric.configurations import Configurations

LABEL = "Lemma (regret)"
QUADRATIC = "Eq. (bregman-quadratic)"
TANGENT = "beyond the paper: only the curvature along the simplex counts"
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
        *check_capm(K, divergence=divergence, envelope=envelope),
        *check_ridge_identity(ridges, divergence, envelope),
        *check_ridge_bounds(ridges, divergence, envelope),
    ]


def check_capm(
    K: int, *, divergence: Callable = bregman_divergence, envelope: Callable = curvature.envelope
) -> list[Check]:
    """CAPM: the identity, its closed form, and the bounds, attained along eigenvectors."""
    cases = configurations.quadratics(K)
    A = cases.stacked.A
    basis = simplex.tangent_basis(K)
    directions = np.linalg.eigh(basis.T @ A @ basis)[1].transpose(0, 2, 1) @ basis.T
    eta, p = _pairs(cases)
    eta = np.concatenate([eta, np.full(directions.shape, 1 / K)], axis=1)
    p = np.concatenate([p, 1 / K + 0.5 / K * directions], axis=1)
    values, errors = _evaluate(cases.stacked, eta, p, divergence=divergence)
    d, how = eta - p, f"{p.shape[1]} pairs, eigenvectors among them"
    closed, square = 0.5 * np.einsum("cni,cij,cnj->cn", d, A, d), np.sum(d**2, axis=2)
    apart = square > 1e-4
    ratios = 2 * np.asarray(values) / np.where(apart, square, 1.0)
    m, M, m_T, M_T = cases.evaluate(envelope, "m", "M", "m_tangent", "M_tangent")
    low, high = ratios.min(1, where=apart, initial=np.inf), ratios.max(1, where=apart, initial=0)
    gap = np.abs(values - closed).max(axis=1) / np.maximum(1, M)
    return [
        *_check_identity(cases, errors, M, how),
        *check_each(
            agreement, "CAPM: D = ½dᵀAd", "Prop. (capm)", cases, how, error=gap, tolerance=IDENTITY
        ),
        *check_each(lower_bound, *LOWER, cases, how, observed=low, paper=m, sharp=m_T),
        *check_each(upper_bound, *UPPER, cases, how, observed=high, paper=M, sharp=M_T),
        *check_each(
            attainment, "CAPM: m_T is attained", TANGENT, cases, how, observed=m_T, sharp=low
        ),
        *check_each(
            attainment, "CAPM: M_T is attained", TANGENT, cases, how, observed=high, sharp=M_T
        ),
    ]


LOWER = ("½m‖η−p‖² ≤ D", QUADRATIC)
UPPER = ("D ≤ ½M‖η−p‖²", QUADRATIC)


def check_ridge_identity(cases: Configurations, divergence, envelope) -> list[Check]:
    """HPG: the identity."""
    eta, p = _pairs(cases)
    _, errors = _evaluate(cases.stacked, eta, p, divergence=divergence)
    (M,) = cases.evaluate(envelope, "M")
    return _check_identity(cases, errors, M, f"{p.shape[1]} pairs")


def check_ridge_bounds(cases: Configurations, divergence, envelope) -> list[Check]:
    """HPG: the quadratic and the matrix bounds, the worst p sought for each of several η."""
    K = cases.K
    ranges = [(F, *formulas.sech2_range(F)) for F in cases.generators]
    low = np.stack([formulas.ridge_hessian(F, least) for F, least, _ in ranges])
    high = np.stack([formulas.ridge_hessian(F, most) for F, _, most in ranges])
    plain = np.broadcast_to(np.eye(K), low.shape)
    sides = np.stack([plain, plain, low, high], axis=1)
    eta = np.concatenate([np.eye(K)[:1], probes.draws(K, count=1, seed=3)])
    starts = np.concatenate([np.eye(K)[:3], probes.draws(K, count=1, seed=4)])
    extremes = _extremes(cases.stacked, sides, eta, starts, divergence=divergence)
    lowest, highest, least, most = np.asarray(extremes).T
    m, M, m_T, M_T = cases.evaluate(envelope, "m", "M", "m_tangent", "M_tangent")
    how = f"ascents over p from {len(starts)} starts for each of {len(eta)} η"
    return [
        *check_each(lower_bound, *LOWER, cases, how, observed=-lowest, paper=m, sharp=m_T),
        *check_each(upper_bound, *UPPER, cases, how, observed=highest, paper=M, sharp=M_T),
        *check_each(
            lower_bound, "HPG: ½dᵀH⁻d ≤ D", TANGENT, cases, how, observed=-least, sharp=1.0
        ),
        *check_each(upper_bound, "HPG: D ≤ ½dᵀH⁺d", TANGENT, cases, how, observed=most, sharp=1.0),
    ]


def _check_identity(cases: Configurations, errors, M, how: str) -> list[Check]:
    error = np.abs(errors).max(axis=1) / np.maximum(1, M)
    claim = "R(η,p) − R(η,η) = D(η,p)"
    return check_each(agreement, claim, LABEL, cases, how, error=error, tolerance=IDENTITY)


def _pairs(cases: Configurations) -> tuple[np.ndarray, np.ndarray]:
    """The same pairs (η, p), `[c, n, K]` each, for every configuration."""
    points = probes.points(cases.K, count=12)
    eta = np.concatenate([points, points])
    p = np.concatenate([np.roll(points, 1, axis=0), np.roll(points, 7, axis=0)])
    shape = len(cases.names), *eta.shape
    return np.broadcast_to(eta, shape), np.broadcast_to(p, shape)


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

        return probes.maximise_inside(ratio, starts).value

    over_eta = jax.vmap(one, in_axes=(None, None, None, 0))
    over_sides = jax.vmap(over_eta, in_axes=(None, 0, 0, None))
    return jnp.max(jax.vmap(over_sides, in_axes=(0, 0, None, None))(stacked, sides, signs, eta), 2)
