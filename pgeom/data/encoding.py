"""Columns of any type as the numbers of a dataset, and a note on each thing that was done.

>>> import pandas as pd
>>> encode_labels(pd.Series(["b", "a", "b"]), "my.csv")
EncodedLabels(labels=array([1, 0, 1], dtype=int32), classes=('a', 'b'))
>>> made = encode_features(pd.DataFrame({"x": [1.5, 2.5], "city": ["Rome", "Oslo"]}), "my.csv")
>>> made.features.tolist()
[[1.5, 0.0, 1.0], [2.5, 1.0, 0.0]]
>>> made.notes[1]
'my.csv: one-hot encoded city (2 values)'
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Int32
from pandas.api import types
from sklearn.preprocessing import OneHotEncoder

from pgeom.data.splits import SMALLEST_CLASS, largest_feature
from pgeom.frontend.errors import UsageError

FEW_VALUES = 10  # of a categorical column that cannot be mistaken for names of the examples
MOST_VALUES = 1000  # of a categorical column; more are names or numbers of the examples
MOST_GIB = 8  # of encoded features
NUMBERS = ("decimal", "integer", "floating", "mixed-integer-float")  # of Python, to pandas
SHOWN = 8  # names in a message, or one more


class EncodedLabels(NamedTuple):
    """Labels `[n]` in 0 … K−1, and the names of the classes in that order."""

    labels: Int32[np.ndarray, " n"]
    classes: tuple[str, ...]


class EncodedFeatures(NamedTuple):
    """Features `[n, d]`, NaN where a number is missing, and what was done to the columns."""

    features: Float[np.ndarray, "n d"]
    notes: tuple[str, ...]


class Column(NamedTuple):
    """A column of the input: its numbers, or the numbers of its categories.

    Attributes:
      name: in messages.
      values: `[n]`; a missing number is NaN, a missing category −1.
      width: how many features it becomes.
      is_category: whether it is one-hot encoded.
    """

    name: str
    values: Float[np.ndarray, " n"] | Int[np.ndarray, " n"]
    width: int
    is_category: bool

    @property
    def missing(self) -> int:
        """How many values are."""
        gaps = self.values < 0 if self.is_category else np.isnan(self.values)
        return int(gaps.sum())

    @property
    def constant(self) -> bool:
        """Whether no two values differ that are there."""
        there = self.values if self.is_category else self.values[~np.isnan(self.values)]
        return len(there) == 0 or bool((there == there[0]).all())


def encode_labels(labels: pd.Series, where: str) -> EncodedLabels:
    """Classes of any type, in sorted order.

    Numbers that are not whole are classes if each occurs often enough for a split.

    Args:
      labels: `[n]`.
      where: the file, to begin messages with.

    Raises:
      UsageError: if a label is missing, or a measurement.
    """
    gaps = int(labels.isna().sum())
    if gaps:
        raise UsageError(f"{where}: {counted(gaps, 'missing label')} of {len(labels)}")
    if isinstance(labels.dtype, pd.CategoricalDtype):
        labels = labels.astype(labels.dtype.categories.dtype)
    labels = _recognised(labels)
    labels = _classes(labels, where) if _is_number(labels) else labels.astype(str)
    numbers, names = pd.factorize(labels, sort=True)
    return EncodedLabels(numbers.astype(np.int32), tuple(map(str, names)))


def _classes(labels: pd.Series, where: str) -> pd.Series:
    """Numbers as classes: whole ones, or those of which there are several each."""
    values = labels.to_numpy()
    if values.dtype.kind != "f":
        return labels
    broken = values[~np.isfinite(values) | (values != np.round(values))]
    if not len(broken):
        # as Python's, because those of NumPy have a largest one
        return pd.Series([int(value) for value in values], dtype=object)
    if not np.isfinite(broken).all() or np.unique_counts(values).counts.min() < SMALLEST_CLASS:
        raise UsageError(f"{where}: labels must be classes, got the number {broken[0]}")
    return labels


def encode_features(
    columns: pd.DataFrame,
    where: str,
    *,
    impute: bool = False,
    constant: bool = False,
    dtype: type[np.floating] = np.float64,
) -> EncodedFeatures:
    """Numbers as they are, everything else one-hot encoded.

    Args:
      columns: of numbers, booleans, strings or categories.
      where: the file, to begin messages with.
      impute: whether values may be missing: a number stays NaN, and a category becomes one more.
      constant: whether columns may be.
      dtype: of the features.

    Raises:
      UsageError: if values are missing, infinite or too large, or a column is constant, or has a
        type or more values than can be encoded.
    """
    made = [_column(str(name), columns.iloc[:, k], where) for k, name in enumerate(columns)]
    _refuse_gaps(made, where, impute)
    _refuse_large(made, where, largest_feature(dtype))
    if not constant:
        _refuse_constant(made, where)
    size = len(columns) * sum(column.width for column in made) * np.dtype(dtype).itemsize / 2**30
    if size > MOST_GIB:
        raise UsageError(f"{where}: encoded features would take {size:.0f} GiB, at most {MOST_GIB}")
    features = np.empty((len(columns), sum(column.width for column in made)), dtype)
    begin = 0
    for column in made:
        features[:, begin : begin + column.width] = _encoded(column, dtype)
        begin += column.width
    return EncodedFeatures(features, tuple(f"{where}: {note}" for note in _notes(made)))


def listed(names: Iterable[str]) -> str:
    """Some of the names, and how many more there are, where more than one is left."""
    names = list(names)
    if len(names) <= SHOWN + 1:
        return ", ".join(names)
    return f"{', '.join(names[:SHOWN])} and {len(names) - SHOWN} more"


def in_columns(names: Collection[str]) -> str:
    """As in "in column age", "in columns age, city"."""
    return f"in column{'s' * (len(names) != 1)} {listed(names)}"


def counted(count: int, noun: str) -> str:
    """As in "1 missing value", "2 missing values"."""
    return f"{count} {noun}{'s' * (count != 1)}"


def _column(name: str, values: pd.Series, where: str) -> Column:
    values = _recognised(values)
    if _is_number(values):
        if types.is_complex_dtype(values):
            raise UsageError(f"{where}: column {name!r} must have real numbers, got complex ones")
        return Column(name, values.to_numpy(np.float64, na_value=np.nan), 1, False)
    if types.is_datetime64_any_dtype(values) or types.is_timedelta64_dtype(values):
        raise UsageError(f"{where}: column {name!r} has times; give numbers or categories instead")
    # a text for each: values of several types would have no order
    texts = values.astype(object).where(values.isna(), values.astype(str))
    codes, found = pd.factorize(texts, sort=True)
    if len(found) > MOST_VALUES:
        raise UsageError(
            f"{where}: column {name!r} is not numeric and has {len(found)} different values, "
            f"at most {MOST_VALUES} can be encoded; leave it out or give numbers"
        )
    return Column(name, codes, len(found) + bool((codes < 0).any()), True)


def _is_number(values: pd.Series) -> bool:
    return types.is_numeric_dtype(values) and not types.is_bool_dtype(values)


def _recognised(values: pd.Series) -> pd.Series:
    """As numbers, if all are that happen to be Python's, such as the decimals of a database."""
    if values.dtype == object and types.infer_dtype(values, skipna=True) in NUMBERS:
        return values.astype(float)
    return values


