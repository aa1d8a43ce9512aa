"""Splits are stratified, disjoint and reproducible; standardisation sees the training part only."""

import chex
import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from pgeom.data import sources, splits
from pgeom.data.dataset import fit_moments

SIZES = {
    "breast-cancer": (341, 114, 114),
    "digits": (1078, 359, 360),
    "confusion": (1440, 480, 480),
    "long-tail": (3600, 1200, 1200),
}


@pytest.fixture(scope="module")
def loaded():
    return {name: sources.load(name) for name in SIZES}


def numbered(counts):
    """A dataset whose only feature is the index of the example, to follow where each one goes."""
    labels = np.repeat(np.arange(len(counts)), counts)
    return sources.from_arrays("numbered", np.arange(len(labels), dtype=float)[:, None], labels)


def parts(train, test):
    """A split of these examples whose validation part is its test part."""
    moments = fit_moments(np.asarray(train))
    return splits.Split(
        *(
            splits.Partition(np.asarray(x), np.arange(len(x)), np.zeros(len(x), np.int32), moments)
            for x in (train, test, test)
        )
    )


def raw(dataset, part):
    """The features of a part as they are in the dataset."""
    return dataset.features[part.rows]


def plain_standardise(x, train):
    mean, scale = train.mean(axis=0), train.std(axis=0)
    return (x - mean) / np.where(np.ptp(train, axis=0) == 0, 1.0, scale)


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("seed", [0, 9])
def test_sizes_are_60_20_20_for_every_seed(loaded, name, seed):
    found = splits.split(loaded[name], seed)
    assert tuple(len(part.labels) for part in found) == SIZES[name]
    assert tuple(len(part.features) for part in found) == SIZES[name]


@pytest.mark.parametrize("seed", range(3))
def test_parts_are_disjoint_complete_and_keep_their_labels(seed):
    dataset = numbered([40, 25, 9])
    found = splits.split(dataset, seed)
    rows = np.concatenate([raw(dataset, part)[:, 0] for part in found]).astype(int)
    assert np.array_equal(np.sort(rows), np.arange(74))
    np.testing.assert_array_equal(np.concatenate([p.labels for p in found]), dataset.labels[rows])


def test_the_split_is_scikit_learns_two_stage_one(loaded):
    dataset = loaded["digits"]
    x_train, x_rest, y_train, y_rest = train_test_split(
        dataset.features, dataset.labels, test_size=0.4, random_state=3, stratify=dataset.labels
    )
    x_validation, x_test, y_validation, y_test = train_test_split(
        x_rest, y_rest, test_size=0.5, random_state=3, stratify=y_rest
    )
    expected = [(x_train, y_train), (x_validation, y_validation), (x_test, y_test)]
    got = [(raw(dataset, part), part.labels) for part in splits.split(dataset, 3)]
    chex.assert_trees_all_equal(got, expected)


@pytest.mark.parametrize("rest", range(5, 40, 5))
def test_five_of_a_class_reach_every_part(rest):
    found = splits.split(numbered([5, rest, 5]), seed=rest)
    assert all(set(part.labels) == {0, 1, 2} for part in found)


def test_a_class_too_small_for_three_parts_is_refused():
    with pytest.raises(ValueError, match=r"of 'numbered' must have at least 5 .* got 4 of '1'"):
        splits.split(numbered([30, 4]), 0)


@pytest.mark.parametrize("name", SIZES)
def test_standardisation_is_that_of_the_training_moments(loaded, name):
    dataset = loaded[name]
    done = splits.split(dataset, seed=0)
    for got in done:
        expected = plain_standardise(raw(dataset, got), raw(dataset, done.train))
        np.testing.assert_allclose(got.features, expected, rtol=1e-5, atol=1e-6)
        chex.assert_type([got.features, got.labels], [np.float32, np.int32])
    chex.assert_type([*done.moments], np.float64)


def test_nothing_leaks_from_validation_and_test(loaded):
    cancer = loaded["breast-cancer"]
    done = splits.split(cancer, seed=0)
    features = cancer.features.copy()
    features[done.test.rows] *= 1e3
    shifted = splits.split(sources.from_arrays("shifted", features, cancer.labels), seed=0)
    chex.assert_trees_all_equal(done.train.moments, shifted.train.moments)
    np.testing.assert_array_equal(done.train.features, shifted.train.features)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_what_members_share_is_standardised_anew_without_loss(offset):
    rng = np.random.default_rng(0)
    features = offset + rng.normal(size=(50, 3)) * [1e-3, 1.0, 1e3]
    features[rng.uniform(size=(50, 3)) < 0.1] = np.nan
    dataset = sources.from_arrays("offset", features, np.arange(50) % 2, impute=True)
    done = splits.split(dataset, seed=0)
    mean, scale = done.moments.relative_to(dataset.moments)
    shared = dataset.standardised[done.test.rows]
    assert shared.dtype == np.float32
    again = np.nan_to_num((shared - mean.astype(np.float32)) / scale.astype(np.float32))
    np.testing.assert_allclose(again, done.test.features, rtol=1e-5, atol=1e-5)


def test_a_missing_value_becomes_the_mean_of_the_training_part():
    nan = np.nan
    train = np.array([[1.0, 5.0, nan], [3.0, nan, nan], [nan, 5.0, nan], [8.0, 5.0, nan]])
    done = parts(train, [[nan, nan, 2.0], [5.0, 7.0, nan]])
    np.testing.assert_allclose(done.moments.mean, [4.0, 5.0, 0.0], rtol=1e-6)
    np.testing.assert_allclose(done.moments.scale, [np.std([1, 3, 8]), 1.0, np.inf], rtol=1e-6)
    assert done.train.features[2, 0] == done.train.features[1, 1] == 0
    expected = [[0.0, 0.0, 0.0], [1 / np.std([1, 3, 8]), 2.0, 0.0]]
    np.testing.assert_allclose(done.test.features, expected, rtol=1e-6)


def test_what_float32_cannot_tell_from_a_constant_is_one():
    """As in a column of 1e-133 that is 1 in a test example: dividing by its scale overflows."""
    train = np.array([[4.8e-133, 1e-6], [0.0, 3e-6], [0.0, 2e-6]])
    done = parts(train, [[1.0, 1.0]])
    np.testing.assert_allclose(done.moments.scale, [1.0, np.std([1e-6, 2e-6, 3e-6])])
    np.testing.assert_allclose(done.test.features[0, 0], 1.0)
