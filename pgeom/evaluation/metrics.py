"""Metrics of a batch of predictions: accuracy, proper scores and calibration.

Probabilities have shape `[..., n, K]` and labels `[..., n]`; a metric averages over the n examples
and keeps the leading dimensions, for example losses and seeds. A diverged run is reported as such:
one NaN among its probabilities makes its metrics NaN, where argmax would have named a class.
Metrics of probabilities, such as `brier` and `ece`, refuse rows that are not distributions, such as
logits, unless they are traced by `jit` or `vmap`.

>>> import jax.numpy as jnp
>>> from pgeom.evaluation import metrics
>>> probabilities = jnp.array([[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]])
>>> labels = jnp.array([0, 0, 0, 1])
>>> float(metrics.accuracy(probabilities, labels)), float(metrics.brier(probabilities, labels))
(0.75, 0.375)
>>> float(metrics.ece(probabilities, labels))  # right three times out of four at confidence 3/4
0.0
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pgeom.evaluation.batch import (
    Values,
    align,
    align_probabilities,
    count_pairs,
    diverged,
    hits,
    one_hot,
)
from pgeom.evaluation.calibration_errors import (
    Reliability,
    classwise_ece,
    debiased_ece,
    ece,
    reliability,
)
from pgeom.evaluation.smooth_calibration import smooth_ece

__all__ = [
    "Reliability",
    "accuracy",
    "balanced_accuracy",
    "brier",
    "classwise_ece",
    "confusion_matrix",
    "debiased_ece",
    "ece",
    "nll",
    "reliability",
    "smooth_ece",
]


def accuracy(probabilities: Values, labels: Values) -> Float[Array, "*runs"]:
    """The share of examples whose most probable class is the label; a tie goes to the lowest class.

    (1/n) Σ_i 1[argmax_k p_ik = y_i]

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.

    Returns:
      `[...]`, in [0, 1].
    """
    scores, labels, dtype = align(probabilities, labels)
    return jnp.mean(hits(scores, labels), axis=-1).astype(dtype)


def balanced_accuracy(probabilities: Values, labels: Values) -> Float[Array, "*runs"]:
    """The mean recall over the classes that occur among the labels.

    (1/|C|) Σ_{c ∈ C} P(argmax p = c | y = c)

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.

    Returns:
      `[...]`, in [0, 1].
    """
    scores, labels, dtype = align(probabilities, labels)
    truth = one_hot(labels, scores)
    recall = jnp.trace(_confusion(scores, truth), axis1=-2, axis2=-1)
    occurring = jnp.sum(jnp.max(truth, axis=-2), axis=-1)
    return (recall / occurring).astype(dtype)


def brier(probabilities: Values, labels: Values) -> Float[Array, "*runs"]:
    """The Brier score, summed over classes.

    (1/n) Σ_i Σ_k (p_ik − 1[y_i = k])²

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.

    Returns:
      `[...]`, in [0, 2].
    """
    scores, labels, dtype = align_probabilities(probabilities, labels)
    squares = jnp.square(scores - one_hot(labels, scores))
    return jnp.mean(jnp.sum(squares, axis=-1), axis=-1).astype(dtype)


def nll(logits: Values, labels: Values) -> Float[Array, "*runs"]:
    """The negative log-likelihood of the softmax of the logits.

    −(1/n) Σ_i log softmax(z_i)_{y_i}, from logits, since rounded probabilities may be 0.

    Args:
      logits: `[..., n, K]`.
      labels: integers, `[..., n]`.

    Returns:
      `[...]`, at least 0.
    """
    scores, labels, dtype = align(logits, labels)
    log_p = jax.nn.log_softmax(scores, axis=-1)
    # A selection, not a product with the one-hot vector: 0 · (−∞) is NaN.
    chosen = jnp.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]
    return -jnp.mean(chosen, axis=-1).astype(dtype)


def confusion_matrix(probabilities: Values, labels: Values) -> Float[Array, "*runs K K"]:
    """The distribution of the predicted class given the true one.

    M_cj = P(argmax p = j | y = c)

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.

    Returns:
      `[..., K, K]`, one row per true class; a class that does not occur has a row of zeros.
    """
    scores, labels, dtype = align(probabilities, labels)
    return _confusion(scores, one_hot(labels, scores)).astype(dtype)


def _confusion(
    scores: Float[Array, "*runs n K"], truth: Float[Array, "*runs n K"]
) -> Float[Array, "*runs K K"]:
    predicted = one_hot(jnp.argmax(scores, axis=-1), scores)
    predicted = jnp.where(diverged(scores)[..., None], jnp.nan, predicted)
    counts = count_pairs(truth, predicted)
    return counts / jnp.maximum(jnp.sum(truth, axis=-2), 1.0)[..., None]
