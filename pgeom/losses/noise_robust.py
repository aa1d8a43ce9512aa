"""Losses proposed for noisy labels: bounded, or bounded in part.

All are functions of the log-odds u against the label: 1 − p_y = σ(u), −log p_y = softplus(u).

>>> import jax.numpy as jnp
>>> mean_absolute_error(jnp.array([0.0, 0.0]), jnp.array(1))
Array(1., dtype=float32)
"""

import jax
import jax.numpy as jnp
from jax.nn import softplus

from pgeom import edge
from pgeom.geometry.softmax import log_odds_against
from pgeom.geometry.tempered_exponential import expm1


def mean_absolute_error(logits: jax.Array, labels: jax.Array, *, scale=2.0) -> jax.Array:
    """scale·(1 − p_y); at 2 it is ‖e_y − p‖₁ (Ghosh et al., 2017), at 1 the form of APL.

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      scale: > 0.

    Returns:
      `[...]`.
    """
    edge.check_positive("scale", scale)

    def example(logits, label):
        return scale * complement(log_odds_against(logits, label))

    return edge.lift_examples(example)(logits, labels)


def generalized_cross_entropy(logits: jax.Array, labels: jax.Array, *, q=0.7) -> jax.Array:
    """(1 − p_y^q)/q: cross-entropy as q → 0, 1 − p_y at q = 1 (Zhang and Sabuncu, 2018).

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      q: in (0, 1].

    Returns:
      `[...]`.
    """
    if (known := edge.concrete(q)) is not None:
        edge.require((known > 0) & (known <= 1), "q", "in (0, 1]", q)

    def example(logits, label):
        return -expm1(-q * softplus(log_odds_against(logits, label))) / q

    return edge.lift_examples(example)(logits, labels)


def symmetric_cross_entropy(
    logits: jax.Array, labels: jax.Array, *, alpha=0.1, beta=1.0, A=-4.0
) -> jax.Array:
    """α·CE − βA(1 − p_y), with A in place of log 0 in the reverse term (Wang et al., 2019).

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      alpha: ≥ 0.
      beta: ≥ 0.
      A: < 0; −4 in the authors' text, log 1e-4 in their code.

    Returns:
      `[...]`.
    """
    edge.check_nonnegative("alpha", alpha)
    edge.check_nonnegative("beta", beta)
    if (known := edge.concrete(A)) is not None:
        edge.require(known < 0, "A", "negative", A)

    def example(logits, label):
        u = log_odds_against(logits, label)
        return alpha * softplus(u) - beta * A * complement(u)

    return edge.lift_examples(example)(logits, labels)


def active_passive(logits: jax.Array, labels: jax.Array, *, alpha=1.0, beta=1.0) -> jax.Array:
    """α·NCE + β(1 − p_y) with NCE = log p_y / Σ_k log p_k (Ma et al., 2020).

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      alpha: ≥ 0, the active weight.
      beta: ≥ 0, the passive weight.

    Returns:
      `[...]`.
    """
    edge.check_nonnegative("alpha", alpha)
    edge.check_nonnegative("beta", beta)

    def example(logits, label):
        u = log_odds_against(logits, label)
        normalised = softplus(u) / -jnp.sum(jax.nn.log_softmax(logits))
        return alpha * normalised + beta * complement(u)

    return edge.lift_examples(example)(logits, labels)


def complement(u: jax.Array) -> jax.Array:
    """1 − p_y = σ(u) as exp(−softplus(−u)): the derivative σ(u)(1 − σ(u)) then rounds nowhere."""
    return jnp.exp(-softplus(-u))
