"""Eqs. (prob-gradient) and (logit-gradient): the gradient of a score, and how large it gets.

    ∇_pℓ = H(p)(p − e_y),    ‖∇_pℓ‖ ≤ √2 M,    ‖∇_zℓ‖ ≤ M/(√2 T)
    J = ∂softmax(z/T)/∂z,    ‖J‖ ≤ 1/(2T)

Sharper: ‖∇_zℓ‖ ≤ (8√2/27) M_T/T. For 0 ⪯ A ⪯ M, |aᵀAb| ≤ (M/2)(‖a‖‖b‖ + aᵀb); with a = Ju, b = d,
that leaves ½(‖J‖‖d‖ + ‖Jd‖) ≤ 8√2/27 for J = Diag(p) − ppᵀ and d = p − e_y, which is searched for
the K at hand, and proved for every K in `every_class_count`.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.numpy.linalg import eigvalsh, norm

from pgeom import simplex
from pgeom.diagnosis import bounds, curvature
from pgeom.scores import bregman_score, on_logits
from proofs_numeric import every_class_count
from proofs_numeric.claims import Cases, Claim, Family
from proofs_numeric.configurations import hyperbolics, quadratics
from proofs_numeric.search import draws, max_abs, maximise, move_inside, over, points

LABEL = "Eq. (logit-gradient)"
SHARPER = "beyond the paper: the constant 8√2/27 and M_T in place of M/√2"
NEVER = "beyond the paper: M/(√2T) is never attained, because ‖J‖ and ‖d‖ are not largest together"
TEMPERATURES = (0.5, 2.0)


def gradient_form(F, p: jax.Array, y: jax.Array) -> jax.Array:
    """H(p)(p − e_y), Eq. (prob-gradient), `[K]`."""
    return jax.jvp(jax.grad(F), (p,), (p - simplex.vertex(y, p.shape[0], p.dtype),))[1]


def measure(cases: Cases, form=gradient_form) -> dict:
    """The form against autodiff, and ascents on the two norms for each label."""
    K = cases.K
    thirds = np.zeros((1, K))
    thirds[0, :2] = 1 / 3, 2 / 3

    def one(F, points, starts):
        score = bregman_score(F)

        def error(p, y):
            p, e_y = move_inside(p), simplex.vertex(y, K, p.dtype)
            stated = jax.grad(lambda p: -F(p) - jax.jvp(F, (p,), (e_y - p,))[1])(p)
            wrong = jnp.stack([stated, jax.grad(lambda p: score(p, y))(p)]) - form(F, p, y)[None]
            return max_abs(wrong)

        def sizes(p, y):
            h = gradient_form(F, p, y)
            return jnp.stack([norm(h), norm(p * (h - (p @ h)))])

        def steepest(y):
            best = over(lambda e: maximise(lambda p: e @ sizes(p, y), starts), jnp.eye(2))
            log_p = jnp.log(move_inside(best.point[1]))
            in_z = [norm(jax.grad(on_logits(score, T))(T * log_p, y)) for T in TEMPERATURES]
            return best.value[0], *in_z

        labels = jnp.arange(K)
        return over(error, points, labels).max(), *map(jnp.max, over(steepest, labels))

    starts = np.concatenate([thirds, np.eye(K)[1:2], draws(K, count=2, seed=6)])
    error, in_p, *in_z = cases.map(one, points(K, count=2), starts)
    q = cases.evaluate(curvature.envelope, M="M")
    q |= {"error": error / q["M"], "in_p": in_p, "√2M": math.sqrt(2) * q["M"], "16/27": 16 / 27}
    for T, size in zip(TEMPERATURES, in_z, strict=True):
        names = {f"paper{T}": "paper", f"sharp{T}": "sharp"}
        q |= cases.evaluate(partial(bounds.logit_gradient, temperature=T), **names)
        q |= {f"in_z{T}": size, f"share{T}": size / q[f"paper{T}"]}
    return q


def measure_softmax(cases: Cases) -> dict:
    """Ascents on ‖J‖ and on the product of norms; the cases are temperatures."""
    K = cases.K
    thirds, half = np.zeros((2, K))
    thirds[:2], half[:2] = (1 / 3, 2 / 3), 0.5
    d = thirds - np.eye(K)[0]

    def jacobian_norm(z, T):
        # the largest singular value, which is an eigenvalue
        return eigvalsh(jax.jacobian(lambda z: jax.nn.softmax(z / T))(z))[-1]

    def one(T, starts, scaled):
        def joint(p):
            d = p - simplex.vertex(0, K, p.dtype)
            push = norm(p * (d - (p @ d)))
            return 0.5 * (jacobian_norm(jnp.log(p), 1.0) * norm(d) + push)

        return {
            "norm": maximise(lambda p: jacobian_norm(T * jnp.log(p), T), starts).value,
            "at_half": jacobian_norm(T * scaled, T),
            "joint": maximise(joint, starts).value,
            "1/(2T)": 1 / (2 * T),
        }

    starts = np.concatenate([points(K, count=4), [half]])
    return cases.map(one, starts, np.where(half > 0, 0.0, -1e4)) | {
        "at_thirds": np.linalg.norm(thirds * (d - thirds @ d)),
        "proved": every_class_count.proved_constant(),
        "8√2/27": bounds.SHARP_GRADIENT,
    }


GRADIENTS = (
    Claim("∇_pℓ = H(p)(p − e_y)", "Eq. (prob-gradient)", "error ~ 1e-12", how="autodiff, relative"),
    Claim("‖∇_pℓ‖ ≤ √2 M", LABEL, "in_p ≤ √2M"),
    *(
        Claim("‖∇_zℓ‖ ≤ M/(√2T)", LABEL, f"in_z{T} ≤ sharp{T} ≤ paper{T}", how=f"T={T}, ascents")
        for T in TEMPERATURES
    ),
)
FALSE_FORMS = {
    "Eq. (prob-gradient) of label 0": {"form": lambda F, p, y: gradient_form(F, p, 0 * y)},
    "p for p − e_y": {"form": lambda F, p, y: jax.jvp(jax.grad(F), (p,), (p,))[1]},
}
METRICS = Family(
    lambda K: quadratics(K).select("seed 0|random|extremal"),  # each takes ascents
    measure,
    (
        *GRADIENTS,
        Claim("‖∇_pℓ‖ = √2 M is attained", LABEL, "in_p = √2M", "pair metric"),
        *(
            claim
            for T in TEMPERATURES
            for claim in (
                Claim("‖∇_zℓ‖ = (8√2/27) M_T/T", SHARPER, f"in_z{T} = sharp{T}", "identity"),
                Claim("‖∇_zℓ‖/(M/(√2T)) = 16/27 at best", NEVER, f"share{T} = 16/27", "identity"),
            )
        ),
    ),
    how="ascents over p for each label",
    false={
        **FALSE_FORMS,
        "√2 M → 1.4 M": {"√2M": 1.4 / math.sqrt(2)},
        "bound × 0.999": {"sharp2.0": 0.999},
        "T → T²": {"sharp0.5": 2, "paper0.5": 2},
        "16/27 → 3/5": {"16/27": 3 / 5 * 27 / 16},
        "16/27 → 4/7": {"16/27": 4 / 7 * 27 / 16},
    },
    datasets=True,
)
RIDGES = Family(
    hyperbolics, measure, GRADIENTS, how="ascents over p for each label", false=FALSE_FORMS
)
SOFTMAX = Family(
    lambda K: Cases(K, {f"T={T}": np.float64(T) for T in TEMPERATURES}),
    measure_softmax,
    (
        Claim("‖J‖ ≤ 1/(2T)", LABEL, "norm ≤ 1/(2T)"),
        Claim("‖J‖ = 1/(2T) at (½, ½)", LABEL, "at_half = 1/(2T)"),
        Claim("½(‖J‖‖d‖ + ‖Jd‖) ≤ 8√2/27", SHARPER, "joint ≤ 8√2/27"),
        Claim("8√2/27 is proved", SHARPER, "proved = 8√2/27", how="every K; see the module"),
        Claim("8√2/27 at p_y = 1/3", SHARPER, "at_thirds = 8√2/27", how="A = I"),
    ),
    how="ascents",
    false={
        "constant × 0.999": {"8√2/27": 0.999},
        "constant × 1.01": {"8√2/27": 1.01},
        "Jacobian 1/(2T²)": {"1/(2T)": lambda q: 2 * q["1/(2T)"] ** 2},
        "T dropped from ‖J‖": {"1/(2T)": lambda q: 0.5},
        "‖J‖ ≤ 1/T": {"1/(2T)": 2},
    },
)
FAMILIES = METRICS, RIDGES, SOFTMAX
