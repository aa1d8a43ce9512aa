"""Datasets from a user's files and folders.

Columns of any type as the numbers of a dataset, and a note on each thing that was done.

>>> import pandas as pd
>>> encode_labels(pd.Series(["b", "a", "b"]), "my.csv")
EncodedLabels(labels=array([1, 0, 1], dtype=int32), classes=('a', 'b'))
>>> made = encode_features(pd.DataFrame({"x": [1.5, 2.5], "city": ["Rome", "Oslo"]}), "my.csv")
>>> made.features.tolist()
[[1.5, 0.0, 1.0], [2.5, 1.0, 0.0]]
>>> made.notes[1]
'my.csv: one-hot encoded city (2 values)'

A table from a .csv file, whose columns may be separated by commas, semicolons or tabs.

A dataset from a file: `.npz` with arrays X and y, `.csv` or `.parquet` with a target column.

A dataset from a folder with four IDX files, as MNIST and its kin are distributed.
"""

import csv
import math
import re
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Int32
from pandas.api import types
from sklearn.preprocessing import OneHotEncoder

from pgeom.data import images
from pgeom.data.dataset import FORMS, SUFFIXES, Dataset, from_arrays
from pgeom.data.splits import SMALLEST_CLASS, largest_feature
from pgeom.messages import nearest


