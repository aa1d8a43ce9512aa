"""Metrics of a batch of predictions: accuracy, proper scores and calibration.

Probabilities are [..., n, K] and labels [..., n]; the n examples are averaged and the leading
dimensions, say losses and seeds, stay. A diverged run is reported as such: one NaN among its
probabilities makes its metrics NaN, where argmax would have named a class. `brier`, `ece` and
`reliability` refuse what is no distribution, say logits, unless it is traced by `jit` or `vmap`.

>>> import jax.numpy as jnp
>>> from pgeom.evaluation import metrics
>>> probabilities = jnp.array([[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]])
>>> labels = jnp.array([0, 0, 0, 1])
>>> float(metrics.accuracy(probabilities, labels)), float(metrics.brier(probabilities, labels))
(0.75, 0.375)
>>> float(metrics.ece(probabilities, labels))  # right three times of four at confidence 3/4
0.0
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.evaluation.batch import align, align_probabilities


class Reliability(NamedTuple):
    """Mean confidence, accuracy and share of the examples in each confidence bin, all [..., bins].

    Shares sum to one. An empty bin has share, confidence and accuracy 0.
    """

    confidence: jax.Array
    accuracy: jax.Array
    share: jax.Array


def accuracy(probabilities, labels):
    """Share of examples whose most probable class is the label; a tie goes to the lowest class.

    (1/n) Σ_i 1[argmax_k p_ik = y_i]

    Args:
      probabilities: [..., n, K].
      labels: [..., n] integers.

    Returns:
      [...] in [0, 1].
    """
    scores, labels, dtype = align(probabilities, labels)
    return jnp.mean(_hits(scores, labels), axis=-1).astype(dtype)


def balanced_accuracy(probabilities, labels):
    """Mean recall over the classes that occur among the labels.

    (1/|C|) Σ_{c ∈ C} P(argmax p = c | y = c)

    Args:
      probabilities: [..., n, K].
      labels: [..., n] integers.

    Returns:
      [...] in [0, 1].
    """
    scores, labels, dtype = align(probabilities, labels)
    truth = _one_hot(labels, scores)
    recall = jnp.trace(_confusion(scores, truth), axis1=-2, axis2=-1)
    occurring = jnp.sum(jnp.max(truth, axis=-2), axis=-1)
    return (recall / occurring).astype(dtype)


def brier(probabilities, labels):
    """Brier score, summed over classes.

    (1/n) Σ_i Σ_k (p_ik − 1[y_i = k])²

    Args:
      probabilities: [..., n, K].
      labels: [..., n] integers.

    Returns:
      [...] in [0, 2].
    """
    scores, labels, dtype = align_probabilities(probabilities, labels)
    squares = jnp.square(scores - _one_hot(labels, scores))
    return jnp.mean(jnp.sum(squares, axis=-1), axis=-1).astype(dtype)


def nll(logits, labels):
    """Negative log-likelihood of the softmax of the logits.

    −(1/n) Σ_i log softmax(z_i)_{y_i}, from logits, since rounded probabilities may be 0.

    Args:
      logits: [..., n, K].
      labels: [..., n] integers.

    Returns:
      [...], at least 0.
    """
    scores, labels, dtype = align(logits, labels)
    log_p = jax.nn.log_softmax(scores, axis=-1)
    # A selection, not a product with the one-hot vector: 0 · (−∞) is NaN.
    chosen = jnp.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]
    return -jnp.mean(chosen, axis=-1).astype(dtype)


def ece(probabilities, labels, bins=15):
    """Expected calibration error of the top label.

    Σ_b share_b · |accuracy_b − confidence_b|

    Args:
      probabilities: [..., n, K].
      labels: [..., n] integers.
      bins: number of bins of equal width.

    Returns:
      [...] in [0, 1].
    """
    aligned = align_probabilities(probabilities, labels)
    table = _reliability(aligned, bins)
    gaps = jnp.abs(table.accuracy - table.confidence)
    return jnp.sum(table.share * gaps, axis=-1).astype(aligned.dtype)


def reliability(probabilities, labels, bins=15):
    """Reliability diagram of the top label.

    Bin b holds the examples with max_k p_k in (b/bins, (b+1)/bins].

    Args:
      probabilities: [..., n, K].
      labels: [..., n] integers.
      bins: number of bins of equal width.

    Returns:
      The `Reliability` of each bin.
    """
    aligned = align_probabilities(probabilities, labels)
    return Reliability(*(x.astype(aligned.dtype) for x in _reliability(aligned, bins)))


def confusion_matrix(probabilities, labels):
    """Distribution of the predicted class given the true one.

    M_cj = P(argmax p = j | y = c)

    Args:
      probabilities: [..., n, K].
      labels: [..., n] integers.

    Returns:
      [..., K, K], true class on the rows; a class that does not occur has a row of zeros.
    """
    scores, labels, dtype = align(probabilities, labels)
    return _confusion(scores, _one_hot(labels, scores)).astype(dtype)


def _reliability(aligned, bins):
    """The table before it is rounded to the dtype of the probabilities."""
    scores, labels, dtype = aligned
    confidence = jnp.max(scores, axis=-1)
    member = _membership(confidence, _edges(bins, dtype))
    count = jnp.sum(member, axis=-2)
    occupied = jnp.where(count > 0, count, 1.0)

    def bin_mean(values):
        return _contract("...nb,...n->...b", member, values) / occupied

    hits = _hits(scores, labels)
    return Reliability(bin_mean(confidence), bin_mean(hits), count / labels.shape[-1])


def _confusion(scores, truth):
    predicted = _one_hot(jnp.argmax(scores, axis=-1), scores)
    predicted = jnp.where(_diverged(scores)[..., None], jnp.nan, predicted)
    counts = _contract("...nc,...nj->...cj", truth, predicted)
    return counts / jnp.maximum(jnp.sum(truth, axis=-2), 1.0)[..., None]


def _hits(scores, labels):
    """[..., n]: 1 where the top class is the label, else 0, and NaN where a score is NaN."""
    top = jnp.argmax(scores, axis=-1).astype(labels.dtype)
    hit = (top == labels).astype(scores.dtype)
    return jnp.where(_diverged(scores), jnp.nan, hit)


def _diverged(scores):
    return jnp.any(jnp.isnan(scores), axis=-1)


def _one_hot(labels, scores):
    return jax.nn.one_hot(labels, scores.shape[-1], dtype=scores.dtype)


def _edges(bins, dtype):
    """[bins − 1] inner edges b/bins, rounded to the precision of the confidences.

    A confidence that was meant to be 3/15 then equals its edge and falls below it, as (lo, hi]
    asks. On the host, because a compiler may divide by way of an inexact reciprocal.
    """
    if bins < 1:
        raise ValueError(f"bins must be at least 1, but is {bins}")
    return (np.arange(1, bins) / bins).astype(dtype)


def _membership(confidence, edges):
    """[..., n, bins]: 1 for the bin (lo, hi] of each confidence, NaN where it is NaN."""
    edges = jnp.asarray(edges, confidence.dtype)
    # From the left: the number of edges strictly below, so that an edge belongs to its lower bin.
    index = jnp.searchsorted(edges, confidence, side="left", method="compare_all")
    member = jax.nn.one_hot(index, len(edges) + 1, dtype=confidence.dtype)
    return jnp.where(jnp.isnan(confidence)[..., None], jnp.nan, member)


def _contract(subscripts, *operands):
    # Accelerators multiply float32 matrices in fewer bits unless told otherwise.
    return jnp.einsum(subscripts, *operands, precision=jax.lax.Precision.HIGHEST)
