"""Prop. (hpg), first part: the Hessian of HPG and its envelope mI ⪯ H(p) ⪯ MI.

    H(p) = s[λI + Σ a_r sech²(v_r) w_r w_rᵀ],    m = sλ,    M = s(λ + Σ a_r‖w_r‖²)

The eigenvalues that are compared with it come from autodiff of the generator, on the whole space
and on the tangent space, where the sharper m_T and M_T apply.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.compilation import quick_jit
from pgeom.diagnosis import curvature
from pgeom.generators import Hyperbolic
from proofs_numeric import configurations, probes
from proofs_numeric.check import Check, agreement, attainment, check_each, lower_bound, upper_bound
from proofs_numeric.configurations import Configurations

LABEL = "Prop. (hpg)"
NOT_CONVEX = "beyond the paper: D(η, ·) is not convex for HPG"
TANGENT = "beyond the paper: only the curvature along the simplex counts"


def hessian(F: Hyperbolic, p: jax.Array) -> jax.Array:
    """Eq. (hpg-hessian), `[K, K]`."""
    sech2 = 1 - jnp.tanh((jnp.dot(F.w, p) - F.b) / F.rho) ** 2
    return F.scale * (F.lam * jnp.eye(p.shape[0]) + jnp.dot(F.w.T * (F.a * sech2)[None], F.w))


def gradient(F: Hyperbolic, p: jax.Array) -> jax.Array:
    """Eq. (hpg-gradient), `[K]`."""
    tanh = jnp.tanh((jnp.dot(F.w, p) - F.b) / F.rho)
    return F.scale * (F.lam * (p - 1 / p.shape[0]) + jnp.dot(F.a * F.rho * tanh, F.w))


def divergence_hessian(F: Hyperbolic, eta: jax.Array, p: jax.Array) -> jax.Array:
    """∇²_p D(η, p) = s[λI + Σ a_r sech²(v_r)(1 − 2 tanh(v_r)(v_r − v_r(η))) w_r w_rᵀ], `[K, K]`."""
    v, at_eta = ((jnp.dot(F.w, x) - F.b) / F.rho for x in (p, eta))
    tanh = jnp.tanh(v)
    bend = F.a * (1 - tanh**2) * (1 - 2 * tanh * (v - at_eta))
    return F.scale * (F.lam * jnp.eye(p.shape[0]) + jnp.dot(F.w.T * bend[None], F.w))


def value(F: Hyperbolic, p: jax.Array) -> jax.Array:
    """Eq. (hpg-generator), as the library computes it."""
    return F(p)


def checks(
    K: int,
    *,
    envelope: Callable = curvature.envelope,
    generator: Callable = value,
    hessian: Callable = hessian,
    gradient: Callable = gradient,
    divergence_hessian: Callable = divergence_hessian,
) -> list[Check]:
    """Every check of the envelope on K classes, with the formulas under test."""
    ridges = configurations.hyperbolics(K)
    return [
        *check_capm(K, envelope=envelope),
        *check_closed_forms(ridges, generator, hessian, gradient),
        *check_divergence_hessian(ridges, divergence_hessian),
        *check_envelope(ridges, envelope, generator),
    ]


def check_capm(K: int, *, envelope: Callable = curvature.envelope) -> list[Check]:
    """CAPM: the Hessian is A at every p, and the envelope is exact."""
    cases = configurations.quadratics(K)
    p = probes.points(cases.K, count=1)
    difference, spectra = _metric_spectra(cases.stacked, p)
    m, M = cases.evaluate(envelope, "m", "M")
    low, high = np.asarray(spectra).min(axis=(1, 2)), np.asarray(spectra).max(axis=(1, 2))
    how = f"{len(p)} points"
    return [
        *check_each(
            agreement,
            "CAPM: ∇²F = A",
            "Prop. (capm)",
            cases,
            how,
            error=np.asarray(difference) / M,
            tolerance=1e-12,
        ),
        *check_each(
            attainment, "CAPM: m = λ_min(A)", "Prop. (capm)", cases, how, observed=m, paper=low
        ),
        *check_each(
            attainment, "CAPM: M = λ_max(A)", "Prop. (capm)", cases, how, observed=high, paper=M
        ),
    ]


def check_closed_forms(cases: Configurations, generator, hessian, gradient) -> list[Check]:
    """HPG: Eqs. (hpg-gradient) and (hpg-hessian) against autodiff of Eq. (hpg-generator)."""
    p = probes.points(cases.K, count=4)
    errors = _closed_form_errors(
        cases.stacked, p, generator=generator, hessian=hessian, gradient=gradient
    )
    how = f"autodiff at {len(p)} points, relative"
    names = ("HPG: ∇F as stated", "HPG: ∇²F as stated")
    labels = ("Eq. (hpg-gradient)", "Eq. (hpg-hessian)")
    return [
        check
        for name, label, error in zip(names, labels, errors, strict=True)
        for check in check_each(
            agreement, name, label, cases, how, error=np.asarray(error), tolerance=1e-11
        )
    ]


def check_divergence_hessian(cases: Configurations, stated) -> list[Check]:
    """HPG: the Hessian of D(η, ·), and that it is negative somewhere: D(η, ·) is not convex."""
    p = probes.points(cases.K, count=4)
    error, lowest = map(np.asarray, _divergence_hessians(cases.stacked, p, stated=stated))
    how, claim = f"autodiff at {len(p)} pairs, relative", "HPG: ∇²_p D(η,p) = s[λI + Σ…]"
    ridges = cases.select("random")
    least = lowest[[cases.names.index(name) for name in ridges.names]].min()
    found, bent = f"K={cases.K}, the same pairs: λ_min = {least:.3g}", "HPG: D(η, ·) is not convex"
    return [
        *check_each(agreement, claim, NOT_CONVEX, cases, how, error=error, tolerance=1e-11),
        upper_bound(bent, NOT_CONVEX, observed=least, sharp=0.0, how=found),
    ]


def check_envelope(cases: Configurations, envelope, generator) -> list[Check]:
    """HPG: the extreme eigenvalues over the simplex, and the instances that attain m and M."""
    starts = np.concatenate([probes.points(cases.K, count=1)[:3], probes.draws(cases.K, count=2)])
    extremes = np.asarray(_extremes(cases.stacked, starts, generator=generator))
    m_seen, M_seen, m_T_seen, M_T_seen = (extremes * np.array([-1, 1, -1, 1])).T
    m, M, m_T, M_T = cases.evaluate(envelope, "m", "M", "m_tangent", "M_tangent")
    how = f"ascents on the eigenvalue from the best of {len(starts)} starts"
    rows = [
        *check_each(lower_bound, "HPG: mI ⪯ H(p)", LABEL, cases, how, observed=m_seen, paper=m),
        *check_each(upper_bound, "HPG: H(p) ⪯ MI", LABEL, cases, how, observed=M_seen, paper=M),
        *check_each(
            lower_bound,
            "HPG: m ≤ m_T ≤ λ(ΠHΠ)",
            LABEL,
            cases,
            how,
            observed=m_T_seen,
            paper=m,
            sharp=m_T,
        ),
        *check_each(
            upper_bound,
            "HPG: λ(ΠHΠ) ≤ M_T ≤ M",
            LABEL,
            cases,
            how,
            observed=M_T_seen,
            paper=M,
            sharp=M_T,
        ),
    ]
    return rows + _check_attained(cases, m, m_T, m_T_seen, M, M_T, M_T_seen)


def _check_attained(cases: Configurations, m, m_T, m_T_seen, M, M_T, M_T_seen) -> list[Check]:
    """R < K − 1 leaves a tangent direction without ridge; Σw = 0 puts the ridge in the tangent."""
    one = cases.select("one ridge")
    i = cases.names.index(one.names[0])
    how = "along e₁ − e₂, through the centre"
    rows = [
        ("HPG: M is attained", LABEL, {"observed": M_T_seen[i], "paper": M[i]}),
        ("HPG: Σw = 0 gives M_T = M", TANGENT, {"observed": M_T[i], "paper": M[i]}),
    ]
    if cases.K > 2:
        rows += [
            ("HPG: m = sλ is attained", LABEL, {"observed": m[i], "paper": m_T_seen[i]}),
            ("HPG: R < K−1 gives m_T = sλ", TANGENT, {"observed": m[i], "sharp": m_T[i]}),
        ]
    return [
        check
        for claim, label, values in rows
        for check in check_each(attainment, claim, label, one, how, **values)
    ]


@quick_jit
def _metric_spectra(stacked, p):
    H = jax.vmap(lambda F: jax.vmap(jax.hessian(F))(p))(stacked)
    return jnp.max(jnp.abs(H - stacked.A[:, None]), axis=(1, 2, 3)), jnp.linalg.eigvalsh(H)


@partial(quick_jit, static_argnames=("generator", "hessian", "gradient"))
def _closed_form_errors(stacked, p, *, generator, hessian, gradient):
    def relative(ours, auto):
        return jnp.max(jnp.abs(ours - auto)) / jnp.max(jnp.abs(auto))

    def one(F):
        over = lambda f: jax.vmap(partial(f, F))(p)  # noqa: E731
        return (
            relative(over(gradient), over(jax.grad(generator, argnums=1))),
            relative(over(hessian), over(jax.hessian(generator, argnums=1))),
        )

    return jax.vmap(one)(stacked)


@partial(quick_jit, static_argnames="stated")
def _divergence_hessians(stacked, p, *, stated):
    """The relative error of ∇²_p D(η, p) over pairs, and its least eigenvalue, `[c]` each."""
    eta = jnp.roll(p, 1, axis=0)

    def one(F):
        # the definition, because the library's form is not differentiable where p_k is 0
        def D(p, eta):
            return F(eta) - F(p) - jnp.dot(jax.grad(F)(p), eta - p)

        auto = jax.vmap(jax.hessian(D))(p, eta)
        ours = jax.vmap(lambda p, eta: stated(F, eta, p))(p, eta)
        error = jnp.max(jnp.abs(ours - auto)) / jnp.max(jnp.abs(auto))
        return error, jnp.min(jnp.linalg.eigvalsh(auto))

    return jax.vmap(one)(stacked)


@partial(quick_jit, static_argnames="generator")
def _extremes(stacked, starts, *, generator):
    """−λ_min, λ_max on the whole space and on the tangent space, the largest found, `[c, 4]`."""
    K = starts.shape[1]
    mean = jnp.full((K, K), 1 / K)
    onto = jnp.stack([jnp.eye(K), jnp.eye(K), jnp.eye(K) - mean, jnp.eye(K) - mean])
    signs = jnp.array([-1.0, 1.0, -1.0, 1.0])

    def one(F, P, sign):
        def eigenvalue(p):
            H = jnp.dot(P, jnp.dot(jax.hessian(generator, argnums=1)(F, p), P))
            # the projected matrix has an eigenvalue 0 for 1; put it out of the way of the least
            return jnp.linalg.eigvalsh(sign * H - (1 + jnp.trace(H)) * (jnp.eye(K) - P))[-1]

        return probes.maximise_inside(eigenvalue, starts).value

    over_sides = jax.vmap(one, in_axes=(None, 0, 0))
    return jax.vmap(over_sides, in_axes=(0, None, None))(stacked, onto, signs)
