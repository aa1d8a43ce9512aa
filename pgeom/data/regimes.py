"""Regimes: what is done to the training part of a split, label noise or a long tail.

A regime is a kind and a level: a percentage of labels, or a ratio of class sizes. A kind is one of
the functions of labels below, which know nothing of datasets and are drawn from a generator.

>>> regime = Regime.parse("symmetric-40")
>>> regime.kind, regime.level, regime.noise_rate, str(regime)
('symmetric', 40, 0.4, 'symmetric-40')
>>> noisy = pair_flip(np.array([0, 1, 2, 2]), 1.0, 3, np.random.default_rng(0))
>>> noisy.labels.tolist(), noisy.realised_rate
([1, 2, 0, 0], 1.0)

Noise is applied once, to clean labels. Each label is selected independently with the given rate, so
the realised rate differs slightly from it; the realised rate and the empirical transition matrix
are returned with the labels. Unless the features decide, selections from the same generator state
are nested: whatever flips at 20% flips at 40% too, to the same class.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Int32, Int64
from numpy.typing import ArrayLike

from pgeom.messages import known_name

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


def symmetric(labels: ArrayLike, rate: float, K: int, rng: np.random.Generator) -> NoisyLabels:
    """Move each selected label to one of the other classes, all equally likely.

    P(ỹ = j | y) = rate / (K − 1) for j ≠ y, and P(ỹ = y | y) = 1 − rate.

    Args:
      labels: clean integer labels in 0 … K−1, `[n]`.
      rate: the probability in [0, 1] that a label is selected.
      K: the number of classes.
      rng: the source of randomness.
    """

    def another(clean):
        # A shift of 1 … K−1 modulo K reaches every other class once, and never the label itself.
        return (clean + rng.integers(1, K, size=clean.shape)) % K

    return _move(labels, rate, K, rng, another)


def pair_flip(labels: ArrayLike, rate: float, K: int, rng: np.random.Generator) -> NoisyLabels:
    """Move each selected label to the next class.

    P(ỹ = (y + 1) mod K | y) = rate, and P(ỹ = y | y) = 1 − rate; arguments as of `symmetric`.
    """
    return _move(labels, rate, K, rng, lambda clean: (clean + 1) % K)


def asymmetric(
    labels: ArrayLike,
    rate: float,
    K: int,
    rng: np.random.Generator,
    *,
    class_map: Sequence[int],
) -> NoisyLabels:
    """Move each selected label to the class for which its own is mistaken.

    P(ỹ = map(y) | y) = rate where map(y) ≠ y; other classes keep their labels, so that the
    realised rate is lower than the given one. Arguments as of `symmetric`, and

    Args:
      class_map: `[K]` classes, that of a class being itself where it is not mistaken.
    """
    return _move(labels, rate, K, rng, lambda clean: np.asarray(class_map)[clean])


def instance_dependent(
    labels: ArrayLike,
    rate: float,
    K: int,
    rng: np.random.Generator,
    *,
    features: Float[np.ndarray, "n d"],
    annotator: int,
) -> NoisyLabels:
    """Move labels as a confused annotator would, who looks at the features of each example.

    An example x with label y is selected with a probability q of its own, from a normal
    distribution around the rate, and then P(ỹ = j) = softmax(x · w_y)_j over the classes j ≠ y,
    as in Xia et al., Part-dependent Label Noise (2020), Algorithm 2. They truncate q to [0, 1];
    here the interval is cut to be symmetric about the rate, so that the rate is the mean of q.
    Arguments as of `symmetric`, and

    Args:
      features: of the examples, standardised.
      annotator: the seed of the w_y, which have standard normal entries.
    """
    clean = np.asarray(labels)
    projections = np.random.default_rng(annotator).normal(size=(K, features.shape[1], K))
    projections = projections.astype(features.dtype)
    selected = rng.random(clean.shape) < _flip_rates(rate, len(clean), rng)
    # the largest sum of scores and Gumbel noise is a draw from their softmax
    scores = rng.gumbel(size=(len(clean), K))
    for c in range(K):
        scores[clean == c] += features[clean == c] @ projections[c]
    scores[np.arange(len(clean)), clean] = -np.inf
    return _describe(clean, np.where(selected, scores.argmax(axis=1), clean), K)


def _flip_rates(rate, n, rng):
    """Draws from a normal distribution around the rate, truncated symmetrically inside [0, 1]."""
    reach = min(rate, 1 - rate)
    if reach == 0:
        return np.full(n, float(rate))
    rates = rng.normal(rate, FLIP_RATE_SD, n)
    while len(outside := np.flatnonzero(np.abs(rates - rate) > reach)):
        rates[outside] = rng.normal(rate, FLIP_RATE_SD, len(outside))
    return rates


def _move(labels, rate, K, rng, target):
    """The labels, of which each selected one becomes its `target(labels)`."""
    clean = np.asarray(labels)
    # The paper does not state whether labels are selected independently or in an exact number.
    selected = rng.random(clean.shape) < rate
    return _describe(clean, np.where(selected, target(clean), clean), K)


def _describe(clean, observed, K):
    counts = np.zeros((K, K))
    np.add.at(counts, (clean, observed), 1.0)
    transition = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    return NoisyLabels(observed.astype(np.int32), float(np.mean(clean != observed)), transition)


def keep_counts(n_max: int, K: int, ratio: float) -> Int64[np.ndarray, " K"]:
    """How many examples of each class an exponential long tail keeps.

    n_c = n_max · ratio^(−c / (K − 1)), rounded to the nearest integer: class 0 stays the largest,
    and class K−1 becomes the rarest.

    >>> keep_counts(360, 10, 30).tolist()
    [360, 247, 169, 116, 79, 54, 37, 26, 18, 12]
    """
    return np.rint(n_max * float(ratio) ** -(np.arange(K) / (K - 1))).astype(np.int64)


def subsample(
    labels: ArrayLike, K: int, ratio: float, rng: np.random.Generator
) -> Int64[np.ndarray, " m"]:
    """Draw a long-tailed subset of a training pool, without replacement.

    n_max is the largest multiple of the ratio that the smallest class of the pool can supply, so
    an integer ratio is met exactly whatever the pool. The long-tail dataset has 600 examples per
    class, hence 360 per class in the training pool of every seed: it keeps 360 … 12.

    Args:
      labels: integer labels of the pool, `[n]`.
      K: the number of classes.
      ratio: the size of the largest class over that of the smallest, from 1 to the size of the
        smallest class of the pool.
      rng: the source of randomness.

    Returns:
      Sorted indices into the pool, `[m]`: `keep_counts(n_max, K, ratio)` of each class.
    """
    labels = np.asarray(labels)
    smallest = np.bincount(labels, minlength=K).min()
    n_max = round(ratio * math.floor(smallest / ratio))
    kept = [
        rng.choice(np.flatnonzero(labels == c), size=size, replace=False)
        for c, size in enumerate(keep_counts(n_max, K, ratio))
    ]
    return np.sort(np.concatenate(kept))


class Kind(NamedTuple):
    """What a regime does: it corrupts the training labels, or thins the training examples.

    Attributes:
      corrupt: `corrupt(labels, rate, K, rng)`, the rate being the level in percent.
      thin: `thin(labels, K, level, rng)`, the indices of the examples to keep.
      largest: level.
      reads: what else `corrupt` is given by name: "class_map", the dataset's; "features",
        standardised; "annotator", a seed that training and validation examples share.
    """

    corrupt: Callable[..., NoisyLabels] | None = None
    thin: Callable[..., Int[np.ndarray, " m"]] | None = None
    largest: float = 100
    reads: tuple[str, ...] = ()


CLEAN = "clean"
KINDS: dict[str, Kind] = {
    CLEAN: Kind(largest=0),
    "symmetric": Kind(symmetric),
    "pair-flip": Kind(pair_flip),
    "asymmetric": Kind(asymmetric, reads=("class_map",)),
    "instance": Kind(instance_dependent, reads=("features", "annotator")),
    "long-tail": Kind(thin=subsample, largest=np.inf),
}
FORMS = (CLEAN, *(f"{kind}-PERCENT" for kind, what in KINDS.items() if what.corrupt))
FORMS += tuple(f"{kind}-RATIO" for kind, what in KINDS.items() if what.thin)


@dataclass(frozen=True)
class Regime:
    """A kind of `KINDS` at a level; `clean` has level 0, every other kind at least 1."""

    kind: str
    level: int = 0

    def __post_init__(self) -> None:
        largest = KINDS[known_name("kind of regime", self.kind, KINDS)].largest
        least = min(1, largest)
        if not least <= self.level <= largest:
            must = f"in {least} … {largest}, got {self.level}"
            raise ValueError(f"the level of {self.kind} must be {must}")

    @classmethod
    def parse(cls, text: str) -> "Regime":
        """The regime that prints as `text`, or a ValueError that names the nearest form."""
        kind, _, level = text.rpartition("-")
        if not (level.isascii() and level.isdigit()):
            return cls(known_name("regime", text, FORMS))
        if kind not in KINDS:
            known_name("regime", text, [re.sub("[A-Z]+", level, form) for form in FORMS])
        return cls(kind, int(level))

    def __str__(self) -> str:
        return f"{self.kind}-{self.level}" if self.level else self.kind

    @property
    def noise_rate(self) -> float:
        """The probability that a training label is changed, where its class is one that may be."""
        return self.level / 100 if KINDS[self.kind].corrupt is not None else 0.0


def transition(
    regime: Regime, K: int, class_map: Sequence[int] | None = None
) -> Float[np.ndarray, "K K"]:
    """P(observed | clean), one row per clean class.

    >>> transition(Regime.parse("symmetric-40"), 3).tolist()
    [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]

    Args:
      regime: clean, or of noise that depends on the class alone.
      K: the number of classes.
      class_map: `[K]`, that of the dataset, for asymmetric noise.

    Raises:
      ValueError: for noise that depends on the features, and for a long tail.
    """
    identity = np.eye(K)
    moved = {
        CLEAN: identity,
        "symmetric": (1 - identity) / (K - 1),
        "pair-flip": np.roll(identity, 1, axis=1),
        "asymmetric": None if class_map is None else identity[list(class_map)],
    }.get(regime.kind)
    if moved is None:
        raise ValueError(f"{regime} is no channel: labels change by more than their class")
    return (1 - regime.noise_rate) * identity + regime.noise_rate * moved
