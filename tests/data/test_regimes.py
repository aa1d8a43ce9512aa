"""Regimes by name, their partitions, and the streams they are drawn from."""

import numpy as np
import pytest

from pgeom.data import sources, splits
from pgeom.data.regimes import noise_of, partition, stream


def test_names():
    assert noise_of("clean") == ("clean", 0.0)
    assert noise_of("pair-flip-40") == ("pair-flip", 0.4)
    assert noise_of("long-tail-30") == ("long-tail", 0.3)


@pytest.mark.parametrize("regime", ["clean", "symmetric-20", "pair-flip-40"])
def test_noise_reaches_the_training_labels_alone(regime):
    source = sources.load("digits")
    split, noise = partition(source, regime, seed=1)
    clean = splits.standardise(splits.split(source, 1))
    for part, untouched in zip(split, clean, strict=True):
        for found, expected in zip(part, untouched, strict=True):
            np.testing.assert_array_equal(found, expected)
    changed = np.mean(noise.labels != split.train.labels)
    assert changed == noise.realised_rate and abs(changed - noise_of(regime)[1]) < 0.05


def test_a_long_tail_thins_the_training_part_and_changes_no_label():
    split, noise = partition(sources.load("long-tail"), "long-tail-30", seed=0)
    counts = np.bincount(split.train.labels)
    assert counts.max() / counts.min() > 20
    np.testing.assert_array_equal(noise.labels, split.train.labels)


def test_streams_are_separate_and_reproducible():
    names = [("noise", "digits", "clean", 0), ("init", "digits", "clean", 0)]
    names += [("noise", "digits", "clean", 1), ("noise", "digits", "symmetric-20", 0)]
    names += [("noise", "confusion", "clean", 0), ("order", "digits", "clean", 0, 1)]
    first = [stream(*name).integers(2**62) for name in names]
    assert len(set(first)) == len(names)
    assert first == [stream(*name).integers(2**62) for name in names]
    assert isinstance(stream(*names[0]), np.random.Generator)
