"""Lemma (regret): conditional regret is a Bregman divergence between quadratic bounds.

    R(η, p) − R(η, η) = D_F(η, p),    m/2 ‖η − p‖² ≤ D_F(η, p) ≤ M/2 ‖η − p‖²

Sharper: the tangent envelope m_T, M_T for m, M, and for HPG a matrix on either side,
½dᵀH⁻d ≤ D_F ≤ ½dᵀH⁺d, with each ridge's smallest and largest sech² over the simplex.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.numpy.linalg import eigh

from pgeom import simplex
from pgeom.diagnosis import curvature, formulas
from pgeom.scores import bregman_divergence, bregman_score, conditional_risk
from proofs_numeric.claims import Cases, Claim, Family
from proofs_numeric.configurations import hyperbolics, quadratics
from proofs_numeric.search import draws, max_abs, maximise, over, points

ENVELOPE = {"m": "m", "M": "M", "m_T": "m_tangent", "M_T": "M_tangent"}
TANGENT = "beyond the paper: only the curvature along the simplex counts"
APART = 1e-4  # ‖η − p‖² below which D has lost the digits that its ratio to it is judged by

QUADRATIC_BOUNDS = (
    # errors are relative to the largest curvature, where that exceeds one
    Claim("R(η,p) − R(η,η) = D(η,p)", "Lemma (regret)", "error ~ 1e-12", how="pairs (η, p)"),
    Claim("½m‖η−p‖² ≤ D", "Eq. (bregman-quadratic)", "least ≥ m_T ≥ m"),
    Claim("D ≤ ½M‖η−p‖²", "Eq. (bregman-quadratic)", "most ≤ M_T ≤ M"),
)


def pairs(K: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (η, p), `[n, K]` each."""
    some = points(K, count=12)
    p = np.concatenate([np.roll(some, 1, axis=0), np.roll(some, 7, axis=0)])
    return np.concatenate([some, some]), p


def identity(F, eta, p, divergence):
    """D(η, p) and the error of the lemma, `[n]` each."""
    risk, D = conditional_risk(bregman_score(F)), divergence(F)(eta, p)
    return D, max_abs(risk(eta, p) - risk(eta, eta) - D)


def measure_metrics(cases: Cases, divergence=bregman_divergence) -> dict:
    """CAPM: the lemma, the closed form, and the bounds over pairs, eigenvectors among them."""

    def one(F, eta, p):
        basis = jnp.asarray(simplex.tangent_basis(cases.K))
        along = eigh(basis.T @ F.A @ basis)[1].T @ basis.T
        centre = jnp.full(along.shape, 1 / cases.K)
        eta, p = jnp.concatenate([eta, centre]), jnp.concatenate([p, centre * (1 + along / 2)])
        D, error = identity(F, eta, p, divergence)
        d = eta - p
        square, closed = jnp.sum(d**2, axis=1), 0.5 * jnp.einsum("ni,ij,nj->n", d, F.A, d)
        apart, wrong = square > APART, max_abs(D - closed)
        ratio = 2 * D / jnp.where(apart, square, 1)
        least = jnp.min(jnp.where(apart, ratio, jnp.inf))
        most = jnp.max(jnp.where(apart, ratio, -jnp.inf))
        return {"error": error, "wrong": wrong, "least": least, "most": most}

    q = cases.map(one, *pairs(cases.K)) | cases.evaluate(curvature.envelope, **ENVELOPE)
    size = np.maximum(1, q["M"])
    return q | {"error": q["error"] / size, "wrong": q["wrong"] / size}


def measure_ridges(cases: Cases, divergence=bregman_divergence) -> dict:
    """HPG: the lemma, and the extremes of D/½dᵀHd over p for several η, each H that bounds it."""
    K = cases.K
    sech2 = [formulas.sech2_range(F) for F in cases.values.values()]
    each = zip(cases.values.values(), sech2, strict=True)
    sides = [[np.eye(K)] * 2 + [formulas.ridge_hessian(F, s) for s in ends] for F, ends in each]

    def one(F, sides, eta, p, few, starts):
        def extreme(H, sign, eta):
            def ratio(p):
                d = eta - p
                half = 0.5 * (d @ H @ d)
                return jnp.where(
                    jnp.sum(d**2) > APART, sign * divergence(F)(eta, p) / half, jnp.nan
                )

            return maximise(ratio, starts).value

        signs = jnp.array([-1.0, 1.0, -1.0, 1.0])
        found = jax.vmap(lambda *side: over(partial(extreme, *side), few).max())(sides, signs)
        names = "least", "most", "lower", "upper"
        return dict(zip(names, signs * found, strict=True)), identity(F, eta, p, divergence)[1]

    few = np.concatenate([np.eye(K)[:1], draws(K, count=1, seed=3)])
    starts = np.concatenate([np.eye(K)[:3], draws(K, count=1, seed=4)])
    q, error = cases.map(one, *pairs(K), few, starts, beside=(np.array(sides),))
    q |= cases.evaluate(curvature.envelope, **ENVELOPE)
    return q | {"error": error / np.maximum(1, q["M"])}


def swapped_arguments(F):
    return lambda q, p: bregman_divergence(F)(p, q)


def gradient_at_q(F):
    def pair(q, p):
        return F(q) - F(p) - (jax.grad(F)(q) @ (q - p))

    return jnp.vectorize(pair, signature="(k),(k)->()")


METRICS = Family(
    quadratics,
    measure_metrics,
    (
        *QUADRATIC_BOUNDS,
        Claim("CAPM: D = ½dᵀAd", "Prop. (capm)", "wrong ~ 1e-12"),
        Claim("CAPM: m_T is attained", TANGENT, "m_T = least"),
        Claim("CAPM: M_T is attained", TANGENT, "most = M_T"),
    ),
    how="pairs (η, p), eigenvectors of A among them",
    false={
        "∇F at q": {"divergence": gradient_at_q},
        "M × 0.9": {"M": 0.9},
    },
    datasets=True,
)
RIDGES = Family(
    hyperbolics,
    measure_ridges,
    (
        *QUADRATIC_BOUNDS,
        Claim("HPG: ½dᵀH⁻d ≤ D", TANGENT, "lower ≥ 1"),
        Claim("HPG: D ≤ ½dᵀH⁺d", TANGENT, "upper ≤ 1"),
    ),
    how="ascents over p for several η",
    false={
        "swapped arguments of D": {"divergence": swapped_arguments},
        "∇F at q": {"divergence": gradient_at_q},
        "M × 0.9": {"M": 0.9},
        "m for M_T": {"M_T": lambda q: q["m"]},
    },
)
FAMILIES = METRICS, RIDGES
