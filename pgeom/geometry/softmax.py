"""Probabilities, log-probabilities and log-odds of logits, accurate close to a vertex too.

>>> import jax.numpy as jnp
>>> cross_entropy(jnp.array([20.0, 0.0]), 0)    # log(1 + e^−20), where p_y itself rounds to one
Array(2.0612e-09, dtype=float32)
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pgeom.geometry import simplex
from pgeom.geometry.derivatives import sum_of_slopes
from pgeom.types import Label


@jax.custom_jvp
def sigmoid(u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """σ(u) = 1/(1 + e^{−u}), elementwise."""
    return jax.nn.sigmoid(u)


@sigmoid.defjvp
def _sigmoid_jvp(primals, tangents):
    # By hand because JAX computes σ(1 − σ), where 1 − σ is all rounding for u ≫ 0.
    (u,), (u_dot,) = primals, tangents
    return sigmoid(u), sigmoid(u) * sigmoid(-u) * u_dot


@jax.custom_jvp
def softplus(u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """log(1 + eᵘ), elementwise."""
    return jax.nn.softplus(u)


@softplus.defjvp
def _softplus_jvp(primals, tangents):
    # By hand because the second derivative is σ(u)σ(−u), as above.
    (u,), (u_dot,) = primals, tangents
    return softplus(u), sigmoid(u) * u_dot


def centred(logits: Float[Array, "*batch K"]) -> Float[Array, "*batch K"]:
    """The logits less the largest of them, on which no loss depends.

    What multiplies them rounds relative to the gaps between them, not to what they have in common.
    """
    largest = jax.lax.stop_gradient(jnp.max(logits, axis=-1, keepdims=True))
    return logits - jnp.where(jnp.isfinite(largest), largest, 0.0)


@jax.custom_jvp
def log_odds_against(
    logits: Float[Array, " K"], label: Label, offsets: Float[Array, " K"] | None = None
) -> Float[Array, ""]:
    """u = log(Σ_{j≠y} e^{z_j}) − z_y, the log-odds against the label.

    p_y = σ(−u), 1 − p_y = σ(u) and −log p_y = softplus(u), each accurate near p_y = 0 and p_y = 1
    alike; log_softmax is accurate only near 0. A logit of −∞ rules its class out.

    Args:
      logits: z.
      label: y.
      offsets: to be added to z, of which they need not be a small part to keep their digits.
    """
    top, terms = _terms_of_others(logits, label, offsets)
    # the difference of logits first, which loses nothing that they have in common
    ahead = top - simplex.pick(logits, label)
    if offsets is not None:
        ahead = ahead - offsets[label]
    return ahead + jnp.log(jnp.sum(terms))


@log_odds_against.defjvp
def _log_odds_against_jvp(primals, tangents):
    # By hand because autodiff divides zero by zero where all other classes are ruled out.
    (logits, label, offsets), (logits_dot, _, offsets_dot) = primals, tangents
    shares = _shares_of_others(logits, label, offsets)
    dot = logits_dot if offsets is None else logits_dot + offsets_dot
    slope = jnp.sum(shares * dot) - simplex.pick(dot, label)
    return log_odds_against(logits, label, offsets), slope


@jax.custom_jvp
def _shares_of_others(logits, label, offsets):
    """p_j/(1 − p_y) for j ≠ y, and zero for y; zeros where all others are ruled out."""
    _, terms = _terms_of_others(logits, label, offsets)
    total = jnp.sum(terms)
    return terms / jnp.where(total > 0, total, 1.0)


@_shares_of_others.defjvp
def _shares_of_others_jvp(primals, tangents):
    # By hand for the same reason as `softmax`.
    (logits, label, offsets), (logits_dot, _, offsets_dot) = primals, tangents
    shares = _shares_of_others(logits, label, offsets)
    dot = logits_dot if offsets is None else logits_dot + offsets_dot
    return shares, _change(shares, shares, simplex.gaps_to_dominant(shares, dot))


def _terms_of_others(logits, label, offsets):
    """z_m, the largest logit of the other classes, and e^{z_j − z_m} for each of them."""
    mine = jnp.arange(logits.shape[-1]) == label
    others = jnp.where(mine, -jnp.inf, logits if offsets is None else logits + offsets)
    top = jax.lax.stop_gradient(jnp.max(others))
    top = jnp.where(top > -jnp.inf, top, 0.0)
    if offsets is not None:
        others = jnp.where(mine, -jnp.inf, (logits - top) + offsets)
        return top, jnp.exp(others)
    return top, jnp.exp(others - top)


@jax.custom_jvp
def cross_entropy(
    logits: Float[Array, " K"], label: Label, offsets: Float[Array, " K"] | None = None
) -> Float[Array, ""]:
    """−log softmax(z + offsets)_y, without rounding p_y to zero or one."""
    return softplus(log_odds_against(logits, label, offsets))


@cross_entropy.defjvp
def _cross_entropy_jvp(primals, tangents):
    # By hand because in second derivatives the parts of p_y and of the shares of others cancel.
    (logits, label, offsets), (logits_dot, _, offsets_dot) = primals, tangents
    dot = logits_dot if offsets is None else logits_dot + offsets_dot
    slope = jnp.sum(_residual(logits, label, offsets) * dot)
    return cross_entropy(logits, label, offsets), slope


@jax.custom_jvp
def _residual(logits, label, offsets):
    """p − e_y, with −(1 − p_y) as the sum of the others."""
    mine = jnp.arange(logits.shape[-1]) == label
    rest = sigmoid(log_odds_against(logits, label, offsets))
    return rest * jnp.where(mine, -1.0, _shares_of_others(logits, label, offsets))


@_residual.defjvp
def _residual_jvp(primals, tangents):
    # By hand for the same reason as `softmax`.
    (logits, label, offsets), (logits_dot, _, offsets_dot) = primals, tangents
    dot = logits_dot if offsets is None else logits_dot + offsets_dot
    p = rule_softmax(logits if offsets is None else centred(logits) + offsets)
    return _residual(logits, label, offsets), _change(p, p, simplex.gaps_to_dominant(p, dot))


@jax.custom_jvp
def expected_cross_entropy(logits: Float[Array, " K"], eta: Float[Array, " K"]) -> Float[Array, ""]:
    """Σ_k η_k (−log softmax(z)_k) of any weights η ≥ 0, without rounding any p_k to zero or one.

    With m the largest logit it is Σ_k η_k (z_m − z_k) + log(1 + Σ_{j≠m} e^{z_j − z_m}): no term is
    negative, and a class of weight zero may have a logit of −∞.
    """
    below = logits - jnp.max(logits)
    behind = jnp.sum(jnp.where(eta > 0, eta * -below, 0.0))
    return behind + jnp.sum(eta) * _log_sum_below(below)


def _log_sum_below(below):
    """log Σ_k e^{x_k} for numbers with maximum 0, which is not rounded to zero."""
    powers = jnp.sum(jnp.where(below < 0, jnp.exp(below), 0.0))
    ties = jnp.sum(jnp.where(below < 0, 0.0, 1.0).astype(below.dtype)) - 1
    return jnp.log1p(powers + ties)


@partial(expected_cross_entropy.defjvp, symbolic_zeros=True)
def _expected_cross_entropy_jvp(primals, tangents):
    # By hand because autodiff rounds the slope p Ση − η close to a vertex.
    (logits, eta), (logits_dot, eta_dot) = primals, tangents
    out = expected_cross_entropy(logits, eta)

    def slope_in_logits(dot):
        p = rule_softmax(logits)
        return jnp.sum(simplex.move_dominant(p, jnp.sum(eta) * p - eta) * dot)

    # only where η is differentiated: a constant η of zero may meet log p = −∞
    eta_term = (eta_dot, lambda dot: -jnp.sum(log_softmax(logits) * dot))
    return out, sum_of_slopes(out, (logits_dot, slope_in_logits), eta_term)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def softmax(logits: Float[Array, " K"], floored: bool = False) -> Float[Array, " K"]:
    """softmax(z), with derivatives that are accurate close to a vertex.

    Args:
      logits: z.
      floored: whether to differentiate at `simplex.interior` of it, so that a gradient that
        diverges on the boundary is multiplied by a p that is not zero.
    """
    return jax.nn.softmax(logits)


@softmax.defjvp
def _softmax_jvp(floored, primals, tangents):
    # By hand because close to a vertex the Jacobian removes the common part of a score's gradient
    # by a difference that loses every digit. Moving the entry close to one by minus the sum of the
    # others subtracts that class's component first, and exactly.
    (logits,), (logits_dot,) = primals, tangents
    p = rule_softmax(logits, floored)
    return p, _change(p, _inside(p, logits, floored), logits_dot)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def rule_softmax(logits, floored=False):
    """softmax(z), for use in rules of first derivatives, such as its own."""
    return jax.nn.softmax(logits)


@rule_softmax.defjvp
def _softmax_again_jvp(floored, primals, tangents):
    # As above. Besides, the tangents are reduced to gaps first: the change of a small p_k, which is
    # p_k Σ_j p_j (ż_k − ż_j), may be far below the rounding of ż. Gradients alone do not need that,
    # and would have one more sum to compute: hence the two functions.
    (logits,), (logits_dot,) = primals, tangents
    p = rule_softmax(logits, floored)
    return p, _change(p, _inside(p, logits, floored), simplex.gaps_to_dominant(p, logits_dot))


def _inside(p, logits, floored):
    return jnp.where(logits > -jnp.inf, simplex.interior(p, simplex.LOWEST), 0.0) if floored else p


def _change(p, scale, logits_dot):
    """scale_k Σ_j p_j (ż_k − ż_j): for scale = p, the change of p = softmax(z)."""
    return simplex.move_dominant(p, scale * (logits_dot - jnp.sum(p * logits_dot)))


@jax.custom_jvp
def log_softmax(logits: Float[Array, " K"]) -> Float[Array, " K"]:
    """log softmax(z), accurate close to a vertex, and so is its derivative."""
    return rule_log_softmax(logits)


@log_softmax.defjvp
def _log_softmax_jvp(primals, tangents):
    # By hand for the same reason as `softmax`.
    (logits,), (logits_dot,) = primals, tangents
    return rule_log_softmax(logits), _log_change(logits, logits_dot)


@jax.custom_jvp
def rule_log_softmax(logits):
    """log softmax(z), for use in rules of first derivatives, such as its own."""
    below = logits - jnp.max(logits)
    return below - _log_sum_below(below)


@rule_log_softmax.defjvp
def _log_softmax_again_jvp(primals, tangents):
    # By hand for the same reason as `rule_softmax`.
    (logits,), (logits_dot,) = primals, tangents
    return rule_log_softmax(logits), _log_change(
        logits, simplex.gaps_to_dominant(rule_softmax(logits), logits_dot)
    )


def _log_change(logits, logits_dot):
    """The change of log softmax(z)."""
    p = rule_softmax(logits)
    slope = jnp.where(logits > -jnp.inf, logits_dot - jnp.sum(p * logits_dot), 0.0)
    dominant = p > 0.5
    moved = simplex.move_dominant(p, p * slope) / jnp.where(dominant, p, 1.0)
    return jnp.where(dominant, moved, slope)
