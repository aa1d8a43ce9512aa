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
from jaxtyping import Int

from pgeom.data import label_noise, long_tail, splits
from pgeom.data.label_noise import NoisyLabels
from pgeom.data.splits import RawSplit, Split
from pgeom.frontend.names import nearest

CLEAN = "clean"


class Kind(NamedTuple):
    """What a regime does with a raw split: `apply(raw, level, K, rng)`, and its largest level."""

    apply: Callable[[RawSplit, int, int, np.random.Generator], tuple[RawSplit, NoisyLabels]]
    largest: float
    is_noise: bool


Corrupt = Callable[[Int[np.ndarray, " n"], float, int, np.random.Generator], NoisyLabels]
"""`corrupt(labels, rate, K, rng)`."""


def _noise(corrupt: Corrupt) -> Kind:
    """Label noise, of which the level is a percentage."""
    return Kind(lambda raw, level, K, rng: _corrupted(raw, corrupt, level, K, rng), 100, True)


def _corrupted(
    raw: RawSplit, corrupt: Corrupt, level: int, K: int, rng: np.random.Generator
) -> tuple[RawSplit, NoisyLabels]:
    return raw, corrupt(raw.train.labels, level / 100, K, rng)


def _thin(
    raw: RawSplit, level: int, K: int, rng: np.random.Generator
) -> tuple[RawSplit, NoisyLabels]:
    kept = long_tail.subsample(raw.train.labels, K, level, rng)
    thinned = raw._replace(train=splits.take(raw.train, kept))
    return _corrupted(thinned, label_noise.symmetric, 0, K, rng)


KINDS: dict[str, Kind] = {
    CLEAN: _noise(label_noise.symmetric),
    "symmetric": _noise(label_noise.symmetric),
    "pair-flip": _noise(label_noise.pair_flip),
    "long-tail": Kind(_thin, np.inf, False),
}
FORMS = (CLEAN, "symmetric-PERCENT", "pair-flip-PERCENT", "long-tail-RATIO")


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
        """The probability that a training label is changed."""
        return self.level / 100 if KINDS[self.kind].is_noise else 0.0


class Partition(NamedTuple):
    """A standardised split, and its training labels as observed."""

    split: Split
    noise: NoisyLabels


def partition(dataset: splits.Dataset, regime: Regime, seed: int) -> Partition:
    """The partition of a dataset under a regime with a seed."""
    rng = stream("noise", dataset.name, str(regime), seed)
    raw = splits.split(dataset, seed)
    raw, noise = KINDS[regime.kind].apply(raw, regime.level, dataset.num_classes, rng)
    return Partition(splits.standardise(raw), noise)


def stream(name: str, dataset: str, regime: str, seed: int, *more: int) -> np.random.Generator:
    """The random stream of that name, for (dataset, regime, seed) and never for a loss.

    Separate for noise, init, order and dropout: drawing more from one changes no other.
    """
    words = (zlib.crc32(word.encode()) for word in (name, dataset, regime))
    return np.random.default_rng([*words, seed, *more])
