"""Regimes: what is done to the training part of a split, label noise or a long tail.

A regime is a kind and a level: a percentage of labels, or a ratio of class sizes.

>>> regime = Regime.parse("symmetric-40")
>>> regime.kind, regime.level, regime.noise_rate, str(regime)
('symmetric', 40, 0.4, 'symmetric-40')
>>> str(Regime.parse("clean")), Regime.parse("long-tail-30").noise_rate
('clean', 0.0)
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from pgeom.data import label_noise, long_tail, splits
from pgeom.data.label_noise import NoisyLabels
from pgeom.data.splits import Split
from pgeom.frontend.names import nearest, separated
from pgeom.frontend.numbers import count

CLEAN = "clean"


class Examples(NamedTuple):
    """What label noise may look at.

    Attributes:
      labels: `[n]`, clean.
      features: `[n, d]`, standardised.
      K: the number of classes.
      class_map: `[K]`, the class for which each is mistaken, if the dataset has such a map.
      annotator: a seed that the training and validation examples of a partition share.
    """

    labels: Int[np.ndarray, " n"]
    features: Float[np.ndarray, "n d"]
    K: int
    class_map: tuple[int, ...] | None = None
    annotator: int = 0


class Kind(NamedTuple):
    """What a regime does: it thins the training examples, or corrupts their labels.

    Attributes:
      corrupt: `corrupt(examples, rate, rng)`, the rate being the level in percent.
      thin: `thin(labels, K, level, rng)`, the indices of the examples to keep.
      largest: level.
      needs_map: whether `corrupt` reads the class map.
    """

    corrupt: Callable[[Examples, float, np.random.Generator], NoisyLabels] | None = None
    thin: Callable[..., Int[np.ndarray, " m"]] | None = None
    largest: float = 100
    needs_map: bool = False


def _symmetric(examples: Examples, rate: float, rng: np.random.Generator) -> NoisyLabels:
    return label_noise.symmetric(examples.labels, rate, examples.K, rng)


def _pair_flip(examples: Examples, rate: float, rng: np.random.Generator) -> NoisyLabels:
    return label_noise.pair_flip(examples.labels, rate, examples.K, rng)


def _asymmetric(examples: Examples, rate: float, rng: np.random.Generator) -> NoisyLabels:
    assert examples.class_map is not None  # `check` has seen to it
    labels, K = examples.labels, examples.K
    return label_noise.asymmetric(labels, rate, K, rng, class_map=examples.class_map)


def _instance(examples: Examples, rate: float, rng: np.random.Generator) -> NoisyLabels:
    labels, features, K = examples.labels, examples.features, examples.K
    draws = np.random.default_rng(examples.annotator)
    projections = draws.normal(size=(K, features.shape[1], K)).astype(features.dtype)
    return label_noise.instance_dependent(
        labels, rate, K, rng, features=features, projections=projections
    )


KINDS: dict[str, Kind] = {
    CLEAN: Kind(),
    "symmetric": Kind(_symmetric),
    "pair-flip": Kind(_pair_flip),
    "asymmetric": Kind(_asymmetric, needs_map=True),
    "instance": Kind(_instance),
    "long-tail": Kind(thin=long_tail.subsample, largest=np.inf),
}
FORMS = (CLEAN, *(f"{kind}-PERCENT" for kind, what in KINDS.items() if what.corrupt))
FORMS += tuple(f"{kind}-RATIO" for kind, what in KINDS.items() if what.thin)


def _unknown(what: str, name: str, near: str | None) -> ValueError:
    hint = f"did you mean {near!r}? " if near is not None else ""
    return ValueError(f"unknown {what} {name!r}; {hint}known: {', '.join(FORMS)}")


@dataclass(frozen=True)
class Regime:
    """A kind of `KINDS` at a level; `clean` has level 0, every other kind at least 1."""

    kind: str
    level: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise _unknown("kind of regime", self.kind, nearest(self.kind, KINDS))
        if self.kind == CLEAN and self.level:
            raise ValueError(f"clean has no level, got {self.level}")
        largest = KINDS[self.kind].largest
        if self.kind != CLEAN and not 1 <= self.level <= largest:
            must = f"in 1 … {largest}" if np.isfinite(largest) else "at least 1"
            raise ValueError(f"the level of {self.kind} must be {must}, got {self.level}")

    @classmethod
    def parse(cls, text: str) -> "Regime":
        """The regime that prints as `text`, or a ValueError that names the nearest kind."""
        if text == CLEAN:
            return cls(CLEAN)
        if (hint := separated(text)) is not None:
            raise ValueError(f"unknown regime {text!r}; {hint}")
        kind, _, level = text.rpartition("-")
        if not (level.isascii() and level.isdigit()):
            raise _unknown("regime", text, nearest(text, FORMS))
        if kind not in KINDS:
            near = nearest(kind, KINDS)
            raise _unknown("regime", text, f"{near}-{level}" if near not in (None, CLEAN) else near)
        return cls(kind, int(level))

    def __str__(self) -> str:
        return self.kind if self.kind == CLEAN else f"{self.kind}-{self.level}"

    @property
    def noise_rate(self) -> float:
        """The probability that a training label is changed, where its class is one that may be."""
        return self.level / 100 if KINDS[self.kind].corrupt is not None else 0.0


class Partition(NamedTuple):
    """A standardised split, and its training labels as observed."""

    split: Split
    noise: NoisyLabels


def partition(dataset: splits.Dataset, regime: Regime, seed: int) -> Partition:
    """The partition of a dataset under a regime with a seed.

    Raises:
      ValueError: if the dataset does not allow the regime, as in `check`.
    """
    _require_map(dataset, regime)
    rng = stream("noise", dataset.name, str(regime), seed)
    raw, thin = splits.split(dataset, seed), KINDS[regime.kind].thin
    if thin is not None:
        kept = thin(raw.train.labels, dataset.num_classes, regime.level, rng)
        raw = raw._replace(train=splits.take(raw.train, kept))
    split = splits.standardise(raw)
    return Partition(split, _observe(split.train, dataset, regime, seed, rng))


def corrupt_validation(
    validation: splits.Partition, dataset: splits.Dataset, regime: Regime, seed: int
) -> NoisyLabels:
    """The labels of a standardised validation part under the noise of the training labels.

    It is drawn from a stream of its own, so that the training labels stay as they are.
    """
    rng = stream("validation-noise", dataset.name, str(regime), seed)
    return _observe(validation, dataset, regime, seed, rng)


def check(dataset: splits.Dataset, regime: Regime, seed: int) -> None:
    """Refuse a regime that the dataset does not allow, without looking at its features.

    Raises:
      ValueError: for a tail longer than the classes are large, or asymmetric noise without a map.
    """
    _require_map(dataset, regime)
    thinned_size(dataset, regime, seed)


def thinned_size(dataset: splits.Dataset, regime: Regime, seed: int) -> int | None:
    """How many training examples a regime keeps; None for all of them, whatever the seed.

    Raises:
      ValueError: for a tail longer than the classes are large.
    """
    thin = KINDS[regime.kind].thin
    if thin is None:
        return None
    train = dataset.labels[splits.split_rows(dataset, seed)[0]]
    smallest = int(np.bincount(train).min())
    if regime.level > smallest:
        raise ValueError(
            f"{regime}: the ratio must be in [1, {smallest}], because the smallest class of "
            f"{dataset.name!r} has {count(smallest, 'training example')}; give "
            f"{regime.kind}-{smallest} or less, or {CLEAN} for the classes as they are"
        )
    return len(thin(train, dataset.num_classes, regime.level, np.random.default_rng(0)))


def _require_map(dataset: splits.Dataset, regime: Regime) -> None:
    if KINDS[regime.kind].needs_map and dataset.noise_map is None:
        raise ValueError(
            f"{regime} needs a class map, and the dataset {dataset.name!r} has none of its own; "
            "give one, as in --noise-map 2:7 3:8"
        )


def _observe(
    part: splits.Partition,
    dataset: splits.Dataset,
    regime: Regime,
    seed: int,
    rng: np.random.Generator,
) -> NoisyLabels:
    corrupt, K = KINDS[regime.kind].corrupt, dataset.num_classes
    if corrupt is None:
        return label_noise.unchanged(part.labels, K)
    annotator = int(stream("annotator", dataset.name, str(regime), seed).integers(2**62))
    examples = Examples(part.labels, part.features, K, dataset.noise_map, annotator)
    return corrupt(examples, regime.level / 100, rng)


def stream(name: str, dataset: str, regime: str, seed: int, *more: int) -> np.random.Generator:
    """The random stream of that name, for (dataset, regime, seed) and never for a loss.

    Separate for noise, init, order and dropout: drawing more from one changes no other.
    """
    words = (zlib.crc32(word.encode()) for word in (name, dataset, regime))
    return np.random.default_rng([*words, seed, *more])
