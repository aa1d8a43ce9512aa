"""Label noise, with a record of what was drawn: by class, and by the features of each example.

Noise is applied once, to clean labels. Each label is selected independently with the given rate, so
the realised rate differs slightly from it; the realised rate and the empirical transition matrix
are returned with the labels. Unless the features decide, selections from the same generator state
are nested: whatever flips at 20% flips at 40% too, to the same class.

>>> import numpy as np
>>> from pgeom.data import label_noise
>>> noisy = label_noise.pair_flip(np.array([0, 1, 2, 2]), 1.0, 3, np.random.default_rng(0))
>>> noisy.labels.tolist(), noisy.realised_rate
([1, 2, 0, 0], 1.0)
>>> noisy.transition.tolist()
[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int32, Integer
from numpy.typing import ArrayLike

from pgeom.deferred import Deferred

edge = Deferred("pgeom.edge")  # it needs JAX, without which regimes are parsed
FLIP_RATE_SD = 0.1  # of the flip rates of instance-dependent noise, as in the literature


class NoisyLabels(NamedTuple):
    """Labels after noise, and how they differ from the clean ones.

    Attributes:
      labels: `[n]`, as observed.
      realised_rate: the share of labels that changed.
      transition: `[K, K]`, P(observed | clean) with one row per clean class; a class that does
        not occur has a row of zeros.
    """

    labels: Int32[np.ndarray, " n"]
    realised_rate: float
    transition: Float[np.ndarray, "K K"]


def symmetric(
    labels: ArrayLike, rate: float | int, K: int, rng: np.random.Generator
) -> NoisyLabels:
    """Move each selected label to one of the other classes, all equally likely.

    P(ỹ = j | y) = rate / (K − 1) for j ≠ y, and P(ỹ = y | y) = 1 − rate.

    Args:
      labels: clean integer labels in 0 … K−1, `[n]`.
      rate: the probability in [0, 1] that a label is selected.
      K: the number of classes.
      rng: the source of randomness.

    Returns:
      The `NoisyLabels`.
    """
    clean = _checked(labels, rate, K)
    selected = _select(clean, rate, rng)
    # A shift of 1 … K−1 modulo K reaches every other class once, and never the label itself.
    shift = rng.integers(1, K, size=clean.shape)
    return _describe(clean, (clean + selected * shift) % K, K)


def pair_flip(
    labels: ArrayLike, rate: float | int, K: int, rng: np.random.Generator
) -> NoisyLabels:
    """Move each selected label to the next class.

    P(ỹ = (y + 1) mod K | y) = rate, and P(ỹ = y | y) = 1 − rate.

    Args:
      labels: clean integer labels in 0 … K−1, `[n]`.
      rate: the probability in [0, 1] that a label is selected.
      K: the number of classes.
      rng: the source of randomness.

    Returns:
      The `NoisyLabels`.
    """
    clean = _checked(labels, rate, K)
    return _describe(clean, (clean + _select(clean, rate, rng)) % K, K)


def asymmetric(
    labels: ArrayLike,
    rate: float | int,
    K: int,
    rng: np.random.Generator,
    *,
    class_map: Sequence[int],
) -> NoisyLabels:
    """Move each selected label to the class for which its own is mistaken.

    P(ỹ = map(y) | y) = rate where map(y) ≠ y; other classes keep their labels, so that the
    realised rate is lower than the given one.

    Args:
      labels: clean integer labels in 0 … K−1, `[n]`.
      rate: the probability in [0, 1] that a label is selected.
      K: the number of classes.
      rng: the source of randomness.
      class_map: `[K]` classes, that of a class being itself where it is not mistaken.

    Returns:
      The `NoisyLabels`.
    """
    clean = _checked(labels, rate, K)
    targets = np.asarray(class_map)
    edge.require(targets.shape == (K,), "class_map", f"{K} classes", targets)
    return _describe(clean, np.where(_select(clean, rate, rng), targets[clean], clean), K)


def instance_dependent(
    labels: ArrayLike,
    rate: float | int,
    K: int,
    rng: np.random.Generator,
    *,
    features: Float[np.ndarray, "n d"],
    projections: Float[np.ndarray, "K d K"],
) -> NoisyLabels:
    """Move labels as a confused annotator would, who looks at the features of each example.

    An example x with label y is selected with a probability q of its own, from a normal
    distribution around the rate, and then P(ỹ = j) = softmax(x · w_y)_j over the classes j ≠ y,
    as in Xia et al., Part-dependent Label Noise (2020), Algorithm 2. They truncate q to [0, 1];
    here the interval is cut to be symmetric about the rate, so that the rate is the mean of q.

    Args:
      labels: clean integer labels in 0 … K−1, `[n]`.
      rate: the mean probability in [0, 1] that a label is selected.
      K: the number of classes.
      rng: the source of randomness.
      features: of the examples, standardised.
      projections: the w_y, with standard normal entries.

    Returns:
      The `NoisyLabels`.
    """
    clean = _checked(labels, rate, K)
    selected = rng.random(clean.shape) < _flip_rates(rate, len(clean), rng)
    # the largest sum of scores and Gumbel noise is a draw from their softmax
    scores = rng.gumbel(size=(len(clean), K))
    for c in range(K):
        scores[clean == c] += features[clean == c] @ projections[c]
    scores[np.arange(len(clean)), clean] = -np.inf
    return _describe(clean, np.where(selected, scores.argmax(axis=1), clean), K)


def unchanged(labels: ArrayLike, K: int) -> NoisyLabels:
    """Clean labels as a `NoisyLabels`."""
    clean = _checked(labels, 0, K)
    return _describe(clean, clean, K)


def _flip_rates(rate: float | int, n: int, rng: np.random.Generator) -> Float[np.ndarray, " n"]:
    """Draws from a normal distribution around the rate, truncated symmetrically inside [0, 1]."""
    reach = min(rate, 1 - rate)
    if reach == 0:
        return np.full(n, float(rate))
    rates = rng.normal(rate, FLIP_RATE_SD, n)
    while len(outside := np.flatnonzero(np.abs(rates - rate) > reach)):
        rates[outside] = rng.normal(rate, FLIP_RATE_SD, len(outside))
    return rates


def _select(
    labels: Int32[np.ndarray, " n"], rate: float | int, rng: np.random.Generator
) -> Bool[np.ndarray, " n"]:
    # The paper does not state whether labels are selected independently or in an exact number.
    return rng.random(labels.shape) < rate


def _checked(labels: ArrayLike, rate: float | int, K: int) -> Int32[np.ndarray, " n"]:
    edge.require(0 <= rate <= 1, "rate", "in [0, 1]", rate)
    edge.check_num_classes(K)
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.size == 0 or labels.dtype.kind not in "iu":
        raise ValueError(
            "labels must be a non-empty [n] array of integers, "
            f"got {labels.dtype} of shape {labels.shape}"
        )
    outside = labels[(labels < 0) | (labels >= K)]
    edge.require(outside.size == 0, "labels", f"in 0 … {K - 1}", outside)
    return labels.astype(np.int32)


def _describe(
    clean: Int32[np.ndarray, " n"], observed: Integer[np.ndarray, " n"], K: int
) -> NoisyLabels:
    counts = np.zeros((K, K))
    np.add.at(counts, (clean, observed), 1.0)
    transition = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    realised_rate = float(np.mean(clean != observed))
    return NoisyLabels(observed.astype(np.int32), realised_rate, transition)
