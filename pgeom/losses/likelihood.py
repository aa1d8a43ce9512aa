"""Cross-entropy and its relatives, the Brier score, and losses adjusted to the class counts.

>>> import jax.numpy as jnp
>>> cross_entropy(jnp.array([0.0, 0.0]), jnp.array(1))
Array(0.6931472, dtype=float32)
>>> counts = jnp.array([90, 10])
>>> balanced_softmax(jnp.zeros(2), jnp.array(1), class_counts=counts)    # −log 0.1
Array(2.3025851, dtype=float32)
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from pgeom import checks, simplex
from pgeom.generators import squared_norm
from pgeom.scores import bregman_score, on_logits
from pgeom.simplex import (
    expected_cross_entropy,
    log_odds_against,
    pick,
    softmax_cross_entropy,
    vertex,
)
from pgeom.special import minus_log1p, sigmoid, softplus
from pgeom.types import Labels, Numbers, Values, Vectors


def cross_entropy(logits: Vectors, labels: Labels) -> Values:
    """−log p_y with p = softmax(z).

    Args:
      logits: `[..., K]`.
      labels: `[...]`, or soft targets `[..., K]`: Σ_k η_k (−log p_k).

    Returns:
      `[...]`.
    """
    return _cross_entropy(logits, labels)


_cross_entropy = checks.lift_targets(
    jax.vmap(simplex.softmax_cross_entropy), jax.vmap(simplex.expected_cross_entropy)
)


def label_smoothing(logits: Vectors, labels: Labels, *, epsilon: ArrayLike = 0.1) -> Values:
    """Cross-entropy against the target (1 − ε)e_y + ε/K (Szegedy et al., 2016).

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      epsilon: ε in [0, 1].

    Returns:
      `[...]`.
    """
    checks.check("epsilon", epsilon, "in [0, 1]", lambda x: (x >= 0) & (x <= 1))

    def example(logits, label):
        K = logits.shape[-1]
        smoothed = (1 - epsilon) * vertex(label, K, logits.dtype) + epsilon / K
        return expected_cross_entropy(logits, smoothed)

    return checks.lift_examples(example)(logits, labels)


def focal(logits: Vectors, labels: Labels, *, gamma: ArrayLike = 2.0) -> Values:
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
    checks.check_nonnegative("gamma", gamma)

    def example(logits, label):
        u = log_odds_against(logits, label)
        return jnp.exp(-(softplus(-u) * gamma)) * softplus(u)

    return checks.lift_examples(example)(logits, labels)


def poly1(logits: Vectors, labels: Labels, *, epsilon: ArrayLike = 1.0) -> Values:
    """−log p_y + ε(1 − p_y) (Leng et al., 2022).

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      epsilon: ε ≥ −1.

    Returns:
      `[...]`.
    """
    checks.check("epsilon", epsilon, "at least -1", lambda x: x >= -1)

    def example(logits, label):
        u = log_odds_against(logits, label)
        return _poly1(u, jnp.asarray(epsilon, u.dtype))

    return checks.lift_examples(example)(logits, labels)


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


def brier(logits: Vectors, labels: Labels) -> Values:
    """Σ_k (p_k − e_{y,k})² (Brier, 1950).

    Args:
      logits: `[..., K]`.
      labels: `[...]`, or soft targets `[..., K]`.

    Returns:
      `[...]`.
    """
    return _brier(logits, labels)


_brier = on_logits(bregman_score(squared_norm))


def class_balanced_cross_entropy(
    logits: Vectors, labels: Labels, *, class_counts: Numbers, beta: ArrayLike = 0.99
) -> Values:
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
    checks.check("beta", beta, "in [0, 1)", lambda x: (x >= 0) & (x < 1))
    counts = _counts(class_counts, logits)
    beta = jnp.asarray(beta, counts.dtype)
    weights = (1 - beta) / -jnp.expm1(counts * jnp.log(beta))
    weights = weights / jnp.mean(weights)

    def example(logits, label):
        return pick(weights, label) * softmax_cross_entropy(logits, label)

    return checks.lift_examples(example)(logits, labels)


def balanced_softmax(logits: Vectors, labels: Labels, *, class_counts: Numbers) -> Values:
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
) -> Values:
    """CE(z + τ log π), π = n/Σn; at τ = 1 Balanced Softmax up to a constant (Menon et al., 2021).

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      class_counts: `[K]`, positive.
      tau: τ ≥ 0.

    Returns:
      `[...]`.
    """
    checks.check_nonnegative("tau", tau)
    counts = _counts(class_counts, logits)
    return _shifted(logits, labels, tau * jnp.log(counts / jnp.sum(counts)))


def ldam(
    logits: Vectors,
    labels: Labels,
    *,
    class_counts: Numbers,
    max_margin: ArrayLike = 0.5,
    scale: ArrayLike = 8.0,
) -> Values:
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
    checks.check_nonnegative("max_margin", max_margin)
    checks.check_positive("scale", scale)
    counts = _counts(class_counts, logits)
    margins = max_margin * (jnp.min(counts) / counts) ** 0.25

    def example(logits, label):
        mine = jnp.arange(logits.shape[-1]) == label
        return softmax_cross_entropy(scale * logits, label, jnp.where(mine, scale * -margins, 0.0))

    return checks.lift_examples(example)(logits, labels)


def _counts(class_counts, logits):
    """The counts, checked to be K positive numbers, in the dtype to compute in."""
    counts, logits = checks.class_counts(class_counts), checks.vectors("logits", logits)
    checks.check_same_classes("class_counts", len(counts), logits.shape[-1])
    return counts.astype(checks.working_dtype(logits))


def _shifted(logits, labels, shift):
    return checks.lift_examples(lambda z, y: softmax_cross_entropy(z, y, shift))(logits, labels)