class DataError(ValueError):
    """A file that is no dataset; the message says why in one line."""


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
      DataError: if a label is missing, or a measurement.
    """
    gaps = int(labels.isna().sum())
    if gaps:
        raise DataError(f"{where}: {counted(gaps, 'missing label')} of {len(labels)}")
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
        raise DataError(f"{where}: labels must be classes, got the number {broken[0]}")
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
      DataError: if values are missing, infinite or too large, or a column is constant, or has a
        type or more values than can be encoded.
    """
    made = [_column(str(name), columns.iloc[:, k], where) for k, name in enumerate(columns)]
    _refuse_gaps(made, where, impute)
    _refuse_large(made, where, largest_feature(dtype))
    if not constant:
        _refuse_constant(made, where)
    size = len(columns) * sum(column.width for column in made) * np.dtype(dtype).itemsize / 2**30
    if size > MOST_GIB:
        raise DataError(f"{where}: encoded features would take {size:.0f} GiB, at most {MOST_GIB}")
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
            raise DataError(f"{where}: column {name!r} must have real numbers, got complex ones")
        return Column(name, values.to_numpy(np.float64, na_value=np.nan), 1, False)
    if types.is_datetime64_any_dtype(values) or types.is_timedelta64_dtype(values):
        raise DataError(f"{where}: column {name!r} has times; give numbers or categories instead")
    # a text for each: values of several types would have no order
    texts = values.astype(object).where(values.isna(), values.astype(str))
    codes, found = pd.factorize(texts, sort=True)
    if len(found) > MOST_VALUES:
        raise DataError(
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
        raise DataError(f"{where}: {count}, {in_columns(gaps)}; --impute fills them in")


def _refuse_large(columns: list[Column], where: str, most: float) -> None:
    for limit, kind, advice in (
        (np.finfo(np.float64).max, "infinite", ""),
        (most, "oversized", f"; at most {most:.0e} can be standardised, give larger units"),
    ):
        counts = {c.name: np.sum(abs(c.values) > limit) for c in columns if not c.is_category}
        bad = {name: count for name, count in counts.items() if count}
        if bad:
            count = counted(int(sum(bad.values())), f"{kind} value")
            raise DataError(f"{where}: {count}, {in_columns(bad)}{advice}")


def _refuse_constant(columns: list[Column], where: str) -> None:
    names = [column.name for column in columns if column.constant]
    if names:
        says, them = ("says", "it") if len(names) == 1 else ("say", "them")
        features = f"{counted(len(names), 'constant feature')} {says} nothing: {listed(names)}"
        raise DataError(f"{where}: {features}; leave {them} out")


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


SEPARATORS = (",", ";", "\t")


def read_csv(path: Path) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The table, and notes on how it was read.

    Raises:
      DataError: for a file that is empty, or has rows longer than its header.
    """
    headers = {separator: _read_header(path, separator) for separator in SEPARATORS}
    separator = max(SEPARATORS, key=lambda one: len(headers[one]))  # of equals the first
    frame, decimal = _parse(path, separator)
    frame.columns = pd.Index(headers[separator])
    notes = ()
    if separator != ",":
        commas = ", with decimal commas" if decimal == "," else ""
        notes = (f"{path.name}: columns separated by {separator!r}{commas}",)
    if frame.columns[0] == "" and frame.iloc[:, 0].equals(pd.Series(range(len(frame)))):
        note = f"{path.name}: left out the first column, which has no name and counts the rows"
        return frame.iloc[:, 1:], (*notes, note)
    return frame, notes


def _read_header(path: Path, separator: str) -> list[str]:
    """The header by itself: pandas renames the second of two columns of one name."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        header = next((row for row in csv.reader(file, delimiter=separator) if row), None)
    if header is None:
        raise DataError(f"{path.name} is empty")
    return header


def _parse(path: Path, separator: str) -> tuple[pd.DataFrame, str]:
    """The rows, and the decimal point by which more columns are numbers."""
    points = (".",) if separator == "," else (".", ",")
    frames = {point: _parse_with(path, separator, point) for point in points}
    decimal = max(points, key=lambda point: sum(map(types.is_numeric_dtype, frames[point].dtypes)))
    return frames[decimal], decimal


def _parse_with(path: Path, separator: str, decimal: str) -> pd.DataFrame:
    look = {"sep": separator, "decimal": decimal, "encoding": "utf-8-sig"}
    with warnings.catch_warnings():
        # a row longer than the header
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(path, index_col=False, low_memory=False, **look)
        except pd.errors.ParserWarning:
            raise DataError(f"{path.name} has rows longer than its header") from None


LONGEST_NAME = 100  # of a dataset: it is part of the names of files
SMALLEST_SQUARE = 8  # pixels a side, below which a square number of features is no image
UNREADABLE = (OSError, ValueError, EOFError, csv.Error, zipfile.BadZipFile, zlib.error)


class Table(NamedTuple):
    """What a file holds.

    Attributes:
      columns: the features, in columns of any type.
      labels: of any type.
      dtype: that keeps the features as they are.
      image_shape: that of an example, if the examples are images.
      notes: on how it was read.
    """

    columns: pd.DataFrame
    labels: pd.Series
    dtype: type[np.floating] = np.float64
    image_shape: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def may_be_constant(self) -> bool:
        """Whether features are pixels, or may be: at the border of images many never change."""
        side = math.isqrt(self.columns.shape[1])
        square = side >= SMALLEST_SQUARE and side**2 == self.columns.shape[1]
        return square or self.image_shape is not None


def read_dataset(path: Path, *, target: str | None = None, impute: bool = False) -> Dataset:
    """The dataset in a file, named like it.

    Args:
      path: of a `.npz`, `.csv` or `.parquet` file.
      target: the column of the labels, of the latter two.
      impute: whether values may be missing.

    Raises:
      DataError: in one line, for a file that is no dataset.
    """
    table = _read(path, target)
    where = path.name
    if not len(table.columns):
        raise DataError(f"{where} has no rows")
    if not table.columns.shape[1]:
        raise DataError(f"{where} has no features")
    encoded = encode_labels(table.labels, where)
    require_enough(encoded, where)
    made = encode_features(
        table.columns, where, impute=impute, constant=table.may_be_constant, dtype=table.dtype
    )
    return from_arrays(
        safe_name(path.stem),
        made.features,
        encoded.labels,
        classes=encoded.classes,
        image_shape=table.image_shape,
        notes=(*table.notes, *made.notes, *_class_note(encoded, where)),
        missing=impute,
        dtype=table.dtype,
    )


def _read(path: Path, target: str | None) -> Table:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"a dataset must be the path of a {FORMS}, got {str(path)!r}")
    if not path.exists():
        there = [file.name for file in path.parent.glob("*") if file.suffix.lower() in SUFFIXES]
        near = nearest(path.name, there)
        hint = f"; did you mean {str(path.with_name(near))!r}?" if near is not None else ""
        raise DataError(f"there is no file {str(path)!r}{hint}")
    if suffix == ".npz" and target is not None:
        raise DataError(f"--target is for tables; the labels of {path.name} are its array y")
    try:
        if suffix == ".npz":
            return _read_npz(path)
        frame, notes = read_csv(path) if suffix == ".csv" else (_read_parquet(path), ())
    except DataError:
        raise
    except UNREADABLE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"cannot read {str(path)!r}: {reason}") from error
    return _separate(frame, target, path.name, notes)


