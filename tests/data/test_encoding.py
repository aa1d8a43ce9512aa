"""Columns of any type become numbers: nothing is lost, and what was done is said."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from pgeom.data.files import MOST_VALUES, counted, encode_features, encode_labels, listed

NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "classes", "numbers"),
    [
        (["b", "a", "c", "b"], ("a", "b", "c"), [1, 0, 2, 1]),
        ([True, False, True], ("False", "True"), [1, 0, 1]),
        ([10, 2, -1, 2], ("-1", "2", "10"), [2, 1, 0, 1]),
        ([3.0, 1.0, 20.0], ("1", "3", "20"), [1, 0, 2]),
        ([1e300, 0.0], ("0", str(int(1e300))), [1, 0]),
        (pd.Categorical([30, 4, 4]), ("4", "30"), [1, 0, 0]),
        (pd.Categorical(["x", "w"], ["x", "w"]), ("w", "x"), [1, 0]),
        (pd.array([5, 3, 11], dtype="Int64"), ("3", "5", "11"), [1, 0, 2]),
        (np.array([Decimal(11), Decimal(2)], object), ("2", "11"), [1, 0]),
        (np.array([1, "a", 1], object), ("1", "a"), [0, 1, 0]),
    ],
)
def test_classes_are_numbered_in_sorted_order(values, classes, numbers):
    encoded = encode_labels(pd.Series(values), "my.csv")
    assert encoded.classes == classes and encoded.labels.tolist() == numbers
    assert encoded.labels.dtype == np.int32


@given(st.lists(st.integers(-(10**6), 10**6) | st.integers(0, 3), min_size=1, max_size=40))
def test_numbering_can_be_undone_and_keeps_the_order(values):
    encoded = encode_labels(pd.Series(values), "my.csv")
    assert [int(encoded.classes[label]) for label in encoded.labels] == values
    assert [int(name) for name in encoded.classes] == sorted(set(values))
    as_floats = encode_labels(pd.Series(values, dtype=float), "my.csv")
    assert as_floats.classes == encoded.classes


@given(st.lists(st.text(max_size=3), min_size=1, max_size=30))
def test_any_texts_are_classes(values):
    encoded = encode_labels(pd.Series(values, dtype=object), "my.csv")
    assert [encoded.classes[label] for label in encoded.labels] == values


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.0, 0.5], "my.csv: labels must be classes, got the number 0.5"),
        ([0.0, np.inf], "my.csv: labels must be classes, got the number inf"),
        ([0.0, NAN, NAN], "my.csv: 2 missing labels of 3"),
        (["a", None], "my.csv: 1 missing label of 2"),
    ],
)
def test_labels_that_are_no_classes_are_refused(values, said):
    with pytest.raises(ValueError) as error:
        encode_labels(pd.Series(values), "my.csv")
    assert str(error.value) == said


def frame(**columns):
    return pd.DataFrame(columns)


def test_numbers_stay_and_everything_else_is_one_hot():
    made = encode_features(
        frame(
            x=[1.5, -2.0, 0.25],
            n=np.array([3, 4, 5], np.uint8),
            city=["Rome", "Oslo", "Lima"],
            smoker=[True, False, False],
            size=pd.Categorical([2, 1, 2]),
            price=np.array([Decimal("1.5"), Decimal(2), Decimal(3)], object),
        ),
        "my.csv",
    )
    expected = [  # Lima, Oslo, Rome; False, True; 1, 2
        [1.5, 3, 0, 0, 1, 0, 1, 0, 1, 1.5],
        [-2.0, 4, 0, 1, 0, 1, 0, 1, 0, 2],
        [0.25, 5, 1, 0, 0, 1, 0, 0, 1, 3],
    ]
    np.testing.assert_array_equal(made.features, expected)
    said = "my.csv: one-hot encoded city (3 values), smoker (2 values), size (2 values)"
    assert made.notes == ("my.csv: standardised by the training part: x, n, price", said)
    assert made.features.dtype == np.float64


def test_a_text_that_differs_from_example_to_example_is_named():
    names = [f"u{k}" for k in range(12)]
    made = encode_features(frame(id=names, town=["a", "b", "c"] * 4, x=range(12)), "my.csv")
    assert made.features.shape == (12, 16)
    said = "one feature for almost every example: id; leave out what only identifies examples"
    assert made.notes[-1] == f"my.csv: {said}"


GAPS = frame(
    x=[1.0, NAN, NAN],
    full=[1.0, 2.0, 3.0],
    n=pd.array([1, 2, None], dtype="Int64"),
    city=["Rome", None, "Oslo"],
    yes=pd.array([True, None, False], dtype="boolean"),
)


def test_missing_values_are_counted_and_their_columns_named():
    with pytest.raises(ValueError) as error:
        encode_features(GAPS, "my.csv")
    said = "my.csv: 5 missing values, in columns x, n, city, yes; --impute fills them in"
    assert str(error.value) == said


def test_missing_numbers_stay_missing_and_missing_categories_are_one_more():
    made = encode_features(GAPS, "my.csv", impute=True, constant=True)
    expected = [  # missing, Oslo, Rome; missing, False, True
        [1, 1, 1, 0, 0, 1, 0, 0, 1],
        [NAN, 2, 2, 1, 0, 0, 1, 0, 0],
        [NAN, 3, NAN, 0, 1, 0, 0, 1, 0],
    ]
    np.testing.assert_array_equal(made.features, expected)
    assert made.notes == (
        "my.csv: standardised by the training part: x, full, n",
        "my.csv: one-hot encoded city (3 values), yes (3 values)",
        "my.csv: 3 missing numbers (x, n) replaced by the mean of the training part",
        "my.csv: 2 missing values (city, yes) made a category of their own",
        "my.csv: constant, and kept: x",
    )


def test_imputing_what_is_complete_changes_nothing():
    whole = frame(x=[1.0, 2.0], city=["Rome", "Oslo"])
    with_it, without = (encode_features(whole, "my.csv", impute=i) for i in (True, False))
    np.testing.assert_array_equal(with_it.features, without.features)
    assert with_it.notes == without.notes


@pytest.mark.parametrize(
    "column", [[7, 7, 7], [0.5, NAN, 0.5], [NAN, NAN, NAN], ["a", "a", "a"], [True, True, True]]
)
def test_a_constant_feature_is_refused_or_kept_and_said(column):
    table = frame(x=[1, 2, 3], c=column)
    with pytest.raises(ValueError) as error:
        encode_features(table, "my.csv", impute=True)
    assert str(error.value) == "my.csv: 1 constant feature says nothing: c; leave it out"
    made = encode_features(table, "my.csv", impute=True, constant=True)
    assert made.features.shape == (3, 2)
    assert made.notes[-1] == "my.csv: constant, and kept: c"


def test_a_category_beside_a_missing_one_is_not_constant():
    made = encode_features(frame(c=["a", None, "a"]), "my.csv", impute=True)
    assert not any("constant" in note for note in made.notes)


columns = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", None]), min_size=6, max_size=6)
    | st.lists(st.floats(-9, 9) | st.just(NAN), min_size=6, max_size=6),
    min_size=1,
    max_size=4,
)


@given(columns=columns, order=st.permutations(range(6)))
@settings(max_examples=60)
def test_the_order_of_the_rows_does_not_matter(columns, order):
    table = pd.DataFrame({f"c{k}": column for k, column in enumerate(columns)})
    made = encode_features(table, "t", impute=True, constant=True)
    shuffled = table.iloc[list(order)].reset_index(drop=True)
    moved = encode_features(shuffled, "t", impute=True, constant=True)
    np.testing.assert_array_equal(moved.features, made.features[list(order)])
    assert moved.notes == made.notes


@given(st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=1, max_size=20))
def test_exactly_one_feature_of_a_category_is_hot(values):
    made = encode_features(pd.DataFrame({"c": values}), "t", impute=True, constant=True)
    np.testing.assert_array_equal(made.features.sum(axis=1), 1)
    assert set(np.unique(made.features)) <= {0.0, 1.0}
    assert made.features.shape[1] == len(set(values))
    for one, row in zip(values, made.features, strict=True):
        same = [other == one for other in values]
        np.testing.assert_array_equal((made.features == row).all(axis=1), same)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ([1.0, np.inf, -np.inf], "t: 2 infinite values, in column c"),
        ([1j, 2j, 3j], "t: column 'c' must have real numbers, got complex ones"),
        (pd.date_range("2020", periods=3), "t: column 'c' has times; give numbers or"),
    ],
)
def test_a_column_that_cannot_be_encoded_is_named(column, said):
    with pytest.raises(ValueError) as error:
        encode_features(frame(c=column), "t")
    assert str(error.value).startswith(said)


def test_a_column_of_names_is_not_encoded():
    names = [f"person {k}" for k in range(MOST_VALUES + 1)]
    with pytest.raises(ValueError, match="'who' is not numeric and has 1001 different values"):
        encode_features(frame(who=names), "t")
    assert encode_features(frame(who=names[1:]), "t").features.shape == (MOST_VALUES, MOST_VALUES)


def test_what_would_not_fit_into_memory_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr("pgeom.data.files.MOST_GIB", 1e-7)
    with pytest.raises(ValueError, match="encoded features would take"):
        encode_features(frame(x=np.arange(100.0)), "t")


def test_long_lists_are_cut():
    assert listed("abcdefghi") == "a, b, c, d, e, f, g, h, i"
    assert listed("abcdefghij") == "a, b, c, d, e, f, g, h and 2 more"
    assert counted(1, "row") == "1 row" and counted(0, "row") == "0 rows"
