"""Regimes: a split of a source under label noise, or thinned to a long tail.

A regime is a name: clean, symmetric-20, pair-flip-40, or long-tail-30 for a ratio of thirty to
one.

>>> noise_of("symmetric-40")
('symmetric', 0.4)
"""

import zlib
from typing import NamedTuple

import numpy as np

from pgeom.data import label_noise, long_tail, splits
from pgeom.data.label_noise import NoisyLabels
from pgeom.data.sources import Source
from pgeom.data.splits import Split


class Partition(NamedTuple):
    """A standardised split, and its training labels as observed."""

    split: Split
    noise: NoisyLabels


def partition(source: Source, regime: str, seed: int) -> Partition:
    """The partition of a source in a regime with a seed."""
    raw, K = splits.split(source, seed), source.num_classes
    kind, level = noise_of(regime)
    rng = stream("noise", source.name, regime, seed)
    if kind == "long-tail":
        kept = long_tail.subsample(raw.train.labels, K, round(100 * level), rng)
        raw, kind, level = raw._replace(train=splits.take(raw.train, kept)), "clean", 0.0
    corrupt = label_noise.pair_flip if kind == "pair-flip" else label_noise.symmetric
    return Partition(splits.standardise(raw), corrupt(raw.train.labels, level, K, rng))


def noise_of(regime: str) -> tuple[str, float]:
    """The kind of label noise in a regime, and its rate."""
    kind, _, percent = regime.rpartition("-")
    return ("clean", 0.0) if regime == "clean" else (kind, int(percent) / 100)


def stream(name: str, dataset: str, regime: str, seed: int, *more: int) -> np.random.Generator:
    """The random stream of that name, for (dataset, regime, seed) and never for a loss.

    Separate for noise, init, order and dropout: drawing more from one changes no other.
    """
    words = (zlib.crc32(word.encode()) for word in (name, dataset, regime))
    return np.random.default_rng([*words, seed, *more])