def _read_npz(path: Path) -> Table:
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path.name} is no .npz file: write one by numpy.savez(path, X=X, y=y)")
    with np.load(path, allow_pickle=False) as arrays:
        lacking = {"X", "y"} - set(arrays.files)
        if lacking:
            has = listed(arrays.files) or "nothing"
            raise DataError(f"{path.name} must have arrays X and y, got {has}")
        try:
            X, y = arrays["X"], arrays["y"]
        except ValueError as error:
            if "pickle" in str(error):
                must = "which could run code; save numbers and strings"
                raise DataError(f"{path.name} has pickled objects, {must}") from None
            raise
    if not 2 <= X.ndim <= 4 or X.dtype.kind not in "fiu":
        must = "a [n, d] array of real numbers, or images [n, height, width]"
        raise DataError(f"{path.name}: X must be {must}, got {X.dtype} of shape {X.shape}")
    if y.shape != X.shape[:1]:
        raise DataError(f"{path.name}: y must have shape [{len(X)}] like X, got {y.shape}")
    labels = np.char.decode(y, "utf-8", "replace") if y.dtype.kind == "S" else y
    dtype = np.float32 if np.can_cast(X.dtype, np.float32) else np.float64
    names = [f"X[:, {str(place)[1:-1].rstrip(',')}]" for place in np.ndindex(X.shape[1:])]
    columns = pd.DataFrame(X.reshape(len(X), len(names)), columns=names)
    return Table(columns, pd.Series(labels), dtype, X.shape[1:] if X.ndim > 2 else None)


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise DataError(f"reading {path.name} needs a package: pip install pyarrow") from None
    frame.columns = frame.columns.map(str)
    return frame


def _separate(frame: pd.DataFrame, target: str | None, where: str, notes: tuple[str, ...]) -> Table:
    """The features and the labels of a table."""
    names = list(frame.columns)
    twice = frame.columns[frame.columns.duplicated()]
    if "" in names:
        raise DataError(f"{where}: column {names.index('') + 1} has no name")
    if len(twice):
        raise DataError(f"{where} has two columns called {twice[0]!r}")
    if target is None:
        raise DataError(f"{where} needs --target, the column of the labels: {listed(names)}")
    if target not in names:
        near = nearest(target, names)
        hint = f"did you mean {near!r}?" if near is not None else f"it has {listed(names)}"
        raise DataError(f"{where} has no column {target!r}; {hint}")
    return Table(frame.drop(columns=target), frame[target], notes=notes)


def require_enough(encoded: EncodedLabels, where: str) -> None:
    """Refuse labels that cannot be split: of one class, or with too few of another."""
    if len(encoded.classes) < 2:
        (only,) = encoded.classes
        raise DataError(f"{where}: labels must have at least 2 classes, got only {only!r}")
    counts = np.bincount(encoded.labels)
    rarest = counts.argmin()
    if counts[rarest] < SMALLEST_CLASS:
        raise DataError(
            f"{where}: each class must have at least {SMALLEST_CLASS} examples, "
            f"got {counts[rarest]} of {encoded.classes[rarest]!r}"
        )


def _class_note(encoded: EncodedLabels, where: str) -> tuple[str, ...]:
    numbers = tuple(map(str, range(len(encoded.classes))))
    if encoded.classes == numbers:
        return ()
    pairs = (f"{k} = {name}" for k, name in zip(numbers, encoded.classes, strict=True))
    return (f"{where}: the classes are {listed(pairs)}",)


def safe_name(stem: str) -> str:
    """A stem without what could not be, or could lead elsewhere, in the name of a file."""
    return re.sub(r"[^\w.-]+", "-", stem).strip("-.")[:LONGEST_NAME] or "dataset"


def read_folder(folder: Path) -> Dataset:
    """The images of a folder, named like it; Fashion-MNIST is known by its labels.

    Raises:
      DataError: in one line, for a folder that has not got the files.
    """
    parts = images.read_parts(folder)
    if zlib.crc32(parts.labels.tobytes()) == images.FASHION_LABELS:
        return images.make_fashion(parts)
    classes, labels = np.unique(parts.labels, return_inverse=True)
    names = tuple(map(str, classes))
    require_enough(EncodedLabels(labels.astype(np.int32), names), folder.name)
    name = safe_name(folder.absolute().name)
    shape = {"image_shape": parts.pixels.shape[1:], "dtype": np.float32}
    return from_arrays(name, parts.intensities, labels, classes=names, **shape)
