"""Stratified 60/20/20 splits and a standardisation that has seen the training part only.

The order is fixed: split the raw source, thin the training pool if the regime says so, fit the
standardisation to what is left of it, apply it to all three parts. Partition sizes depend on the
source and never on the seed, so the arrays of several seeds can be stacked.

>>> import numpy as np
>>> from pgeom.data import long_tail, sources, splits
>>> raw = splits.split(sources.load("long-tail"), seed=0)
>>> kept = long_tail.subsample(raw.train.labels, 10, 30, np.random.default_rng(0))
>>> raw = raw._replace(train=splits.take(raw.train, kept))
>>> one = splits.standardise(raw)
>>> one.train.features.shape, one.test.features.shape, one.mean.shape
((1118, 30), (1200, 30), (30,))
"""

import operator
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler


class Partition(NamedTuple):
    """Examples: features [n, d] and labels [n] int32."""

    features: np.ndarray
    labels: np.ndarray


class RawSplit(NamedTuple):
    """Three partitions in the units of the source, float64."""

    train: Partition
    validation: Partition
    test: Partition


class Split(NamedTuple):
    """Three standardised partitions, float32, with the mean [d] and scale [d] that made them.

    A raw x enters the model as (x − mean) / scale, so a perturbation of raw pixels comes first.
    """

    train: Partition
    validation: Partition
    test: Partition
    mean: np.ndarray
    scale: np.ndarray


# Five of a class leave two for validation and test, one each; fewer may leave a part without it.
_SMALLEST_CLASS = 5


def split(source, seed):
    """Splits a source 60/20/20, each part with the class proportions of the whole.

    Args:
      source: a `Source` with at least five examples of every class.
      seed: non-negative integer; the same seed gives the same split.

    Returns:
      A `RawSplit`. The parts are disjoint and together are the source.
    """
    counts = np.bincount(source.labels, minlength=source.num_classes)
    if counts.min() < _SMALLEST_CLASS:
        raise ValueError(
            f"source {source.name!r} must have at least {_SMALLEST_CLASS} examples of each class,"
            f" but has {counts.min()} of class {counts.argmin()}"
        )
    # An index, because None would be accepted below and mean a different split every time.
    seed = operator.index(seed)
    everything = np.arange(len(source.labels))
    train, rest = _halves(everything, source.labels, 0.4, seed)
    validation, test = _halves(rest, source.labels, 0.5, seed)
    whole = Partition(source.features, source.labels)
    return RawSplit(take(whole, train), take(whole, validation), take(whole, test))


def _halves(indices, labels, share, seed):
    return train_test_split(indices, test_size=share, random_state=seed, stratify=labels[indices])


def take(partition, indices):
    """Picks examples of a partition.

    Args:
      partition: a `Partition` of n examples.
      indices: [m] integers in 0..n−1.

    Returns:
      The `Partition` of those m examples, in that order.
    """
    return Partition(*(field[indices] for field in partition))


def standardise(raw):
    """Standardises every partition by the moments of the training features.

    x ↦ (x − mean) / scale, with scale the population standard deviation, and 1 for a feature that
    is constant on the training part. The paper does not state that every dataset is standardised.

    Args:
      raw: a `RawSplit`, its training pool already thinned where the regime does so.

    Returns:
      The `Split`: computed in float64, stored in float32.
    """
    scaler = StandardScaler().fit(raw.train.features)
    parts = (
        Partition(scaler.transform(part.features).astype(np.float32), part.labels) for part in raw
    )
    return Split(*parts, scaler.mean_.astype(np.float32), scaler.scale_.astype(np.float32))
