"""Regimes: label noise and long tails, applied to the training part of a split.

Label noise, with a record of what was drawn: by class, and by the features of each example.

Noise is applied once, to clean labels. Each label is selected independently with the given rate, so
the realised rate differs slightly from it; the realised rate and the empirical transition matrix
are returned with the labels. Unless the features decide, selections from the same generator state
are nested: whatever flips at 20% flips at 40% too, to the same class.

>>> import numpy as np
>>> noisy = pair_flip(np.array([0, 1, 2, 2]), 1.0, 3, np.random.default_rng(0))
>>> noisy.labels.tolist(), noisy.realised_rate
([1, 2, 0, 0], 1.0)
>>> noisy.transition.tolist()
[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]

Exponential long tails: a balanced training pool thinned class by class.

Class 0 stays the largest and class K−1 becomes the rarest. Only the training pool is thinned;
validation and test stay as they are.

>>> import numpy as np
>>> keep_counts(360, 10, 30).tolist()
[360, 247, 169, 116, 79, 54, 37, 26, 18, 12]
>>> balanced = np.repeat(np.arange(3), 8)
>>> kept = subsample(balanced, 3, 4, np.random.default_rng(0))
>>> np.bincount(balanced[kept]).tolist()
[8, 4, 2]

Regimes: what is done to the training part of a split, label noise or a long tail.

A regime is a kind and a level: a percentage of labels, or a ratio of class sizes.

>>> regime = Regime.parse("symmetric-40")
>>> regime.kind, regime.level, regime.noise_rate, str(regime)
('symmetric', 40, 0.4, 'symmetric-40')
>>> str(Regime.parse("clean")), Regime.parse("long-tail-30").noise_rate
('clean', 0.0)

Noise channels: how a regime changes the probabilities of the labels, exactly.

>>> from pgeom.data.regimes import Regime
>>> transition(Regime.parse("symmetric-40"), 3).tolist()
[[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
"""

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Int32, Int64, Integer
from numpy.typing import ArrayLike

from pgeom.data import splits
from pgeom.data.splits import Split
from pgeom.deferred import Deferred
from pgeom.messages import count, nearest, separated

checks = Deferred("pgeom.checks")  # it needs JAX, without which regimes are parsed
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
    checks.require(targets.shape == (K,), "class_map", f"{K} classes", targets)
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
    checks.require(0 <= rate <= 1, "rate", "in [0, 1]", rate)
    checks.check_num_classes(K)
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.size == 0 or labels.dtype.kind not in "iu":
        raise ValueError(
            "labels must be a non-empty [n] array of integers, "
            f"got {labels.dtype} of shape {labels.shape}"
        )
    outside = labels[(labels < 0) | (labels >= K)]
    checks.require(outside.size == 0, "labels", f"in 0 … {K - 1}", outside)
    return labels.astype(np.int32)


def _describe(
    clean: Int32[np.ndarray, " n"], observed: Integer[np.ndarray, " n"], K: int
) -> NoisyLabels:
    counts = np.zeros((K, K))
    np.add.at(counts, (clean, observed), 1.0)
    transition = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    realised_rate = float(np.mean(clean != observed))
    return NoisyLabels(observed.astype(np.int32), realised_rate, transition)


def keep_counts(n_max: int, K: int, ratio: float | int) -> Int64[np.ndarray, " K"]:
    """The number of examples that each class keeps.

    n_c = n_max · ratio^(−c / (K − 1)), rounded to the nearest integer.

    Args:
      n_max: the size of class 0.
      K: the number of classes.
      ratio: n_max over the size of class K−1; at least 1, and below 2 n_max so that class K−1
        keeps an example.

    Returns:
      Counts `[K]`, never increasing.
    """
    checks.check_num_classes(K)
    checks.require(1 <= ratio < 2 * n_max, "ratio", f"in [1, 2 n_max = {2 * n_max})", ratio)
    exponents = np.arange(K) / (K - 1)
    return np.rint(n_max * float(ratio) ** -exponents).astype(np.int64)


