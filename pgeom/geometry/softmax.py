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
from pgeom.types import Label


@jax.custom_jvp
def log_odds_against(logits: Float[Array, " K"], label: Label) -> Float[Array, ""]:
    """u = log(Σ_{j≠y} e^{z_j}) − z_y, the log-odds against the label.

    p_y = σ(−u), 1 − p_y = σ(u) and −log p_y = softplus(u), each accurate near p_y = 0 and p_y = 1
    alike; log_softmax is accurate only near 0. A logit of −∞ rules its class out.
    """
    top, terms = _terms_of_others(logits, label)
    # the difference of logits first, which loses nothing that they have in common
    return top - simplex.pick(logits, label) + jnp.log(jnp.sum(terms))


@log_odds_against.defjvp
def _log_odds_against_jvp(primals, tangents):
    # By hand because autodiff divides zero by zero where all other classes are ruled out.
    (logits, label), (logits_dot, _) = primals, tangents
    _, terms = _terms_of_others(logits, label)
    total = jnp.sum(terms)
    shares = terms / jnp.where(total > 0, total, 1.0)
    slope = jnp.sum(shares * logits_dot) - simplex.pick(logits_dot, label)
    return log_odds_against(logits, label), slope


def _terms_of_others(logits, label):
    """z_m, the largest logit of the other classes, and e^{z_j − z_m} for each of them."""
    others = jnp.where(jnp.arange(logits.shape[-1]) == label, -jnp.inf, logits)
    top = jax.lax.stop_gradient(jnp.max(others))
    top = jnp.where(top > -jnp.inf, top, 0.0)
    return top, jnp.exp(others - top)


def cross_entropy(logits: Float[Array, " K"], label: Label) -> Float[Array, ""]:
    """−log softmax(z)_y, without rounding p_y to zero or one."""
    return jax.nn.softplus(log_odds_against(logits, label))


@jax.custom_jvp
def expected_cross_entropy(logits: Float[Array, " K"], eta: Float[Array, " K"]) -> Float[Array, ""]:
    """Σ_k η_k (−log softmax(z)_k), without rounding any p_k to zero or one.

    With m the largest logit it is Σ_k η_k (z_m − z_k) + log(1 + Σ_{j≠m} e^{z_j − z_m}): no term is
    negative, and a class of weight zero may have a logit of −∞.
    """
    largest = jnp.max(logits)
    behind = jnp.where(eta > 0, largest - logits, 0.0)
    others = jnp.sum(jnp.where(simplex.argmax_mask(logits), 0.0, jnp.exp(logits - largest)))
    return jnp.sum(eta * behind) + jnp.sum(eta) * jnp.log1p(others)


@expected_cross_entropy.defjvp
def _expected_cross_entropy_jvp(primals, tangents):
    # By hand because autodiff rounds the slope p − η close to a vertex.
    (logits, eta), (logits_dot, eta_dot) = primals, tangents
    slope = -simplex.displacement(eta, softmax(logits))
    out_dot = jnp.sum(slope * logits_dot) - jnp.sum(log_softmax(logits) * eta_dot)
    return expected_cross_entropy(logits, eta), out_dot


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def softmax(logits: Float[Array, " K"], floored: bool = False) -> Float[Array, " K"]:
    """softmax(z), with a derivative that is accurate close to a vertex.

    Args:
      logits: z.
      floored: whether to differentiate at `simplex.interior(softmax(z))`, so that a gradient that
        diverges on the boundary is multiplied by a p that is not zero.
    """
    return jax.nn.softmax(logits)


@softmax.defjvp
def _softmax_jvp(floored, primals, tangents):
    # By hand because close to a vertex the Jacobian removes the common part of a score's gradient
    # by a difference that loses every digit. Moving the entry close to one by minus the sum of the
    # others subtracts that class's component first, and exactly.
    (logits,), (logits_dot,) = primals, tangents
    p = softmax(logits, floored)
    inside = jnp.where(logits > -jnp.inf, simplex.interior(p), 0.0) if floored else p
    return p, simplex.move_dominant(p, inside * (logits_dot - jnp.sum(p * logits_dot)))


@jax.custom_jvp
def log_softmax(logits: Float[Array, " K"]) -> Float[Array, " K"]:
    """log softmax(z), with a derivative that is accurate close to a vertex."""
    return jax.nn.log_softmax(logits)


@log_softmax.defjvp
def _log_softmax_jvp(primals, tangents):
    # By hand for the same reason as `softmax`.
    (logits,), (logits_dot,) = primals, tangents
    p = softmax(logits)
    slope = jnp.where(logits > -jnp.inf, logits_dot - jnp.sum(p * logits_dot), 0.0)
    dominant = p > 0.5
    moved = simplex.move_dominant(p, p * slope) / jnp.where(dominant, p, 1.0)
    return log_softmax(logits), jnp.where(dominant, moved, slope)
