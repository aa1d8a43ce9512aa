"""Eqs. (prob-gradient) and (logit-gradient): the gradient of a score, and how large it gets.

    ∇_pℓ = H(p)(p − e_y),    ‖∇_pℓ‖ ≤ √2 M,    ‖J‖ ≤ 1/(2T),    ‖∇_zℓ‖ ≤ M/(√2 T)

Sharper: ‖∇_zℓ‖ ≤ (8√2/27) M_T/T. For 0 ⪯ A ⪯ M, |aᵀAb| ≤ (M/2)(‖a‖‖b‖ + aᵀb); with a = Ju, b = d,
that leaves ½(‖J‖‖d‖ + ‖Jd‖), which the module `softmax` bounds.
"""

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import simplex
from pgeom.compilation import quick_jit
from pgeom.diagnosis import bounds, curvature
from pgeom.scores import bregman_score, on_logits
from proofs_numeric import configurations, probes, softmax
from proofs_numeric.check import Check, agreement, attainment, check_each, upper_bound
from proofs_numeric.configurations import Configurations

LABEL = "Eq. (logit-gradient)"
NEVER = "beyond the paper: M/(√2T) is never attained, because ‖J‖ and ‖d‖ are not largest together"
BEST_RATIO = 16 / 27  # of ‖∇_zℓ‖ and M/(√2T)


def jacobian_bound(T):
    """1/(2T), the paper's bound on the softmax Jacobian."""
    return 1 / (2 * T)


def probability_bound(M):
    """√2 M, the paper's bound on ‖∇_pℓ‖."""
    return math.sqrt(2) * M


def gradient_form(F, p: jax.Array, y: jax.Array) -> jax.Array:
    """H(p)(p − e_y), Eq. (prob-gradient), `[K]`."""
    return jax.jvp(jax.grad(F), (p,), (p - simplex.vertex(y, p.shape[0], p.dtype),))[1]


def checks(
    K: int,
    *,
    form: Callable = gradient_form,
    best_ratio: float = BEST_RATIO,
    bound: Callable = bounds.logit_gradient,
    constant: float = bounds.SHARP_GRADIENT,
    jacobian: Callable = jacobian_bound,
    probability: Callable = probability_bound,
) -> list[Check]:
    """Every check of the gradient bounds on K classes, with the bounds under test."""
    return [
        *check_capm(K, form=form, bound=bound, probability=probability),
        *check_generators(configurations.hyperbolics(K), form, bound, probability),
        *softmax.checks(K, jacobian, constant),
        *check_attained(K, bound, probability),
        *check_never_attained(K, bound, best_ratio),
    ]


def check_capm(
    K: int,
    *,
    form: Callable = gradient_form,
    bound: Callable = bounds.logit_gradient,
    probability: Callable = probability_bound,
) -> list[Check]:
    """CAPM: the form of the gradient and its size, of one seed per dataset: each takes ascents."""
    cases = configurations.quadratics(K).select("seed 0", "random", "extremal")
    return check_generators(cases, form, bound, probability)


def check_generators(cases: Configurations, form, bound, probability) -> list[Check]:
    """The form of the gradient, and its size in p and in z, sought by ascents."""
    points, starts = probes.points(cases.K, count=2), probes.draws(cases.K, count=2, seed=6)
    results = _gradients(cases.stacked, points, starts, form=form)
    error, in_p, in_z = map(np.asarray, results)
    (M,) = cases.evaluate(curvature.envelope, "M")
    how = f"ascents over p for each label, {len(starts)} starts"
    rows = [
        *check_each(
            agreement,
            "∇_pℓ = H(p)(p − e_y)",
            "Eq. (prob-gradient)",
            cases,
            f"autodiff of the definition at {len(points)} points, each label",
            error=error / M,
            tolerance=1e-12,
        ),
        *check_each(
            upper_bound, "‖∇_pℓ‖ ≤ √2 M", LABEL, cases, how, observed=in_p, paper=probability(M)
        ),
    ]
    for i, T in enumerate(softmax.TEMPERATURES):
        paper, sharp = cases.evaluate(partial(bound, temperature=T), "paper", "sharp")
        columns = {"observed": in_z[:, i], "paper": paper, "sharp": sharp}
        rows += check_each(
            upper_bound, "‖∇_zℓ‖ ≤ M/(√2T)", LABEL, cases, f"T={T}, {how}", **columns
        )
    return rows


