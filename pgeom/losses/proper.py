"""Proper scores as losses on logits, and the paper's three objectives.

>>> import jax.numpy as jnp
>>> from pgeom.geometry.bregman import BregmanScore, bregman_score
>>> def cubic(p): return jnp.sum(p**3)
>>> loss = on_logits(bregman_score(cubic))
>>> loss(jnp.array([[2.0, 0.0, 1.0]]), jnp.array([0]))
Array([0.29194], dtype=float32)
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from pgeom import edge
from pgeom.geometry import margin
from pgeom.geometry.bregman import BregmanScore, bregman_score
from pgeom.geometry.generators import hyperbolic, quadratic, squared_norm
from pgeom.geometry.softmax import centred, softmax
from pgeom.types import Generator, Labels, Loss, Numbers, Score, Vectors


def on_logits(score: Score, temperature: ArrayLike = 1.0) -> Loss:
    """A score of softmax(z/T), as a loss on the logits z.

    Args:
      score: `score(p[..., K], labels) -> [...]`, from `bregman_score` or any other.
      temperature: T > 0.

    Returns:
      `loss(logits[..., K], labels) -> [...]`. Labels are integers `[...]`, or soft targets
      `[..., K]`, for which the value is the expected score. A logit of −∞ rules its class out.
    """
    edge.check_scalar("temperature", temperature)
    edge.check_positive("temperature", temperature)
    if isinstance(score, BregmanScore):
        label_values = score.score_labels_on_logits
        target_values = score.score_targets_on_logits
    else:
        floored = jax.vmap(lambda logits: softmax(logits, True))
        label_values = target_values = lambda logits, labels: score(floored(logits), labels)

    def tempered(values: Callable) -> Callable:
        if isinstance(temperature, (int, float)) and temperature == 1:
            return values
        return lambda logits, labels: values(
            centred(logits) / jnp.asarray(temperature, logits.dtype), labels
        )

    return edge.lift_targets(tempered(label_values), tempered(target_values))


def brier(logits: Vectors, labels: Labels) -> Float[Array, "*batch"]:
    """Σ_k (p_k − e_{y,k})² (Brier, 1950).

    Args:
      logits: `[..., K]`.
      labels: `[...]`, or soft targets `[..., K]`.

    Returns:
      `[...]`.
    """
    return _brier(logits, labels)


_brier = on_logits(bregman_score(squared_norm))


def capm(A: Numbers) -> Loss:
    """The class-aware quadratic loss ½ (e_y − p)ᵀA(e_y − p), Eq. (capm-loss)."""
    return on_logits(bregman_score(quadratic(A)))


def hpg(
    *, lam: ArrayLike, a: Numbers, rho: Numbers, w: Numbers, b: Numbers, scale: ArrayLike = 1.0
) -> Loss:
    """The hyperbolic proper loss: the score of the log-cosh ridges of Eq. (hpg-generator)."""
    return on_logits(bregman_score(hyperbolic(lam=lam, a=a, rho=rho, w=w, b=b, scale=scale)))


def apms(
    F: Generator,
    *,
    tau: ArrayLike,
    kappa: ArrayLike,
    nu: ArrayLike,
    beta0: ArrayLike,
    horizon: ArrayLike,
    power: ArrayLike = 1.0,
) -> Callable[[Vectors, Labels, ArrayLike], Float[Array, "..."]]:
    """The score of F with an annealed margin penalty, Eq. (apms-loss).

    ℓ_F(p, y) + β_t r(p, y),  β_t = β₀(1 − min(t/T_s, 1))^q. For β_t > 0 it is not proper.

    Args:
      F: the generator of the proper core.
      tau: τ > 0, the smoothing of the margin.
      kappa: κ, the required margin.
      nu: ν > 0, the softness of the penalty.
      beta0: β₀ ≥ 0.
      horizon: T_s > 0, in steps.
      power: q > 0.

    Returns:
      `loss(logits[..., K], labels, step) -> [...]`; labels `[...]`, or soft targets `[..., K]`.
    """
    margin.check_penalty(tau=tau, nu=nu)
    margin.check_annealing(beta0=beta0, horizon=horizon, power=power)
    core, constants = on_logits(bregman_score(F)), {"tau": tau, "kappa": kappa, "nu": nu}

    def label_penalties(logits, labels):
        return margin.penalty(jax.vmap(softmax)(logits), labels, **constants)

    def target_penalties(logits, targets):
        return margin.expected_penalty(jax.vmap(softmax)(logits), targets, **constants)

    penalty = edge.lift_targets(label_penalties, target_penalties)

    def loss(logits, labels, step):
        beta = margin.anneal(step, beta0=beta0, horizon=horizon, power=power)
        values = core(logits, labels)
        return values + beta.astype(values.dtype) * penalty(logits, labels)

    return loss
