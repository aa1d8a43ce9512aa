"""Regimes as values and as text, their partitions, and the streams they are drawn from."""

from dataclasses import replace

import chex
import numpy as np
import pytest

from pgeom.data import sources, splits
from pgeom.data.regimes import Regime
from pgeom.data.splits import corrupt_validation, partition, stream

RATES = {"clean": 0.0, "symmetric-20": 0.2, "pair-flip-40": 0.4, "long-tail-30": 0.0}
RATES |= {"asymmetric-30": 0.3, "instance-40": 0.4}
NOISE = [text for text in RATES if "tail" not in text]


@pytest.mark.parametrize("text", [*RATES, "symmetric-1", "symmetric-100", "long-tail-1000"])
def test_a_regime_prints_as_it_parses(text):
    assert str(Regime.parse(text)) == text
    assert Regime.parse(text) == Regime.parse(text)
    assert hash(Regime.parse(text)) == hash(Regime.parse(text))


@pytest.mark.parametrize("text", RATES)
def test_the_noise_rate_is_the_level_of_the_noisy_ones(text):
    assert Regime.parse(text).noise_rate == RATES[text]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "asymetric-40",
            "unknown regime 'asymetric-40'; did you mean 'asymmetric-40'? known: ",
        ),
        (
            "pair_flip-40",
            "unknown regime 'pair_flip-40'; did you mean 'pair-flip-40'? known: ",
        ),
        ("clear-3", "unknown regime 'clear-3'; did you mean 'clean'? known: "),
        ("Clean", "unknown regime 'Clean'; did you mean 'clean'? known: "),
        ("symmetric", "unknown regime 'symmetric'; did you mean 'symmetric-PERCENT'? known: "),
        ("symmetric-4.5", "'symmetric-4.5'; did you mean 'symmetric-PERCENT'? known: "),
        ("symmetric-٤", "'symmetric-٤'; did you mean 'symmetric-PERCENT'? known: "),
        ("longtail", "unknown regime 'longtail'; did you mean 'long-tail-RATIO'? known: "),
        ("symmetric-140", "the level of symmetric must be in 1 … 100, got 140"),
        ("symmetric-0", "the level of symmetric must be in 1 … 100, got 0"),
        ("long-tail-0", "the level of long-tail must be in 1 … inf, got 0"),
        ("clean-3", "the level of clean must be in 0 … 0, got 3"),
    ],
)
def test_a_text_that_is_no_regime_is_answered_with_what_would_be(text, said):
    with pytest.raises(ValueError) as caught:
        Regime.parse(text)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def movable(labels, text):
    """Which labels the noise of a regime may move."""
    mistaken = np.array(sources.load("digits").noise_map) != np.arange(10)
    return mistaken[labels] if "asymmetric" in text else np.ones(len(labels), bool)


@pytest.mark.parametrize("text", NOISE)
def test_noise_reaches_the_training_labels_alone(text):
    dataset = sources.load("digits")
    split, noise = partition(dataset, Regime.parse(text), seed=1)
    chex.assert_trees_all_equal(split, splits.split(dataset, 1))
    changed = noise.labels != split.train.labels
    assert np.mean(changed) == noise.realised_rate
    may = movable(split.train.labels, text)
    assert abs(np.mean(changed[may]) - RATES[text]) < 0.05 and not changed[~may].any()


@pytest.mark.parametrize("text", NOISE)
def test_validation_is_corrupted_like_training_but_by_draws_of_its_own(text):
    dataset, regime = sources.load("digits"), Regime.parse(text)
    split, noise = partition(dataset, regime, seed=1)
    validation = split.validation
    first, again = (corrupt_validation(validation, dataset, regime, 1) for _ in range(2))
    np.testing.assert_array_equal(first.labels, again.labels)
    may = movable(validation.labels, text)
    assert abs(np.mean((first.labels != validation.labels)[may]) - RATES[text]) < 0.1
    if regime.noise_rate:
        other = corrupt_validation(validation, dataset, regime, 2)
        assert not np.array_equal(first.labels, other.labels)
        same = corrupt_validation(split.train, dataset, regime, 1)
        assert not np.array_equal(noise.labels, same.labels), "a stream of its own"


def test_asymmetric_noise_needs_a_map():
    dataset, regime = sources.load("confusion"), Regime.parse("asymmetric-40")
    with pytest.raises(ValueError, match=r"needs a class map, .* 'confusion' has"):
        partition(dataset, regime, 0)
    with_map = replace(dataset, noise_map=(1, 1, 2, 3, 4, 0))
    split, noise = partition(with_map, regime, 0)
    moved = noise.labels != split.train.labels
    pairs = set(zip(split.train.labels[moved].tolist(), noise.labels[moved].tolist(), strict=True))
    assert pairs == {(0, 1), (5, 0)}


def test_a_long_tail_thins_the_training_part_and_changes_no_label():
    dataset = sources.load("long-tail")
    split, noise = partition(dataset, Regime.parse("long-tail-30"), seed=0)
    counts = np.bincount(split.train.labels)
    assert counts.max() == 30 * counts.min()
    np.testing.assert_array_equal(noise.labels, split.train.labels)
    whole = splits.split(dataset, 0)
    np.testing.assert_array_equal(split.test.labels, whole.test.labels)


def test_streams_are_separate_and_reproducible():
    names = [("noise", "digits", "clean", 0), ("init", "digits", "clean", 0)]
    names += [("noise", "digits", "clean", 1), ("noise", "digits", "symmetric-20", 0)]
    names += [("noise", "confusion", "clean", 0), ("order", "digits", "clean", 0, 1)]
    first = [stream(*name).integers(2**62) for name in names]
    assert len(set(first)) == len(names)
    assert first == [stream(*name).integers(2**62) for name in names]
    assert isinstance(stream(*names[0]), np.random.Generator)
