"""The four sources are what the protocol says, and bad arrays are refused in one line."""

import numpy as np
import pytest
from sklearn import datasets

from pgeom.data import sources

SHAPES = {
    "breast-cancer": (569, 30, 2),
    "digits": (1797, 64, 10),
    "confusion": (2400, 18, 6),
    "long-tail": (6000, 30, 10),
}


@pytest.fixture(scope="module")
def loaded():
    return {name: sources.load(name) for name in sources.NAMES}


def test_names_are_the_four_of_the_protocol():
    assert set(sources.NAMES) == set(SHAPES)


@pytest.mark.parametrize("name", sources.NAMES)
def test_form_and_size(loaded, name):
    source, (n, d, num_classes) = loaded[name], SHAPES[name]
    assert source.name == name
    assert source.features.shape == (n, d) and source.features.dtype == np.float64
    assert source.labels.shape == (n,) and source.labels.dtype == np.int32
    assert source.num_classes == num_classes
    assert np.array_equal(np.unique(source.labels), np.arange(num_classes))
    assert np.isfinite(source.features).all()


@pytest.mark.parametrize("name", sources.NAMES)
def test_loading_twice_gives_equal_arrays_that_are_not_shared(loaded, name):
    again = sources.load(name)
    np.testing.assert_array_equal(again.features, loaded[name].features)
    np.testing.assert_array_equal(again.labels, loaded[name].labels)
    assert not np.shares_memory(again.features, loaded[name].features)


def test_real_sources_are_scikit_learns(loaded):
    digits, cancer = datasets.load_digits(), datasets.load_breast_cancer()
    np.testing.assert_array_equal(loaded["digits"].features * 16, digits.data)
    np.testing.assert_array_equal(loaded["digits"].labels, digits.target)
    np.testing.assert_array_equal(loaded["breast-cancer"].features, cancer.data)
    np.testing.assert_array_equal(loaded["breast-cancer"].labels, cancer.target)


# samples, features, informative, redundant, classes, clusters a class, class_sep, flip_y, seed
SYNTHETIC = {
    "confusion": (2400, 18, 10, 5, 6, 2, 0.85, 0.01, 2025),
    "long-tail": (6000, 30, 14, 8, 10, 1, 1.1, 0.0, 2023),
}
FIELDS = (
    "n_samples",
    "n_features",
    "n_informative",
    "n_redundant",
    "n_classes",
    "n_clusters_per_class",
    "class_sep",
    "flip_y",
    "random_state",
)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_synthetic_sources_have_the_protocols_constants(loaded, name):
    constants = dict(zip(FIELDS, SYNTHETIC[name], strict=True))
    features, labels = datasets.make_classification(**constants)
    np.testing.assert_array_equal(loaded[name].features, features)
    np.testing.assert_array_equal(loaded[name].labels, labels)


def test_only_digits_are_pixels(loaded):
    assert {name for name, source in loaded.items() if source.unit_range} == {"digits"}
    assert loaded["digits"].features.max() == 1.0


def test_the_long_tail_population_is_balanced_exactly(loaded):
    assert np.bincount(loaded["long-tail"].labels).tolist() == [600] * 10


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [("digit", "digits"), ("Breast_Cancer", "breast-cancer"), ("longtail", "long-tail"), (3, "")],
)
def test_an_unknown_name_is_answered_with_the_nearest(wrong, nearest):
    with pytest.raises(ValueError, match="unknown dataset") as caught:
        sources.load(wrong)
    message = str(caught.value)
    assert repr(wrong) in message and f"nearest is '{nearest}" in message
    assert all(name in message for name in sources.NAMES) and "\n" not in message


def test_from_arrays_copies_and_converts():
    features, labels = np.array([[0, 1], [1, 0], [1, 1]], np.uint8), np.array([0, 2, 1])
    source = sources.from_arrays(features, labels)
    assert source.features.dtype == np.float64 and source.labels.dtype == np.int32
    assert (source.name, source.num_classes, source.unit_range) == ("arrays", 3, True)
    given = np.array([[0.0], [1.0]])
    assert not np.shares_memory(sources.from_arrays(given, [0, 1]).features, given)


@pytest.mark.parametrize(("value", "unit"), [(0.0, True), (1.0, True), (-0.1, False), (1.1, False)])
def test_unit_range_is_seen_from_the_features(value, unit):
    assert sources.from_arrays([[0.5], [value]], [0, 1], name="mine").unit_range is unit


GOOD = [[0.0], [1.0], [2.0]]


@pytest.mark.parametrize(
    ("features", "labels", "said"),
    [
        ([0.0, 1.0], [0, 1], r"features must be a non-empty \[n, d\] array, but are \(2,\)"),
        (np.zeros((2, 0)), [0, 1], r"features must be a non-empty .* but are \(2, 0\)"),
        (np.zeros((0, 2)), [], r"features must be a non-empty .* but are \(0, 2\)"),
        ([["a"], ["b"]], [0, 1], "features must be real numbers, but their dtype is <U1"),
        ([[1j], [2j]], [0, 1], "features must be real numbers, but their dtype is complex128"),
        ([[0.0], [np.nan]], [0, 1], r"features must be finite, but features\[1, 0\] is nan"),
        ([[0.0], [-np.inf]], [0, 1], r"features must be finite, but features\[1, 0\] is -inf"),
        (GOOD, [0, 1], r"labels must be \[3\] like features, but are \(2,\)"),
        (GOOD, [[0], [1], [0]], r"labels must be \[3\] like features, but are \(3, 1\)"),
        (GOOD, [0.0, 1.0, 0.0], "labels must be integers, but their dtype is float64"),
        (GOOD, [False, True, False], "labels must be integers, but their dtype is bool"),
        (GOOD, [-1, 0, 1], "labels must be 0..K-1, but the smallest is -1"),
        (GOOD, [0, 0, 0], "labels must have at least 2 classes, but are all 0"),
        (GOOD, [0, 3, 1], "labels must be 0..K-1 with all present, but 2 is missing below 3"),
        (GOOD, [1, 2, 1], "labels must be 0..K-1 with all present, but 0 is missing below 2"),
    ],
)
def test_bad_arrays_are_refused_in_one_line(features, labels, said):
    with pytest.raises(ValueError, match=said) as caught:
        sources.from_arrays(features, labels)
    assert "\n" not in str(caught.value)
