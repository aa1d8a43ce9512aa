"""Losses proposed for noisy labels: bounded, or with a bounded term.

All are functions of the log-odds u against the label: 1 − p_y = σ(u), −log p_y = softplus(u).

>>> import jax.numpy as jnp
>>> mean_absolute_error(jnp.array([0.0, 0.0]), jnp.array(1))
Array(1., dtype=float32)
"""

import jax
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from pgeom import edge
from pgeom.geometry.simplex import vertex
from pgeom.geometry.softmax import (
    expected_cross_entropy,
    log_odds_against,
    sigmoid,
    softplus,
)
from pgeom.geometry.tempered_exponential import expm1
from pgeom.types import Labels, Vectors


def mean_absolute_error(
    logits: Vectors, labels: Labels, *, scale: ArrayLike = 2.0
) -> Float[Array, "*batch"]:
    """scale·(1 − p_y): ‖e_y − p‖₁ for scale 2 (Ghosh et al., 2017), the passive term of APL for 1.

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      scale: > 0.

    Returns:
      `[...]`.
    """
    edge.check_positive("scale", scale)

    def example(logits, label):
        return scale * sigmoid(log_odds_against(logits, label))

    return edge.lift_examples(example)(logits, labels)


def generalized_cross_entropy(
    logits: Vectors, labels: Labels, *, q: ArrayLike = 0.7
) -> Float[Array, "*batch"]:
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
        return -expm1(-(softplus(log_odds_against(logits, label)) * q)) / q

    return edge.lift_examples(example)(logits, labels)


def symmetric_cross_entropy(
    logits: Vectors,
    labels: Labels,
    *,
    alpha: ArrayLike = 0.1,
    beta: ArrayLike = 1.0,
    A: ArrayLike = -4.0,
) -> Float[Array, "*batch"]:
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
        return alpha * softplus(u) - beta * A * sigmoid(u)

    return edge.lift_examples(example)(logits, labels)


def active_passive(
    logits: Vectors, labels: Labels, *, alpha: ArrayLike = 1.0, beta: ArrayLike = 1.0
) -> Float[Array, "*batch"]:
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
        others = expected_cross_entropy(logits, 1 - vertex(label, logits.shape[-1], logits.dtype))
        return alpha * _fraction(softplus(u), others) + beta * sigmoid(u)

    return edge.lift_examples(example)(logits, labels)


@jax.custom_jvp
def _fraction(part: Float[Array, ""], rest: Float[Array, ""]) -> Float[Array, ""]:
    """part/(part + rest) of two nonnegative numbers, of which one may be infinite."""
    return 1 / (1 + rest / part)


@_fraction.defjvp
def _fraction_jvp(primals, tangents):
    # By hand because the two terms of the quotient rule cancel where the rest is small.
    (part, rest), (part_dot, rest_dot) = primals, tangents
    change = _fraction(rest, part) * part_dot - _fraction(part, rest) * rest_dot
    return _fraction(part, rest), change / (part + rest)
