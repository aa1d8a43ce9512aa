"""Stratified 60/20/20 splits under a regime, standardised by the training part alone.

The order is fixed: split the raw dataset, thin the training part if the regime says so, fit the
standardisation to what is left of it, apply it to all three parts, and corrupt the training labels.
The sizes of the parts depend on the dataset and the regime and never on the seed, so the arrays of
several seeds can be stacked. A part refers to rows of its dataset, whose features it copies only
when asked for them.

>>> from pgeom.data import sources
>>> from pgeom.data.regimes import Regime
>>> one, noise = partition(sources.load("long-tail"), Regime.parse("long-tail-30"), seed=0)
>>> one.train.features.shape, one.test.features.shape, one.moments.mean.shape
((1118, 30), (1200, 30), (30,))
>>> noise.realised_rate
0.0
"""

import operator
import zlib
from typing import NamedTuple, SupportsIndex

import numpy as np
from jaxtyping import Float, Float32, Int

from pgeom.data.dataset import Dataset, Moments, fit_moments
from pgeom.data.regimes import CLEAN, KINDS, NoisyLabels, Regime, symmetric
from pgeom.messages import count

# Five of a class leave two for validation and test, one each; fewer may leave a part without it.
SMALLEST_CLASS = 5
ALL = Regime(CLEAN)  # examples


class Partition(NamedTuple):
    """Some examples of a dataset, with their labels.

    Attributes:
      source: the features of the whole dataset, `[N, d]`.
      rows: those of the examples, `[n]`.
      labels: `[n]`.
      moments: by which the features are standardised.
    """

    source: Float[np.ndarray, "N d"]
    rows: Int[np.ndarray, " n"]
    labels: Int[np.ndarray, " n"]
    moments: Moments

    @property
    def features(self) -> Float32[np.ndarray, "n d"]:
        """The examples' features, standardised, with the mean for missing ones."""
        return np.nan_to_num(self.moments.apply(self.source[self.rows]))


class Split(NamedTuple):
    """The three parts of a dataset, standardised by the moments of the training part."""

    train: Partition
    validation: Partition
    test: Partition

    @property
    def moments(self) -> Moments:
        return self.train.moments


def split(dataset: Dataset, seed: SupportsIndex, regime: Regime = ALL) -> Split:
    """Split a dataset 60/20/20, each part with the class proportions of the whole.

    Features become (x − mean) / scale, in float32; a missing value is replaced by the mean. The
    paper does not state that every dataset is standardised.

    Args:
      dataset: at least five examples of every class.
      seed: a nonnegative integer; the same seed gives the same split.
      regime: which may keep only some of the training examples.

    Returns:
      The `Split`. The parts are disjoint, and together they are the dataset, unless the regime
      keeps fewer.
    """
    parts = split_rows(dataset, seed, regime)
    moments = fit_moments(dataset.features[parts[0]])
    x, y = dataset.features, dataset.labels
    return Split(*(Partition(x, rows, y[rows], moments) for rows in parts))


def split_rows(
    dataset: Dataset, seed: SupportsIndex, regime: Regime = ALL
) -> list[Int[np.ndarray, " _"]]:
    """The rows of the training, validation and test parts of `split`.

    Raises:
      ValueError: if the dataset does not allow the regime: for a tail longer than the classes are
        large, or asymmetric noise without a map.
    """
    from sklearn.model_selection import train_test_split

    require_enough(dataset)
    kind, labels = KINDS[regime.kind], dataset.labels
    if "class_map" in kind.reads and dataset.noise_map is None:
        raise ValueError(
            f"{regime} needs a class map, and the dataset {dataset.name!r} has none of its own; "
            "give noise_map="
        )
    # An index, because None would be accepted and mean a different split every time.
    random_state = operator.index(seed)
    rows = np.arange(len(labels))
    train, rest = train_test_split(rows, test_size=0.4, random_state=random_state, stratify=labels)
    rests = train_test_split(rest, test_size=0.5, random_state=random_state, stratify=labels[rest])
    if kind.thin is not None:
        smallest = int(np.bincount(labels[train]).min())
        if regime.level > smallest:
            raise ValueError(
                f"{regime}: the ratio must be in [1, {smallest}], because the smallest class of "
                f"{dataset.name!r} has {count(smallest, 'training example')}; give "
                f"{regime.kind}-{smallest} or less, or {CLEAN} for the classes as they are"
            )
        rng = stream("noise", dataset.name, str(regime), random_state)
        train = train[kind.thin(labels[train], dataset.num_classes, regime.level, rng)]
    return [train, *rests]


def require_enough(dataset: Dataset) -> None:
    """Refuse a dataset with a class too small for three parts."""
    rarest = dataset.class_sizes.argmin()
    if (size := dataset.class_sizes[rarest]) < SMALLEST_CLASS:
        must = f"at least {SMALLEST_CLASS} examples, got {size} of {dataset.classes[rarest]!r}"
        raise ValueError(f"each class of {dataset.name!r} must have {must}")


def partition(dataset: Dataset, regime: Regime, seed: int) -> tuple[Split, NoisyLabels]:
    """The standardised split of a dataset, and its training labels as observed under a regime."""
    parts = split(dataset, seed, regime)
    return parts, _observe("noise", parts.train, dataset, regime, seed)


def corrupt_validation(
    validation: Partition, dataset: Dataset, regime: Regime, seed: int
) -> NoisyLabels:
    """The labels of a standardised validation part under the noise of the training labels.

    It is drawn from a stream of its own, so that the training labels stay as they are.
    """
    return _observe("validation-noise", validation, dataset, regime, seed)


def _observe(name, part, dataset, regime, seed):
    kind, rng = KINDS[regime.kind], stream(name, dataset.name, str(regime), seed)
    annotator = stream("annotator", dataset.name, str(regime), seed)
    known = {
        "class_map": lambda: dataset.noise_map,
        "features": lambda: part.features,
        "annotator": lambda: int(annotator.integers(2**62)),
    }
    more = {name: known[name]() for name in kind.reads}
    corrupt = kind.corrupt or symmetric  # at a rate of zero
    return corrupt(part.labels, regime.noise_rate, dataset.num_classes, rng, **more)


def stream(name: str, dataset: str, regime: str, seed: int, *more: int) -> np.random.Generator:
    """The random stream of that name, for (dataset, regime, seed) and never for a loss.

    Separate for noise, init, order and dropout: drawing more from one changes no other.
    """
    words = (zlib.crc32(word.encode()) for word in (name, dataset, regime))
    return np.random.default_rng([*words, seed, *more])