def check_attained(K: int, bound, probability) -> list[Check]:
    """(8√2/27) M_T/T at A = I, p = (1/3, 2/3); √2 M at the pair metric's p = e₂, y = 1."""
    T, metrics = softmax.TEMPERATURES[-1], configurations.quadratics(K)
    identity, pair = metrics.select("extremal: identity"), metrics.select("pair metric")
    p = np.zeros((1, K))
    p[0, :2] = 1 / 3, 2 / 3
    (sharp,) = identity.evaluate(partial(bound, temperature=T), "sharp")
    (M,) = pair.evaluate(curvature.envelope, "M")
    thirds, third_how = (
        np.linalg.norm(softmax.logit_gradient(p[0]), axis=0),
        f"p = (1/3, 2/3), T={T}",
    )
    steepest = np.linalg.norm(pair.generators[0].A @ (np.eye(K)[1] - np.eye(K)[0]))
    sharp_claim, paper_claim = "‖∇_zℓ‖ = (8√2/27) M_T/T", "‖∇_pℓ‖ = √2 M is attained"
    return [
        *check_each(
            attainment,
            sharp_claim,
            softmax.SHARPER,
            identity,
            third_how,
            observed=thirds / T,
            sharp=sharp,
        ),
        *check_each(
            attainment,
            paper_claim,
            LABEL,
            pair,
            "p = e₂, y = 1",
            observed=steepest,
            paper=probability(M),
        ),
    ]


def check_never_attained(K: int, bound, best_ratio: float) -> list[Check]:
    """‖∇_zℓ‖ is at most 16/27 of M/(√2T), which A = I reaches at p = (1/3, 2/3) for any T."""
    identity, p = configurations.quadratics(K).select("extremal: identity"), np.zeros(K)
    p[:2] = 1 / 3, 2 / 3
    rows = []
    for T in softmax.TEMPERATURES:
        (paper,) = identity.evaluate(partial(bound, temperature=T), "paper")
        ratio = np.linalg.norm(softmax.logit_gradient(p)) / T / paper
        columns = {"observed": ratio, "sharp": best_ratio}
        claim, how = "‖∇_zℓ‖/(M/(√2T)) = 16/27 at best", f"p = (1/3, 2/3), T={T}"
        rows += check_each(attainment, claim, NEVER, identity, how, **columns)
    return rows


@partial(quick_jit, static_argnames="form")
def _gradients(stacked, points, starts, *, form):
    """The error of Eq. (prob-gradient), the largest ‖∇_pℓ‖ `[c]`, and ‖∇_zℓ‖ `[c, T]`."""
    labels = jnp.arange(points.shape[1])

    def one(F):
        over_labels = jax.vmap(lambda p, y: _form_error(F, form, p, y), in_axes=(None, 0))
        errors = jax.vmap(over_labels, in_axes=(0, None))(points, labels)
        in_p, in_z = jax.vmap(lambda y: _steepest(F, y, starts))(labels)
        return jnp.max(errors), jnp.max(in_p), jnp.max(in_z, axis=0)

    return jax.vmap(one)(stacked)


def _form_error(F, form, p, y):
    """H(p)(p − e_y) against autodiff of the library's score and of Eq. (score) as it stands."""
    p, e_y = probes.move_inside(p), simplex.vertex(y, p.shape[0], p.dtype)
    slope = form(F, p, y)
    stated = jax.grad(lambda p: -F(p) - jax.jvp(F, (p,), (e_y - p,))[1])(p)
    library = jax.grad(lambda p: bregman_score(F)(p, y))(p)
    return jnp.maximum(jnp.max(jnp.abs(slope - stated)), jnp.max(jnp.abs(slope - library)))


def _steepest(F, y, starts):
    """The largest ‖∇_pℓ‖ found, and ‖∇_zℓ‖ of the library's loss where ‖JHd‖ is largest."""

    def sizes(p):
        h = jax.jvp(jax.grad(F), (p,), (p - simplex.vertex(y, p.shape[0], p.dtype),))[1]
        return jnp.stack([jnp.linalg.norm(h), jnp.linalg.norm(p * (h - jnp.dot(p, h)))])

    def largest(choice):
        return probes.maximise_inside(lambda p: jnp.dot(choice, sizes(p)), starts)

    optima = jax.vmap(largest)(jnp.eye(2))
    p = probes.move_inside(optima.point[1])

    def logit_slope(T):
        loss = on_logits(bregman_score(F), T)
        return jnp.linalg.norm(jax.grad(lambda z: loss(z, y))(T * jnp.log(p)))

    return optima.value[0], jax.vmap(logit_slope)(jnp.array(softmax.TEMPERATURES))
