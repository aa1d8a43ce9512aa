"""Perturbations of inputs in [0, 1]: random corruption, and first-order white-box attacks.

All act on raw intensities and stay in [0, 1]; the model that is attacked includes its own
standardisation. An attack maximises cross-entropy: it probes local sensitivity and certifies
nothing.

>>> import jax, jax.numpy as jnp
>>> x = jnp.array([[0.0, 0.5, 1.0]])
>>> moved = fgsm(lambda x: x[..., :2], x, jnp.array([1]), epsilon=0.1)
>>> [round(float(v), 2) for v in moved[0]]
[0.1, 0.4, 1.0]
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, PRNGKeyArray, ScalarLike

PGD_STEPS = 20  # with steps of ε/8 and a random start: the paper states neither

Classifier = Callable[[Float[Array, "n d"]], Float[Array, "n K"]]
"""`model(x[n, d]) -> logits[n, K]`, from raw intensities."""


def gaussian(
    key: PRNGKeyArray, x: Float[Array, "*shape"], *, sigma: ScalarLike
) -> Float[Array, "*shape"]:
    """x + σ·N(0, 1), clipped to [0, 1]."""
    return jnp.clip(x + sigma * jax.random.normal(key, x.shape, x.dtype), 0, 1)


def salt_and_pepper(
    key: PRNGKeyArray, x: Float[Array, "*shape"], *, fraction: ScalarLike
) -> Float[Array, "*shape"]:
    """x with each entry set to 0 or 1, with probability fraction/2 each."""
    u = jax.random.uniform(key, x.shape, x.dtype)
    return jnp.where(u < fraction / 2, 0.0, jnp.where(u < fraction, 1.0, x))


def fgsm(
    model: Classifier,
    x: Float[Array, "n d"],
    labels: Integer[Array, " n"],
    *,
    epsilon: ScalarLike,
) -> Float[Array, "n d"]:
    """One step of ε along the sign of the gradient.

    clip(x + ε sign ∇ₓ CE(model(x), y), 0, 1)

    Args:
      model: `model(x[n, d]) -> logits[n, K]`, from raw intensities.
      x: in [0, 1], `[n, d]`.
      labels: `[n]`.
      epsilon: the radius in the maximum norm.

    Returns:
      `[n, d]`.
    """
    return _ascend(model, x, labels, x, epsilon, epsilon)


def pgd(
    key: PRNGKeyArray,
    model: Classifier,
    x: Float[Array, "n d"],
    labels: Integer[Array, " n"],
    *,
    epsilon: ScalarLike,
) -> Float[Array, "n d"]:
    """Twenty steps of ε/8 along the sign of the gradient, from a random start in the ball.

    Args:
      key: for the random start.
      model: `model(x[n, d]) -> logits[n, K]`, from raw intensities.
      x: in [0, 1], `[n, d]`.
      labels: `[n]`.
      epsilon: the radius in the maximum norm.

    Returns:
      `[n, d]`, within ε of x and in [0, 1].
    """
    start = x + jax.random.uniform(key, x.shape, x.dtype, -1.0, 1.0) * epsilon
    return jax.lax.fori_loop(
        0,
        PGD_STEPS,
        lambda _, moved: _ascend(model, x, labels, moved, epsilon / 8, epsilon),
        jnp.clip(start, 0, 1),
    )


def attack_loss(
    model: Classifier, x: Float[Array, "n d"], labels: Integer[Array, " n"]
) -> Float[Array, ""]:
    """The loss that the attacks maximise: the mean cross-entropy of the model's softmax."""
    log_p = jax.nn.log_softmax(model(x))
    return -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=-1))


def _ascend(
    model: Classifier,
    x: Float[Array, "n d"],
    labels: Integer[Array, " n"],
    moved: Float[Array, "n d"],
    step: ScalarLike,
    epsilon: ScalarLike,
) -> Float[Array, "n d"]:
    """A signed step from `moved`, back into the ball around x and into [0, 1]."""
    slope = jax.grad(lambda x: jnp.sum(_log_odds_against(model(x), labels)))(moved)
    inside = jnp.clip(moved + step * jnp.sign(slope), x - epsilon, x + epsilon)
    return jnp.clip(inside, 0, 1)


def _log_odds_against(
    logits: Float[Array, "n K"], labels: Integer[Array, " n"]
) -> Float[Array, " n"]:
    """The u with CE = log(1 + eᵘ): its slope has the same sign and never underflows to zero."""
    mine = jnp.arange(logits.shape[-1])[None] == labels[:, None]
    others = jax.nn.logsumexp(jnp.where(mine, -jnp.inf, logits), axis=-1)
    return others - jnp.sum(jnp.where(mine, logits, 0.0), axis=-1)
