"""Symmetric and pair-flip label noise, with a record of what was drawn.

Noise is applied once, to clean training labels. Each label is selected independently with the
given rate, so the realised rate differs slightly from it; the realised rate and the empirical
transition matrix are returned with the labels. Selections from the same generator state are nested:
whatever flips at 20% flips at 40% too, to the same class.

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
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Int32, Integer

from pgeom import edge


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
    labels: ArrayLike | Sequence, rate: float | int, K: int, rng: np.random.Generator
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
    labels: ArrayLike | Sequence, rate: float | int, K: int, rng: np.random.Generator
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


def _select(
    labels: Int32[np.ndarray, " n"], rate: float | int, rng: np.random.Generator
) -> Bool[np.ndarray, " n"]:
    # The paper does not state whether labels are selected independently or in an exact number.
    return rng.random(labels.shape) < rate


def _checked(labels: ArrayLike | Sequence, rate: float | int, K: int) -> Int32[np.ndarray, " n"]:
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