def _encoded(column: Column, dtype: type[np.floating]) -> Float[np.ndarray, "n w"]:
    values = column.values[:, None]
    if not column.is_category:
        return values
    return np.asarray(OneHotEncoder(sparse_output=False, dtype=dtype).fit_transform(values))


def _refuse_gaps(columns: list[Column], where: str, impute: bool) -> None:
    gaps = {column.name: column.missing for column in columns if column.missing}
    if gaps and not impute:
        count = counted(sum(gaps.values()), "missing value")
        raise UsageError(f"{where}: {count}, {in_columns(gaps)}; --impute fills them in")


def _refuse_large(columns: list[Column], where: str, most: float) -> None:
    for limit, kind, advice in (
        (np.finfo(np.float64).max, "infinite", ""),
        (most, "oversized", f"; at most {most:.0e} can be standardised, give larger units"),
    ):
        counts = {c.name: np.sum(abs(c.values) > limit) for c in columns if not c.is_category}
        bad = {name: count for name, count in counts.items() if count}
        if bad:
            count = counted(int(sum(bad.values())), f"{kind} value")
            raise UsageError(f"{where}: {count}, {in_columns(bad)}{advice}")


def _refuse_constant(columns: list[Column], where: str) -> None:
    names = [column.name for column in columns if column.constant]
    if names:
        says, them = ("says", "it") if len(names) == 1 else ("say", "them")
        features = f"{counted(len(names), 'constant feature')} {says} nothing: {listed(names)}"
        raise UsageError(f"{where}: {features}; leave {them} out")


def _notes(columns: list[Column]) -> Iterable[str]:
    plain = [column.name for column in columns if not column.is_category]
    if plain:
        yield f"standardised by the training part: {listed(plain)}"
    categories = [column for column in columns if column.is_category]
    if categories:
        widths = (f"{column.name} ({counted(column.width, 'value')})" for column in categories)
        yield f"one-hot encoded {listed(widths)}"
    named = [c.name for c in categories if c.width > max(len(c.values) / 2, FEW_VALUES)]
    if named:
        each = "one feature for almost every example"
        yield f"{each}: {listed(named)}; leave out what only identifies examples"
    gaps = [column for column in columns if column.missing]
    numbers = {column.name: column.missing for column in gaps if not column.is_category}
    texts = {column.name: column.missing for column in gaps if column.is_category}
    if numbers:
        count = counted(sum(numbers.values()), "missing number")
        yield f"{count} ({listed(numbers)}) replaced by the mean of the training part"
    if texts:
        count = counted(sum(texts.values()), "missing value")
        yield f"{count} ({listed(texts)}) made a category of their own"
    constant = [column.name for column in columns if column.constant]
    if constant:
        yield f"constant, and kept: {listed(constant)}"
