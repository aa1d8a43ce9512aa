"""Regimes as values and as text, their partitions, and the streams they are drawn from."""

import chex
import numpy as np
import pytest

from pgeom.data import datasets, splits
from pgeom.data.regimes import CLEAN, FORMS, KINDS, Regime, partition, stream

RATES = {"clean": 0.0, "symmetric-20": 0.2, "pair-flip-40": 0.4, "long-tail-30": 0.0}


@pytest.mark.parametrize("text", [*RATES, "symmetric-1", "symmetric-100", "long-tail-1000"])
def test_a_regime_prints_as_it_parses(text):
    assert str(Regime.parse(text)) == text
    assert Regime.parse(text) == Regime.parse(text)
    assert hash(Regime.parse(text)) == hash(Regime.parse(text))


@pytest.mark.parametrize("text", RATES)
def test_the_noise_rate_is_the_level_of_the_noisy_ones(text):
    assert Regime.parse(text).noise_rate == RATES[text]


def test_every_kind_has_a_form_to_show():
    assert [form.rpartition("-")[0] or form for form in FORMS] == list(KINDS)


def test_kind_and_level_are_the_parts_of_the_text():
    assert Regime.parse("pair-flip-40") == Regime("pair-flip", 40) != Regime("pair-flip", 20)
    assert Regime.parse("clean") == Regime(CLEAN)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("asymetric-40", "unknown regime 'asymetric-40'; did you mean 'symmetric-40'? known: "),
        ("pair_flip-40", "unknown regime 'pair_flip-40'; did you mean 'pair-flip-40'? known: "),
        ("clear-3", "unknown regime 'clear-3'; did you mean 'clean'? known: "),
        ("Clean", "unknown regime 'Clean'; did you mean 'clean'? known: "),
        ("symmetric", "unknown regime 'symmetric'; did you mean 'symmetric-PERCENT'? known: "),
        ("symmetric-4.5", "'symmetric-4.5'; did you mean 'symmetric-PERCENT'? known: "),
        ("symmetric-٤", "'symmetric-٤'; did you mean 'symmetric-PERCENT'? known: "),
        ("longtail", "unknown regime 'longtail'; did you mean 'long-tail-RATIO'? known: "),
        ("symmetric-140", "the level of symmetric must be in 1 … 100, got 140"),
        ("symmetric-0", "the level of symmetric must be in 1 … 100, got 0"),
        ("long-tail-0", "the level of long-tail must be at least 1, got 0"),
        ("clean-3", "clean has no level, got 3"),
    ],
)
def test_a_text_that_is_no_regime_is_answered_with_what_would_be(text, said):
    with pytest.raises(ValueError) as caught:
        Regime.parse(text)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "%%", "%%-40", "-40", "40"])
def test_a_text_like_no_regime_has_no_hint(text):
    with pytest.raises(ValueError) as caught:
        Regime.parse(text)
    assert str(caught.value) == f"unknown regime {text!r}; known: {', '.join(FORMS)}"


@pytest.mark.parametrize(
    ("kind", "level", "said"),
    [
        ("asymetric", 40, "unknown kind of regime 'asymetric'; did you mean 'symmetric'? known: "),
        ("%%", 40, "unknown kind of regime '%%'; known: "),
        ("symmetric", 0, "the level of symmetric must be in 1 … 100, got 0"),
        ("pair-flip", 101, "the level of pair-flip must be in 1 … 100, got 101"),
        ("clean", 20, "clean has no level, got 20"),
    ],
)
def test_a_value_that_no_text_gives_cannot_be_made(kind, level, said):
    with pytest.raises(ValueError) as caught:
        Regime(kind, level)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("text", ["clean", "symmetric-20", "pair-flip-40"])
def test_noise_reaches_the_training_labels_alone(text):
    dataset = datasets.load("digits")
    split, noise = partition(dataset, Regime.parse(text), seed=1)
    chex.assert_trees_all_equal(split, splits.standardise(splits.split(dataset, 1)))
    changed = np.mean(noise.labels != split.train.labels)
    assert changed == noise.realised_rate and abs(changed - RATES[text]) < 0.05


def test_a_long_tail_thins_the_training_part_and_changes_no_label():
    dataset = datasets.load("long-tail")
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
