"""Label noise: symmetric and pair-flip, with a record of what was really drawn.

Noise is applied once, to clean training labels. Each label is selected independently with the
given rate, so the realised rate differs a little from it; both it and the empirical transition
matrix come back with the labels. The same generator state gives nested selections: whatever flips
at 20% flips at 40% too, to the same class.

>>> import numpy as np
>>> from pgeom.data import label_noise
>>> noisy = label_noise.pair_flip(np.array([0, 1, 2, 2]), 1.0, 3, np.random.default_rng(0))
>>> noisy.labels.tolist(), noisy.realised_rate
([1, 2, 0, 0], 1.0)
>>> noisy.transition.tolist()
[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
"""

from typing import NamedTuple

import numpy as np


class NoisyLabels(NamedTuple):
    """Observed labels [n] int32, the share of them that changed, and P(observed | clean) [K, K].

    Clean classes are the rows of `transition`; a class that does not occur has a row of zeros.
    """

    labels: np.ndarray
    realised_rate: float
    transition: np.ndarray


def symmetric(labels, rate, num_classes, rng):
    """Moves each selected label to one of the other classes, all equally likely.

    P(ỹ = j | y) = rate / (K − 1) for j ≠ y, and P(ỹ = y | y) = 1 − rate.

    Args:
      labels: [n] clean integer labels in 0..K−1.
      rate: probability in [0, 1] that a label is selected.
      num_classes: K ≥ 2.
      rng: `numpy.random.Generator`.

    Returns:
      The `NoisyLabels`.
    """
    labels = _checked(labels, rate, num_classes)
    selected = _select(labels, rate, rng)
    # A shift of 1..K−1 modulo K reaches every other class once, and never the label itself.
    shift = rng.integers(1, num_classes, size=labels.shape)
    return _describe(labels, (labels + selected * shift) % num_classes, num_classes)


def pair_flip(labels, rate, num_classes, rng):
    """Moves each selected label to the next class.

    P(ỹ = (y + 1) mod K | y) = rate, and P(ỹ = y | y) = 1 − rate.

    Args:
      labels: [n] clean integer labels in 0..K−1.
      rate: probability in [0, 1] that a label is selected.
      num_classes: K ≥ 2.
      rng: `numpy.random.Generator`.

    Returns:
      The `NoisyLabels`.
    """
    labels = _checked(labels, rate, num_classes)
    selected = _select(labels, rate, rng)
    return _describe(labels, (labels + selected) % num_classes, num_classes)


def _select(labels, rate, rng):
    # The paper does not state whether labels are selected independently or in an exact number.
    return rng.random(labels.shape) < rate


def _checked(labels, rate, num_classes):
    labels = np.asarray(labels)
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be in [0, 1], but is {rate}")
    if num_classes < 2:
        raise ValueError(f"num_classes must be at least 2, but is {num_classes}")
    if labels.ndim != 1 or labels.size == 0 or labels.dtype.kind not in "iu":
        found = f"{labels.dtype} of shape {labels.shape}"
        raise ValueError(f"labels must be a non-empty [n] array of integers, but are {found}")
    if labels.min() < 0 or labels.max() >= num_classes:
        found = f"{labels.min()}..{labels.max()}"
        raise ValueError(f"labels must be in 0..{num_classes - 1}, but are in {found}")
    return labels.astype(np.int32)


def _describe(clean, observed, num_classes):
    counts = np.zeros((num_classes, num_classes))
    np.add.at(counts, (clean, observed), 1.0)
    transition = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    realised_rate = float(np.mean(clean != observed))
    return NoisyLabels(observed.astype(np.int32), realised_rate, transition)
