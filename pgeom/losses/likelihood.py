"""Likelihood losses: cross-entropy and its close relatives.

>>> import jax.numpy as jnp
>>> cross_entropy(jnp.array([0.0, 0.0]), jnp.array(1))
Array(0.6931472, dtype=float32)
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from pgeom import edge
from pgeom.geometry import softmax
from pgeom.geometry.log_cosh import minus_log1p
from pgeom.geometry.simplex import vertex
from pgeom.geometry.softmax import expected_cross_entropy, log_odds_against, sigmoid, softplus
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
        K = logits.shape[-1]
        smoothed = (1 - epsilon) * vertex(label, K, logits.dtype) + epsilon / K
        return expected_cross_entropy(logits, smoothed)

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
        return _poly1(u, jnp.asarray(epsilon, u.dtype))

    return edge.lift_examples(example)(logits, labels)


@jax.custom_jvp
def _poly1(u, epsilon):
    """softplus(u) + ε σ(u), as the sum of softplus(u) − σ(u) ≥ 0 and (1 + ε) σ(u)."""
    rest = sigmoid(u)  # 1 − p_y
    small = rest < 0.2
    near = minus_log1p(-jnp.where(small, rest, 0.0))
    return jnp.where(small, near, softplus(u) - rest) + (1 + epsilon) * rest


@_poly1.defjvp
def _poly1_jvp(primals, tangents):
    # By hand because autodiff cancels where p_y is close to one if ε is close to −1, and where p_y
    # is close to zero if ε is close to 1.
    (u, epsilon), (u_dot, epsilon_dot) = primals, tangents
    slope = _poly1_slope(u, epsilon)
    return _poly1(u, epsilon), slope * u_dot + sigmoid(u) * epsilon_dot


@jax.custom_jvp
def _poly1_slope(u, epsilon):
    return sigmoid(u) * (sigmoid(u) + (1 + epsilon) * sigmoid(-u))


@_poly1_slope.defjvp
def _poly1_slope_jvp(primals, tangents):
    (u, epsilon), (u_dot, epsilon_dot) = primals, tangents
    p, rest = sigmoid(-u), sigmoid(u)
    curvature = (1 - epsilon) * rest + (1 + epsilon) * p
    return _poly1_slope(u, epsilon), p * rest * (curvature * u_dot + epsilon_dot)


def _check_fraction(name: str, value: ArrayLike) -> None:
    if (known := edge.concrete(value)) is not None:
        edge.require((known >= 0) & (known <= 1), name, "in [0, 1]", value)
