"""Likelihood losses: cross-entropy and its close relatives.

>>> import jax.numpy as jnp
>>> cross_entropy(jnp.array([0.0, 0.0]), jnp.array(1))
Array(0.6931472, dtype=float32)
"""

import jax
import jax.numpy as jnp
from jax.nn import softplus
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from pgeom import edge
from pgeom.geometry import softmax
from pgeom.geometry.softmax import log_odds_against
from pgeom.types import Labels, Vectors


def cross_entropy(logits: Vectors, labels: Labels) -> Float[Array, "*batch"]:
    """−log p_y with p = softmax(z).

    Args:
      logits: `[..., K]`.
      labels: `[...]`, or soft targets `[..., K]`: Σ_k η_k (−log p_k).

    Returns:
      `[...]`.
    """
    return _cross_entropy(logits, labels)


_cross_entropy = edge.lift_targets(
    jax.vmap(softmax.cross_entropy), jax.vmap(softmax.expected_cross_entropy)
)


def label_smoothing(
    logits: Vectors, labels: Labels, *, epsilon: ArrayLike = 0.1
) -> Float[Array, "*batch"]:
    """Cross-entropy against the target (1 − ε)e_y + ε/K (Szegedy et al., 2016).

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      epsilon: ε in [0, 1].

    Returns:
      `[...]`.
    """
    _check_fraction("epsilon", epsilon)

    def example(logits, label):
        likelihood = softplus(log_odds_against(logits, label))
        return (1 - epsilon) * likelihood - epsilon * jnp.mean(jax.nn.log_softmax(logits))

    return edge.lift_examples(example)(logits, labels)


def focal(logits: Vectors, labels: Labels, *, gamma: ArrayLike = 2.0) -> Float[Array, "*batch"]:
    """−(1 − p_y)^γ log p_y (Lin et al., 2017).

    (1 − p_y)^γ is computed from logarithms, so that 1 − p_y never rounds to zero, where the
    gradient for γ < 1 would not be finite.

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      gamma: γ ≥ 0.

    Returns:
      `[...]`.
    """
    edge.check_nonnegative("gamma", gamma)

    def example(logits, label):
        u = log_odds_against(logits, label)
        return jnp.exp(-(softplus(-u) * gamma)) * softplus(u)

    return edge.lift_examples(example)(logits, labels)


def poly1(logits: Vectors, labels: Labels, *, epsilon: ArrayLike = 1.0) -> Float[Array, "*batch"]:
    """−log p_y + ε(1 − p_y) (Leng et al., 2022).

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      epsilon: ε ≥ −1.

    Returns:
      `[...]`.
    """
    if (known := edge.concrete(epsilon)) is not None:
        edge.require(known >= -1, "epsilon", "at least -1", epsilon)

    def example(logits, label):
        u = log_odds_against(logits, label)
        return softplus(u) + epsilon * jnp.exp(-softplus(-u))

    return edge.lift_examples(example)(logits, labels)


def _check_fraction(name: str, value: ArrayLike) -> None:
    if (known := edge.concrete(value)) is not None:
        edge.require((known >= 0) & (known <= 1), name, "in [0, 1]", value)
