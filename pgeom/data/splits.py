"""Stratified 60/20/20 splits, standardised by the training part alone.

The order is fixed: split the raw dataset, thin the training pool if the regime says so, fit the
standardisation to what is left of the pool, apply it to all three parts. Partition sizes depend on
the dataset and never on the seed, so the arrays of several seeds can be stacked. A partition refers
to rows of its dataset, whose features it copies only when asked for them.

>>> import numpy as np
>>> from pgeom.data import regimes, sources, splits
>>> raw = splits.split(sources.load("long-tail"), seed=0)
>>> kept = regimes.subsample(raw.train.labels, 10, 30, np.random.default_rng(0))
>>> raw = raw._replace(train=splits.take(raw.train, kept))
>>> one = splits.standardise(raw)
>>> one.train.features.shape, one.test.features.shape, one.moments.mean.shape
((1118, 30), (1200, 30), (30,))
"""

import math
import operator
from typing import NamedTuple, Protocol, SupportsIndex, runtime_checkable

import numpy as np
from jaxtyping import Float, Float32, Float64, Int


@runtime_checkable
class Dataset(Protocol):
    """What a split and its regime read of a dataset."""

    @property
    def name(self) -> str: ...
    @property
    def features(self) -> Float[np.ndarray, "n d"]: ...
    @property
    def labels(self) -> Int[np.ndarray, " n"]: ...
    @property
    def num_classes(self) -> int: ...
    @property
    def noise_map(self) -> tuple[int, ...] | None: ...


class Moments(NamedTuple):
    """What standardises features: x enters a model as (x − mean) / scale."""

    mean: Float64[np.ndarray, " d"]
    scale: Float64[np.ndarray, " d"]

    def apply(self, features: Float[np.ndarray, "n d"]) -> Float32[np.ndarray, "n d"]:
        """The features standardised, in float32; a missing value is still missing."""
        mean, scale = (moment.astype(features.dtype) for moment in self)
        return ((features - mean) / scale).astype(np.float32, copy=False)

    def relative_to(self, other: "Moments") -> "Moments":
        """What standardises features that were standardised by other moments before."""
        return Moments((self.mean - other.mean) / other.scale, self.scale / other.scale)


class Partition(NamedTuple):
    """Some examples of a dataset, with their labels.

    Attributes:
      source: the features of the whole dataset, `[N, d]`.
      rows: those of the examples, `[n]`.
      labels: `[n]`.
      moments: by which the features are standardised; None leaves them as they are.
    """

    source: Float[np.ndarray, "N d"]
    rows: Int[np.ndarray, " n"]
    labels: Int[np.ndarray, " n"]
    moments: Moments | None = None

    @property
    def features(self) -> Float[np.ndarray, "n d"]:
        """The examples' features: as they are, or standardised, with the mean for missing ones."""
        features = self.source[self.rows]
        return features if self.moments is None else np.nan_to_num(self.moments.apply(features))


class RawSplit(NamedTuple):
    """Three partitions in the units and the precision of the dataset."""

    train: Partition
    validation: Partition
    test: Partition


class Split(NamedTuple):
    """Three standardised partitions, and the moments that standardise them."""

    train: Partition
    validation: Partition
    test: Partition
    moments: Moments


# Five of a class leave two for validation and test, one each; fewer may leave a part without it.
SMALLEST_CLASS = 5
SMALLEST_SCALE = 1e-19  # whose square float32 still has; a feature of less does not vary
LARGEST_FEATURE = 1e150  # whose square float64 still has, ten million times over


def largest_feature(dtype: type[np.floating]) -> float:
    """The largest size of a number whose feature can be standardised.

    Squares are summed in float64, but the mean is subtracted in the precision of the features.
    """
    return min(10.0 ** math.floor(math.log10(np.finfo(dtype).max)), LARGEST_FEATURE)


def split(dataset: Dataset, seed: SupportsIndex) -> RawSplit:
    """Split a dataset 60/20/20, each part with the class proportions of the whole.

    Args:
      dataset: at least five examples of every class.
      seed: a nonnegative integer; the same seed gives the same split.

    Returns:
      The `RawSplit`. The parts are disjoint and together are the dataset.
    """
    parts = split_rows(dataset, seed)
    return RawSplit(*(Partition(dataset.features, rows, dataset.labels[rows]) for rows in parts))


def split_rows(dataset: Dataset, seed: SupportsIndex) -> list[Int[np.ndarray, " _"]]:
    """The rows of the training, validation and test parts of `split`."""
    counts = np.bincount(dataset.labels, minlength=dataset.num_classes)
    if counts.min() < SMALLEST_CLASS:
        raise ValueError(
            f"dataset {dataset.name!r} must have at least {SMALLEST_CLASS} examples of each class,"
            f" got {counts.min()} of class {counts.argmin()}"
        )
    # An index, because None would be accepted below and mean a different split every time.
    random_state = operator.index(seed)
    everything = np.arange(len(dataset.labels))
    train, rest = _divide(everything, dataset.labels, 0.4, random_state)
    validation, test = _divide(rest, dataset.labels, 0.5, random_state)
    return [train, validation, test]


def _divide(
    indices: Int[np.ndarray, " m"], labels: Int[np.ndarray, " n"], share: float, seed: int
) -> list[Int[np.ndarray, " _"]]:
    """The indices without a stratified share of them, and that share."""
    from sklearn.model_selection import train_test_split

    return train_test_split(indices, test_size=share, random_state=seed, stratify=labels[indices])


def take(partition: Partition, indices: Int[np.ndarray, " m"]) -> Partition:
    """Pick examples of a partition.

    Args:
      partition: n examples.
      indices: integers in 0 … n−1, `[m]`.

    Returns:
      The `Partition` of those m examples, in that order.
    """
    return partition._replace(rows=partition.rows[indices], labels=partition.labels[indices])


def standardise(raw: RawSplit) -> Split:
    """Standardise every partition by the moments of the training features.

    x ↦ (x − mean) / scale, with scale the population standard deviation, and 1 for a feature that
    is constant, to within 1e-19, on the training part. The paper does not state that every dataset
    is standardised.

    NaN, which stands for a missing value, has no part in the moments and is replaced by the mean. A
    feature that no training example has is 0 everywhere.

    Args:
      raw: its training pool already thinned where the regime does so.

    Returns:
      The `Split`: moments computed in float64, features in float32.
    """
    moments = fit_moments(raw.train.features)
    train, validation, test = (part._replace(moments=moments) for part in raw)
    return Split(train, validation, test, moments)


def fit_moments(features: Float[np.ndarray, "n d"]) -> Moments:
    """The mean and scale of each feature; missing values have no part in them.

    The scale of a feature that is always missing is infinite, which makes it zero wherever it is
    there after all.
    """
    from sklearn.preprocessing import StandardScaler

    empty = np.isnan(features).all(axis=0)
    scaler = StandardScaler().fit(np.where(empty, 0, features) if empty.any() else features)
    # A default scaler has both; scikit-learn types them as optional.
    assert scaler.mean_ is not None and scaler.scale_ is not None
    scale = np.where(scaler.scale_ < SMALLEST_SCALE, 1.0, scaler.scale_)
    scale = np.where(empty, np.inf, scale)
    return Moments(np.asarray(scaler.mean_, np.float64), scale)
