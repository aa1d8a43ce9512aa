"""Prop. (hpg), first part: the Hessian of HPG and its envelope mI ⪯ H(p) ⪯ MI.

    H(p) = s[λI + Σ a_r sech²(v_r) w_r w_rᵀ],    m = sλ,    M = s(λ + Σ a_r‖w_r‖²)

The eigenvalues that are compared with it come from autodiff of the generator, on the whole space
and on the tangent space, where the sharper m_T and M_T apply.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.numpy.linalg import eigvalsh

from pgeom.diagnosis import curvature
from pgeom.generators import Hyperbolic
from proofs_numeric.claims import Cases, Claim, Family
from proofs_numeric.configurations import hyperbolics, quadratics
from proofs_numeric.regret import ENVELOPE, TANGENT
from proofs_numeric.search import draws, max_abs, maximise, points

NOT_CONVEX = "beyond the paper: D(η, ·) is not convex for HPG"


def generator(F: Hyperbolic, p: jax.Array) -> jax.Array:
    """Eq. (hpg-generator), as the library computes it."""
    return F(p)


def gradient(F: Hyperbolic, p: jax.Array) -> jax.Array:
    """Eq. (hpg-gradient), `[K]`."""
    tanh = jnp.tanh((F.w @ p - F.b) / F.rho)
    return F.scale * (F.lam * (p - 1 / p.shape[0]) + ((F.a * F.rho * tanh) @ F.w))


def hessian(F: Hyperbolic, p: jax.Array) -> jax.Array:
    """Eq. (hpg-hessian), `[K, K]`."""
    return _with_ridges(F, 1 - jnp.tanh((F.w @ p - F.b) / F.rho) ** 2)


def divergence_hessian(F: Hyperbolic, eta: jax.Array, p: jax.Array) -> jax.Array:
    """∇²_p D(η, p) = s[λI + Σ a_r sech²(v_r)(1 − 2 tanh(v_r)(v_r − v_r(η))) w_r w_rᵀ], `[K, K]`."""
    tanh, moved = jnp.tanh((F.w @ p - F.b) / F.rho), F.w @ (p - eta) / F.rho
    return _with_ridges(F, (1 - tanh**2) * (1 - 2 * tanh * moved))


def _with_ridges(F: Hyperbolic, bends: jax.Array) -> jax.Array:
    """s[λI + Σ a_r·bend_r·w_r w_rᵀ]."""
    return F.scale * (F.lam * jnp.eye(F.w.shape[1]) + (F.w.T * (F.a * bends)[None]) @ F.w)


def measure_metrics(cases: Cases) -> dict:
    """CAPM: the Hessian is A at every p, and the envelope is exact."""

    def one(F, p):
        H = jax.vmap(jax.hessian(F))(p)
        spectra = eigvalsh(H)
        wrong = max_abs(H - F.A[None])
        return {"wrong": wrong, "least": jnp.min(spectra), "most": jnp.max(spectra)}

    q = cases.map(one, points(cases.K, count=1)) | cases.evaluate(curvature.envelope, **ENVELOPE)
    return q | {"wrong": q["wrong"] / q["M"]}


def measure_ridges(
    cases: Cases,
    generator=generator,
    gradient=gradient,
    hessian=hessian,
    divergence_hessian=divergence_hessian,
) -> dict:
    """HPG: closed forms against autodiff, and ascents on the eigenvalues."""
    K = cases.K
    onto = np.eye(K) - np.array([0, 0, 1, 1])[:, None, None] / K  # the tangent space, twice
    starts = np.concatenate([points(K, count=1)[:3], draws(K, count=2)])

    def relative(stated, derived, *points):
        stated, derived = jax.vmap(stated)(*points), jax.vmap(derived)(*points)
        return max_abs(stated - derived) / max_abs(derived), derived

    def one(F, p, starts, onto):
        def D(eta, p):
            # the definition, because the library's form is not differentiable where p_k is 0
            return F(eta) - F(p) - (jax.grad(F)(p) @ (eta - p))

        def extreme(P, sign):
            def eigenvalue(p):
                H = P @ jax.hessian(generator, argnums=1)(F, p) @ P
                # the projected matrix has an eigenvalue 0 for 1: out of the way of the least
                return eigvalsh(sign * H - (1 + jnp.trace(H)) * (jnp.eye(K) - P))[-1]

            return maximise(eigenvalue, starts).value

        derive = partial(generator, F)
        bent, derived = relative(
            partial(divergence_hessian, F), jax.hessian(D, argnums=1), jnp.roll(p, 1, axis=0), p
        )
        signs = jnp.array([-1.0, 1.0, -1.0, 1.0])
        found = signs * jax.vmap(extreme)(onto, signs)
        return {
            "∇F": relative(partial(gradient, F), jax.grad(derive), p)[0],
            "∇²F": relative(partial(hessian, F), jax.hessian(derive), p)[0],
            "∇²D": bent,
            "lowest": jnp.min(eigvalsh(derived)),
        } | dict(zip(("least", "most", "least_T", "most_T"), found, strict=True))

    q = cases.map(one, points(K, count=4), starts, onto)
    lowest = min(x for x, name in zip(q["lowest"], cases.names, strict=True) if "random" in name)
    return q | cases.evaluate(curvature.envelope, **ENVELOPE) | {"lowest": lowest}


METRICS = Family(
    quadratics,
    measure_metrics,
    (
        Claim("CAPM: ∇²F = A", "Prop. (capm)", "wrong ~ 1e-12"),
        Claim("CAPM: m = λ_min(A)", "Prop. (capm)", "m = least"),
        Claim("CAPM: M = λ_max(A)", "Prop. (capm)", "most = M"),
    ),
    how="eigenvalues of the autodiff Hessian at points",
    false={"M × 0.999": {"M": 0.999}, "m × 1.001": {"m": 1.001}},
    datasets=True,
)
RIDGES = Family(
    hyperbolics,
    measure_ridges,
    (
        Claim("HPG: ∇F as stated", "Eq. (hpg-gradient)", "∇F ~ 1e-11", how="autodiff, relative"),
        Claim("HPG: ∇²F as stated", "Eq. (hpg-hessian)", "∇²F ~ 1e-11", how="autodiff, relative"),
        Claim("HPG: ∇²_p D(η,p) = s[λI + Σ…]", NOT_CONVEX, "∇²D ~ 1e-11", how="autodiff, relative"),
        Claim("HPG: D(η, ·) is not convex", NOT_CONVEX, "lowest ≤ 0", on="ridges 0"),
        Claim("HPG: mI ⪯ H(p)", "Prop. (hpg)", "least ≥ m"),
        Claim("HPG: H(p) ⪯ MI", "Prop. (hpg)", "most ≤ M"),
        Claim("HPG: m ≤ m_T ≤ λ(ΠHΠ)", "Prop. (hpg)", "least_T ≥ m_T ≥ m"),
        Claim("HPG: λ(ΠHΠ) ≤ M_T ≤ M", "Prop. (hpg)", "most_T ≤ M_T ≤ M"),
        # R < K − 1 leaves a tangent direction without ridge; Σw = 0 puts the ridge in the tangent
        Claim("HPG: M is attained", "Prop. (hpg)", "most_T = M", "one ridge"),
        Claim("HPG: Σw = 0 gives M_T = M", TANGENT, "M_T = M", "one ridge"),
        Claim("HPG: m = sλ is attained", "Prop. (hpg)", "m = least_T", "one ridge", least=3),
        Claim("HPG: R < K−1 gives m_T = sλ", TANGENT, "m = m_T", "one ridge", least=3),
    ),
    how="ascents on the eigenvalue",
    false={
        "ρ² → ρ": {"generator": lambda F, p: replace(F, a=F.a / F.rho)(p)},
        "u dropped from ∇F": {
            "gradient": lambda F, p: gradient(F, p) + F.scale * F.lam / p.shape[0]
        },
        "ρ dropped from ∇F": {"gradient": lambda F, p: gradient(replace(F, a=F.a / F.rho), p)},
        "s dropped from H": {"hessian": lambda F, p: hessian(F, p) / F.scale},
        "sign of the ridges": {"hessian": lambda F, p: hessian(replace(F, a=-F.a), p)},
        "2 tanh → tanh in ∇²D": {
            "divergence_hessian": lambda F, eta, p: (
                0.5 * (divergence_hessian(F, eta, p) + hessian(F, p))
            )
        },
        "sign of tanh in ∇²D": {
            "divergence_hessian": lambda F, eta, p: (
                2 * hessian(F, p) - divergence_hessian(F, eta, p)
            )
        },
        "m × 1.001": {"m": 1.001},
        "M × 0.999": {"M": 0.999},
        "s dropped from M": {"M": 1 / 1.7},
    },
)
FAMILIES = METRICS, RIDGES
