"""Losses that depend on the class counts of the training partition.

>>> import jax.numpy as jnp
>>> counts = jnp.array([90, 10])
>>> balanced_softmax(jnp.zeros(2), jnp.array(1), class_counts=counts)    # −log 0.1
Array(2.3025851, dtype=float32)
"""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from pgeom import edge
from pgeom.geometry.simplex import pick
from pgeom.geometry.softmax import cross_entropy
from pgeom.types import Labels, Numbers, Vectors


def class_balanced_cross_entropy(
    logits: Vectors, labels: Labels, *, class_counts: Numbers, beta: ArrayLike = 0.99
) -> Float[Array, "*batch"]:
    """w_y·CE with w_k ∝ (1 − β)/(1 − β^{n_k}), of mean one over classes (Cui et al., 2019).

    The mean over a batch divides by its size, not by the sum of the weights.

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      class_counts: `[K]`, positive.
      beta: in [0, 1).

    Returns:
      `[...]`.
    """
    if (known := edge.concrete(beta)) is not None:
        edge.require((known >= 0) & (known < 1), "beta", "in [0, 1)", beta)
    counts = _counts(class_counts, logits)
    beta = jnp.asarray(beta, counts.dtype)
    weights = (1 - beta) / -jnp.expm1(counts * jnp.log(beta))
    weights = weights / jnp.mean(weights)

    def example(logits, label):
        return pick(weights, label) * cross_entropy(logits, label)

    return edge.lift_examples(example)(logits, labels)


def balanced_softmax(
    logits: Vectors, labels: Labels, *, class_counts: Numbers
) -> Float[Array, "*batch"]:
    """CE(z + log n) (Ren et al., 2020).

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      class_counts: `[K]`, positive.

    Returns:
      `[...]`.
    """
    return _shifted(logits, labels, jnp.log(_counts(class_counts, logits)))


def logit_adjustment(
    logits: Vectors, labels: Labels, *, class_counts: Numbers, tau: ArrayLike = 1.0
) -> Float[Array, "*batch"]:
    """CE(z + τ log π), π = n/Σn; at τ = 1 Balanced Softmax up to a constant (Menon et al., 2021).

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      class_counts: `[K]`, positive.
      tau: τ ≥ 0.

    Returns:
      `[...]`.
    """
    edge.check_nonnegative("tau", tau)
    counts = _counts(class_counts, logits)
    return _shifted(logits, labels, tau * jnp.log(counts / jnp.sum(counts)))


def ldam(
    logits: Vectors,
    labels: Labels,
    *,
    class_counts: Numbers,
    max_margin: ArrayLike = 0.5,
    scale: ArrayLike = 8.0,
) -> Float[Array, "*batch"]:
    """CE(s(z − m_y e_y)), m_k = m_max·n_k^{−1/4}/max_j n_j^{−1/4} (Cao et al., 2019).

    For training only: predictions are read from z itself, without margin or scale.

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      class_counts: `[K]`, positive.
      max_margin: the rarest class's margin, ≥ 0.
      scale: s > 0.

    Returns:
      `[...]`.
    """
    edge.check_nonnegative("max_margin", max_margin)
    edge.check_positive("scale", scale)
    counts = _counts(class_counts, logits)
    margins = max_margin * (jnp.min(counts) / counts) ** 0.25

    def example(logits, label):
        mine = jnp.arange(logits.shape[-1]) == label
        return cross_entropy(scale * logits, label, jnp.where(mine, scale * -margins, 0.0))

    return edge.lift_examples(example)(logits, labels)


def _counts(class_counts: Numbers, logits: Vectors) -> Float[Array, " K"]:
    """The counts, checked to be K positive numbers, in the dtype to compute in."""
    counts, logits = edge.class_counts(class_counts), edge.vectors("logits", logits)
    if counts.shape[0] != logits.shape[-1]:
        raise ValueError(
            f"class_counts must have shape [{logits.shape[-1]}] to go with logits of shape "
            f"{logits.shape}, got {counts.shape}"
        )
    return counts.astype(edge.working_dtype(logits))


def _shifted(logits, labels, shift):
    return edge.lift_examples(lambda z, y: cross_entropy(z, y, shift))(logits, labels)
