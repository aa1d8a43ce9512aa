"""Perturbations of inputs in [0, 1]: random corruption, and first-order white-box attacks.

All act on raw intensities and stay in [0, 1]; the model that is attacked includes its own
standardisation. FGSM and PGD maximise cross-entropy; APGD maximises a ratio of logit differences,
which does not saturate. All probe local sensitivity and certify nothing.

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

from pgeom.evaluation import auto_pgd

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
    return jax.lax.fori_loop(
        0,
        PGD_STEPS,
        lambda _, moved: _ascend(model, x, labels, moved, epsilon / 8, epsilon),
        _random_start(key, x, epsilon),
    )


def apgd(
    key: PRNGKeyArray,
    model: Classifier,
    x: Float[Array, "n d"],
    labels: Integer[Array, " n"],
    *,
    epsilon: ScalarLike,
) -> Float[Array, "n d"]:
    """Auto-PGD on the DLR loss: a hundred steps, 2ε at first, from a random start in the ball.

    Args:
      key: for the random start.
      model: `model(x[n, d]) -> logits[n, K]`, from raw intensities.
      x: in [0, 1], `[n, d]`.
      labels: `[n]`.
      epsilon: the radius in the maximum norm.

    Returns:
      `[n, d]`, within ε of x and in [0, 1]: of all points tried, x among them, that of the highest
      DLR loss.
    """

    def objective(points):
        return dlr(model(points), labels)

    def project(points):
        return jnp.clip(jnp.clip(points, x - epsilon, x + epsilon), 0, 1)

    start = _random_start(key, x, epsilon)
    found = auto_pgd.maximise(objective, project, start, 2 * epsilon)
    return jnp.where((objective(found) > objective(x))[:, None], found, x)


def dlr(logits: Float[Array, "n K"], labels: Integer[Array, " n"]) -> Float[Array, " n"]:
    """The difference-of-logits ratio: positive where another class than the label is predicted.

    (max_{j≠y} z_j − z_y)/(z₍₁₎ − z₍₃₎), with the largest and the third largest logit

    Neither a shift nor a scale of the logits changes it, so confidence does not make it flat. Two
    classes have no third: for them it is the difference alone.
    """
    mine = _is_label(logits, labels)
    others = jnp.max(jnp.where(mine, -jnp.inf, logits), axis=-1)
    gap = others - jnp.sum(jnp.where(mine, logits, 0.0), axis=-1)
    if logits.shape[-1] == 2:
        return gap
    largest = jax.lax.top_k(logits, 3)[0]
    spread = largest[:, 0] - largest[:, 2]
    return gap / jnp.where(spread > 0, spread, 1.0)  # the gap of three equal logits is not positive


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
    mine = _is_label(logits, labels)
    others = jax.nn.logsumexp(jnp.where(mine, -jnp.inf, logits), axis=-1)
    return others - jnp.sum(jnp.where(mine, logits, 0.0), axis=-1)


def _is_label(logits, labels):
    return jnp.arange(logits.shape[-1])[None] == labels[:, None]


def _random_start(key, x, epsilon):
    return jnp.clip(x + jax.random.uniform(key, x.shape, x.dtype, -1.0, 1.0) * epsilon, 0, 1)
