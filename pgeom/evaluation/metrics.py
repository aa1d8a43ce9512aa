"""Metrics of a batch of predictions: accuracy, proper scores and calibration.

Probabilities have shape `[..., n, K]` and labels `[..., n]`; a metric averages over the n examples
and keeps the leading dimensions, for example losses and seeds. A diverged run is reported as such:
one NaN among its probabilities makes its metrics NaN, where argmax would have named a class.
`brier`, `ece` and `reliability` refuse rows that are not distributions, such as logits, unless they
are traced by `jit` or `vmap`.

>>> import jax.numpy as jnp
>>> from pgeom.evaluation import metrics
>>> probabilities = jnp.array([[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]])
>>> labels = jnp.array([0, 0, 0, 1])
>>> float(metrics.accuracy(probabilities, labels)), float(metrics.brier(probabilities, labels))
(0.75, 0.375)
>>> float(metrics.ece(probabilities, labels))  # right three times out of four at confidence 3/4
0.0
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer

from pgeom import edge
from pgeom.evaluation.batch import Aligned, Values, align, align_probabilities


class Reliability(NamedTuple):
    """What happens in each confidence bin; an empty bin has confidence, accuracy and share 0.

    Attributes:
      confidence: the mean confidence, `[..., bins]`.
      accuracy: the accuracy, `[..., bins]`.
      share: the share of the examples, `[..., bins]`; shares sum to one.
    """

    confidence: Float[Array, "*runs bins"]
    accuracy: Float[Array, "*runs bins"]
    share: Float[Array, "*runs bins"]


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
    return jnp.mean(_hits(scores, labels), axis=-1).astype(dtype)


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
    truth = _one_hot(labels, scores)
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
    squares = jnp.square(scores - _one_hot(labels, scores))
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


def ece(probabilities: Values, labels: Values, bins: int = 15) -> Float[Array, "*runs"]:
    """The expected calibration error of the top label.

    Σ_b share_b · |accuracy_b − confidence_b|

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.
      bins: the number of bins of equal width.

    Returns:
      `[...]`, in [0, 1].
    """
    aligned = align_probabilities(probabilities, labels)
    table = _reliability(aligned, bins)
    gaps = jnp.abs(table.accuracy - table.confidence)
    return jnp.sum(table.share * gaps, axis=-1).astype(aligned.dtype)


def reliability(probabilities: Values, labels: Values, bins: int = 15) -> Reliability:
    """The reliability diagram of the top label.

    Bin b holds the examples with max_k p_k in (b/bins, (b+1)/bins].

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.
      bins: the number of bins of equal width.

    Returns:
      The `Reliability` of each bin.
    """
    aligned = align_probabilities(probabilities, labels)
    return Reliability(*(x.astype(aligned.dtype) for x in _reliability(aligned, bins)))


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
    return _confusion(scores, _one_hot(labels, scores)).astype(dtype)


def _reliability(aligned: Aligned, bins: int) -> Reliability:
    """The diagram before it is rounded to the dtype of the probabilities."""
    scores, labels, dtype = aligned
    confidence = jnp.max(scores, axis=-1)
    member = _membership(confidence, _edges(bins, dtype))
    count = jnp.sum(member, axis=-2)
    occupied = jnp.where(count > 0, count, 1.0)

    def bin_mean(values: Float[Array, "*runs n"]) -> Float[Array, "*runs bins"]:
        return _contract("...nb,...n->...b", member, values) / occupied

    hits = _hits(scores, labels)
    return Reliability(bin_mean(confidence), bin_mean(hits), count / labels.shape[-1])


def _confusion(
    scores: Float[Array, "*runs n K"], truth: Float[Array, "*runs n K"]
) -> Float[Array, "*runs K K"]:
    predicted = _one_hot(jnp.argmax(scores, axis=-1), scores)
    predicted = jnp.where(_diverged(scores)[..., None], jnp.nan, predicted)
    counts = _contract("...nc,...nj->...cj", truth, predicted)
    return counts / jnp.maximum(jnp.sum(truth, axis=-2), 1.0)[..., None]


def _hits(
    scores: Float[Array, "*runs n K"], labels: Integer[Array, "*runs n"]
) -> Float[Array, "*runs n"]:
    """1 where the top class is the label, else 0, and NaN where a score is NaN."""
    top = jnp.argmax(scores, axis=-1).astype(labels.dtype)
    hit = (top == labels).astype(scores.dtype)
    return jnp.where(_diverged(scores), jnp.nan, hit)


def _diverged(scores: Float[Array, "*runs n K"]) -> Bool[Array, "*runs n"]:
    return jnp.any(jnp.isnan(scores), axis=-1)


def _one_hot(
    labels: Integer[Array, "*runs n"], scores: Float[Array, "*runs n K"]
) -> Float[Array, "*runs n K"]:
    return jax.nn.one_hot(labels, scores.shape[-1], dtype=scores.dtype)


def _edges(bins: int, dtype: np.dtype) -> Float[np.ndarray, " edges"]:
    """The bins − 1 inner edges b/bins, rounded to the precision of the confidences.

    A confidence that was meant to be 3/15 then equals its edge and falls below it, as (lo, hi]
    requires. On the host, because a compiler may divide by way of an inexact reciprocal.
    """
    edge.require(bins >= 1, "bins", "at least 1", bins)
    return (np.arange(1, bins) / bins).astype(dtype)


def _membership(
    confidence: Float[Array, "*runs n"], edges: Float[np.ndarray, " edges"]
) -> Float[Array, "*runs n bins"]:
    """1 for the bin (lo, hi] of each confidence and 0 for the others, NaN where it is NaN."""
    sorted_edges = jnp.asarray(edges, confidence.dtype)
    # From the left: the number of edges strictly below, so that an edge belongs to its lower bin.
    index = jnp.searchsorted(sorted_edges, confidence, side="left", method="compare_all")
    member = jax.nn.one_hot(index, len(edges) + 1, dtype=confidence.dtype)
    return jnp.where(jnp.isnan(confidence)[..., None], jnp.nan, member)


def _contract(subscripts: str, *operands: Array) -> Array:
    # Accelerators multiply float32 matrices in fewer bits by default.
    return jnp.einsum(subscripts, *operands, precision=jax.lax.Precision.HIGHEST)
