"""The built-in datasets are what the protocol says, and bad arrays are refused in one line."""

import numpy as np
import pytest
from sklearn import datasets as reference

from pgeom.data import sources

SHAPES = {
    "breast-cancer": (569, 30, 2),
    "digits": (1797, 64, 10),
    "confusion": (2400, 18, 6),
    "long-tail": (6000, 30, 10),
}
REGIMES = {
    "breast-cancer": "clean symmetric-20 symmetric-40",
    "digits": "clean symmetric-20 symmetric-40 pair-flip-40",
    "confusion": "clean symmetric-20 pair-flip-40",
    "long-tail": "long-tail-30",
}


ELSEWHERE = ("mnist1d", "fashion-mnist")  # tests/data/test_images.py
SHIPPED = [name for name in sources.BUILT_IN if name not in ELSEWHERE]


@pytest.fixture(scope="module")
def loaded():
    return {name: sources.load(name) for name in SHIPPED}


def test_those_of_the_paper_are_the_four_of_the_protocol():
    assert set(sources.PAPER) == set(SHAPES) <= set(sources.BUILT_IN)


# of the dataset, as it was when the first records were written
DIGESTS = {"digits": "77ea33a91fc68a96", "breast-cancer": "aa549b97f589912c"}


@pytest.mark.parametrize("name", DIGESTS)
def test_what_was_recorded_stays_what_it_was(loaded, name):
    assert loaded[name].digest[:16] == DIGESTS[name]


@pytest.mark.parametrize("name", SHAPES)
def test_size_and_regimes_are_the_protocols(loaded, name):
    dataset, (n, d, num_classes) = loaded[name], SHAPES[name]
    assert dataset.features.shape == (n, d) and dataset.labels.shape == (n,)
    assert dataset.num_classes == num_classes
    assert " ".join(map(str, dataset.regimes)) == REGIMES[name]


def test_real_datasets_are_scikit_learns(loaded):
    digits, cancer = reference.load_digits(), reference.load_breast_cancer()
    np.testing.assert_array_equal(loaded["digits"].features * 16, digits.data)
    np.testing.assert_array_equal(loaded["digits"].labels, digits.target)
    np.testing.assert_array_equal(loaded["breast-cancer"].features, cancer.data)
    np.testing.assert_array_equal(loaded["breast-cancer"].labels, cancer.target)


# samples, features, informative, redundant, classes, clusters per class, class_sep, flip_y, seed
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
def test_synthetic_datasets_have_the_protocols_constants(loaded, name):
    constants = dict(zip(FIELDS, SYNTHETIC[name], strict=True))
    features, labels = reference.make_classification(**constants)
    np.testing.assert_array_equal(loaded[name].features, features)
    np.testing.assert_array_equal(loaded[name].labels, labels)


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [("digit", "digits"), ("Breast_Cancer", "breast-cancer"), ("longtail", "long-tail")],
)
def test_an_unknown_name_is_answered_with_the_nearest(wrong, nearest):
    with pytest.raises(ValueError, match=f"unknown dataset '{wrong}'") as caught:
        sources.load(wrong)
    message = str(caught.value)
    assert f"did you mean '{nearest}'? known: " in message and "\n" not in message
    assert all(name in message for name in sources.BUILT_IN)


def test_from_arrays_copies_and_converts():
    features, labels = np.array([[0, 1], [1, 0], [1, 1]], np.uint8), np.array([0, 2, 1])
    dataset = sources.from_arrays("mine", features, labels)
    assert dataset.features.dtype == np.float64 and dataset.labels.dtype == np.int32
    assert (dataset.name, dataset.num_classes, dataset.unit_range) == ("mine", 3, True)
    assert " ".join(map(str, dataset.regimes)) == "clean symmetric-20 symmetric-40"
    given = np.array([[0.0], [1.0]]), np.array([0, 1], np.int32)
    copied = sources.from_arrays("mine", *given)
    for ours, theirs in zip((copied.features, copied.labels), given, strict=True):
        assert not np.shares_memory(ours, theirs) and theirs.flags.writeable


GOOD = [[0.0], [1.0], [2.0]]


def test_the_digest_is_of_the_content_and_of_nothing_else():
    one = sources.from_arrays("mine", GOOD, [0, 1, 0])
    assert one.digest == sources.from_arrays("mine", GOOD, [0, 1, 0], "clean").digest
    others = [
        sources.from_arrays("other", GOOD, [0, 1, 0]),
        sources.from_arrays("mine", [[0.0], [1.0], [2.5]], [0, 1, 0]),
        sources.from_arrays("mine", GOOD, [0, 1, 1]),
        sources.from_arrays("mine", [*GOOD, [3.0]], [0, 1, 0, 0]),
    ]
    assert len({one.digest, *(other.digest for other in others)}) == 1 + len(others)
    wide = sources.from_arrays("mine", np.zeros((2, 6)), [0, 1])
    assert wide.digest != sources.from_arrays("mine", np.zeros((2, 3)), [0, 1]).digest


@pytest.mark.parametrize(
    ("features", "labels", "said"),
    [
        ([0.0, 1.0], [0, 1], r"features must be a non-empty \[n, d\] array, got shape \(2,\)"),
        (np.zeros((2, 0)), [0, 1], r"features must be a non-empty .* got shape \(2, 0\)"),
        ([["a"], ["b"]], [0, 1], "features must be real numbers, got dtype <U1"),
        ([[0.0], [np.nan]], [0, 1], r"features must be finite, got nan; impute=True fills"),
        ([[0.0], [-1e153]], [0, 1], r"within ±1e\+150 .* got -1e\+153"),
        (GOOD, [0, 1], r"labels must have shape \[3\] like features, got \(2,\)"),
        (GOOD, [0.0, 1.0, 0.0], "labels must be integers, got dtype float64"),
        (GOOD, [-1, 0, 1], "labels must be 0 … K−1 .* got 3 different ones in -1 … 1"),
        (GOOD, [0, 0, 0], "labels must have at least 2 classes, got only 0"),
        (GOOD, [0, 3, 1], "labels must be 0 … K−1 with all present, got 3 different ones in 0 … 3"),
    ],
)
def test_bad_arrays_are_refused_in_one_line(features, labels, said):
    with pytest.raises(ValueError, match=said) as caught:
        sources.from_arrays("mine", features, labels)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"classes": ("a",)}, r"classes must be 2 different names, got \['a'\]"),
        ({"classes": ("a", "a")}, r"classes must be 2 different names, got \['a', 'a'\]"),
        ({"image_shape": (2, 2)}, r"image_shape must have 1 entries, got \(2, 2\)"),
        ({"noise_map": (1,)}, r"noise_map must be 2 classes in 0 … 1, got \[1\]"),
        ({"noise_map": (1, 2)}, r"noise_map must be 2 classes in 0 … 1, got \[1, 2\]"),
    ],
)
def test_what_does_not_fit_the_arrays_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        sources.from_arrays("mine", GOOD, [0, 1, 0], **given)
