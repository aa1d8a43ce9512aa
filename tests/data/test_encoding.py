"""Columns of any type become numbers: nothing is lost, and what was done is said."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

from pgeom.data.files import MAX_VALUES, encode_features, encode_labels

NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "classes", "numbers"),
    [
        (["b", "a", "c", "b"], ("a", "b", "c"), [1, 0, 2, 1]),
        ([True, False, True], ("False", "True"), [1, 0, 1]),
        ([10, 2, -1, 2], ("-1", "2", "10"), [2, 1, 0, 1]),
        ([3.0, 1.0, 20.0], ("1", "3", "20"), [1, 0, 2]),
        (pd.Categorical([30, 4, 4]), ("4", "30"), [1, 0, 0]),
        (pd.Categorical(["x", "w"], ["x", "w"]), ("w", "x"), [1, 0]),
        (pd.array([5, 3, 11], dtype="Int64"), ("3", "5", "11"), [1, 0, 2]),
        ([0.5, 1.0, 0.5], ("0.5", "1"), [0, 1, 0]),
        (np.array([1, "a", 1], object), ("1", "a"), [0, 1, 0]),
    ],
)
def test_classes_are_numbered_in_sorted_order(values, classes, numbers):
    labels, names = encode_labels(pd.Series(values))
    assert names == classes and labels.tolist() == numbers
    assert labels.dtype == np.int32


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.0, NAN, NAN], "2 missing labels of 3"),
        (["a", None], "1 missing label of 2"),
    ],
)
def test_missing_labels_are_refused(values, said):
    with pytest.raises(ValueError) as error:
        encode_labels(pd.Series(values))
    assert str(error.value) == said


def frame(**columns):
    return pd.DataFrame(columns)


def test_numbers_stay_and_everything_else_is_one_hot():
    features, notes = encode_features(
        frame(
            x=[1.5, -2.0, 0.25],
            n=np.array([3, 4, 5], np.uint8),
            city=["Rome", "Oslo", "Lima"],
            smoker=[True, False, False],
            size=pd.Categorical([2, 1, 2]),
        ),
    )
    expected = [  # Lima, Oslo, Rome; False, True; 1, 2
        [1.5, 3, 0, 0, 1, 0, 1, 0, 1],
        [-2.0, 4, 0, 1, 0, 1, 0, 1, 0],
        [0.25, 5, 1, 0, 0, 1, 0, 0, 1],
    ]
    np.testing.assert_array_equal(features, expected)
    said = "one-hot encoded city (3 values), smoker (2 values), size (2 values)"
    assert notes == ["standardised by the training part: x, n", said]
    assert features.dtype == np.float64


GAPS = frame(
    x=[1.0, NAN, 4.0],
    full=[1.0, 2.0, 3.0],
    n=pd.array([1, 2, None], dtype="Int64"),
    city=["Rome", None, "Oslo"],
    yes=pd.array([True, None, False], dtype="boolean"),
)


def test_missing_values_are_counted_and_their_columns_named():
    with pytest.raises(ValueError) as error:
        encode_features(GAPS)
    said = "4 missing values, in columns x, n, city, yes; impute=True fills them in"
    assert str(error.value) == said


def test_missing_numbers_stay_missing_and_missing_categories_are_one_more():
    features, notes = encode_features(GAPS, impute=True)
    expected = [  # missing, Oslo, Rome; missing, False, True
        [1, 1, 1, 0, 0, 1, 0, 0, 1],
        [NAN, 2, 2, 1, 0, 0, 1, 0, 0],
        [4, 3, NAN, 0, 1, 0, 0, 1, 0],
    ]
    np.testing.assert_array_equal(features, expected)
    assert notes == [
        "standardised by the training part: x, full, n",
        "one-hot encoded city (3 values), yes (3 values)",
        "2 missing numbers (x, n) replaced by the mean of the training part",
        "2 missing values (city, yes) made a category of their own",
    ]


@pytest.mark.parametrize(
    "column", [[7, 7, 7], [0.5, NAN, 0.5], [NAN, NAN, NAN], ["a", "a", "a"], [True, True, True]]
)
def test_a_constant_feature_is_refused_or_kept_and_said(column):
    table = frame(x=[1, 2, 3], c=column)
    with pytest.raises(ValueError) as error:
        encode_features(table, impute=True)
    assert str(error.value) == "1 constant feature, to be left out: c"
    pixels = frame(c=column, **{f"p{k}": [k, 1, 2] for k in range(63)})
    features, notes = encode_features(pixels, impute=True)
    assert features.shape == (3, 64)
    assert notes[-1] == "constant, and kept: c"


columns = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", None]), min_size=6, max_size=6)
    | st.lists(st.floats(-9, 9) | st.just(NAN), min_size=6, max_size=6),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ([1.0, np.inf, -np.inf], "the numbers in column c must be finite"),
        ([1.0, 1e200, NAN], "the numbers in column c must be finite, and within ±1e+150"),
    ],
)
def test_a_column_that_cannot_be_standardised_is_named(column, said):
    with pytest.raises(ValueError) as error:
        encode_features(frame(c=column), impute=True)
    assert str(error.value).startswith(said)


def test_a_column_of_names_is_not_encoded():
    names = [f"person {k}" for k in range(MAX_VALUES + 1)]
    with pytest.raises(ValueError, match="'who' is not numeric and has 1001 different values"):
        encode_features(frame(who=names))
    features, _ = encode_features(frame(who=names[1:]))
    assert features.shape == (MAX_VALUES, MAX_VALUES)