def subsample(
    labels: ArrayLike, K: int, ratio: float | int, rng: np.random.Generator
) -> Int64[np.ndarray, " m"]:
    """Draw a long-tailed subset of a training pool, without replacement.

    n_max is the largest multiple of the ratio that the smallest class of the pool can supply, so
    an integer ratio is met exactly whatever the pool. The long-tail dataset has 600 examples per
    class, hence 360 per class in the training pool of every seed: it keeps 360 … 12.

    Args:
      labels: integer labels of the pool, `[n]`.
      K: the number of classes.
      ratio: the size of the largest class over that of the smallest, at least 1.
      rng: the source of randomness.

    Returns:
      Sorted indices into the pool, `[m]`: `keep_counts(n_max, K, ratio)` of each class.
    """
    labels = np.asarray(labels)
    counts = np.bincount(labels, minlength=K)
    checks.require(len(counts) <= K, "labels", f"in 0 … {K - 1}", len(counts) - 1)
    smallest = counts.min()
    attainable = f"in [1, {smallest}] (up to the smallest class count)"
    checks.require(1 <= ratio <= smallest, "ratio", attainable, ratio)
    n_max = round(ratio * math.floor(smallest / ratio))
    kept = [
        rng.choice(np.flatnonzero(labels == c), size=size, replace=False)
        for c, size in enumerate(keep_counts(n_max, K, ratio))
    ]
    return np.sort(np.concatenate(kept))


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
    return symmetric(examples.labels, rate, examples.K, rng)


def _pair_flip(examples: Examples, rate: float, rng: np.random.Generator) -> NoisyLabels:
    return pair_flip(examples.labels, rate, examples.K, rng)


def _asymmetric(examples: Examples, rate: float, rng: np.random.Generator) -> NoisyLabels:
    assert examples.class_map is not None  # `check` has seen to it
    labels, K = examples.labels, examples.K
    return asymmetric(labels, rate, K, rng, class_map=examples.class_map)


def _instance(examples: Examples, rate: float, rng: np.random.Generator) -> NoisyLabels:
    labels, features, K = examples.labels, examples.features, examples.K
    draws = np.random.default_rng(examples.annotator)
    projections = draws.normal(size=(K, features.shape[1], K)).astype(features.dtype)
    return instance_dependent(labels, rate, K, rng, features=features, projections=projections)


KINDS: dict[str, Kind] = {
    CLEAN: Kind(),
    "symmetric": Kind(_symmetric),
    "pair-flip": Kind(_pair_flip),
    "asymmetric": Kind(_asymmetric, needs_map=True),
    "instance": Kind(_instance),
    "long-tail": Kind(thin=subsample, largest=np.inf),
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
        return unchanged(part.labels, K)
    annotator = int(stream("annotator", dataset.name, str(regime), seed).integers(2**62))
    examples = Examples(part.labels, part.features, K, dataset.noise_map, annotator)
    return corrupt(examples, regime.level / 100, rng)


def stream(name: str, dataset: str, regime: str, seed: int, *more: int) -> np.random.Generator:
    """The random stream of that name, for (dataset, regime, seed) and never for a loss.

    Separate for noise, init, order and dropout: drawing more from one changes no other.
    """
    words = (zlib.crc32(word.encode()) for word in (name, dataset, regime))
    return np.random.default_rng([*words, seed, *more])


def transition(
    regime: Regime, K: int, noise_map: Sequence[int] | None = None
) -> Float[np.ndarray, "K K"]:
    """P(observed | clean), one row per clean class.

    Args:
      regime: clean, or of noise that depends on the class alone.
      K: the number of classes.
      noise_map: `[K]`, that of the dataset, for asymmetric noise.

    Raises:
      ValueError: for noise that depends on the features, and for a long tail.
    """
    rate, identity = regime.noise_rate, np.eye(K)
    if regime.kind == "symmetric":
        moved = (1 - identity) / (K - 1)
    elif regime.kind == "pair-flip":
        moved = np.roll(identity, 1, axis=1)
    elif regime.kind == "asymmetric" and noise_map is not None:
        moved = identity[list(noise_map)]
    elif regime.kind == "clean":
        return identity
    else:
        raise ValueError(f"{regime} is no channel: labels change by more than their class")
    return (1 - rate) * identity + rate * moved
