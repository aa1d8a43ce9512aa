"""A dataset from a user's file or folder: a table with a target column, arrays X and y, or images.

>>> encode_labels(pd.Series(["b", "a", "b"]))
(array([1, 0, 1], dtype=int32), ('a', 'b'))
>>> features, notes = encode_features(pd.DataFrame({"x": [1.5, 2.5], "city": ["Rome", "Oslo"]}))
>>> features.tolist(), notes[1]
([[1.5, 0.0, 1.0], [2.5, 1.0, 0.0]], 'one-hot encoded city (2 values)')
"""

import os
import warnings
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64, Int32
from pandas.api import types

from pgeom.data.dataset import LARGEST_FEATURE, Dataset, from_arrays, safe_name
from pgeom.data.images import read_images
from pgeom.messages import count, nearest

SEPARATORS = (",", ";", "\t")
UNREADABLE = (
    *(OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error),
    pd.errors.ParserWarning,  # of rows longer than the header
)
FEW_VALUES = 10  # of a categorical column that cannot be mistaken for names of the examples
MAX_VALUES = 1000  # of a categorical column; more are names or numbers of the examples
SMALLEST_IMAGE = 64  # columns: of fewer none can be the pixels of images
LARGEST = LARGEST_FEATURE[np.float64]
SHOWN = 8  # names in a message, or one more


def read_dataset(path: Path, *, target: str | None = None, impute: bool = False) -> Dataset:
    """The dataset in a file or folder, named like it.

    Args:
      path: of an `.npz` or `.parquet` file, or of a folder of IDX files; any other file is read as
        a `.csv` file is.
      target: the column of the labels, of a table.
      impute: whether values may be missing.

    Raises:
      ValueError: in one line, for a file that is no dataset.
    """
    if not os.path.exists(path):  # without an error for a name that is too long
        near = nearest(path.name, [file.name for file in path.parent.glob(f"*{path.suffix}")])
        hint = "" if near is None else f"; did you mean {str(path.with_name(near))!r}?"
        raise ValueError(f"there is no file {str(path)!r}{hint}")
    suffix = path.suffix.lower()
    is_folder = os.path.isdir(path) and suffix != ".parquet"  # a table may be in several files
    if target is not None and (is_folder or suffix == ".npz"):
        raise ValueError(f"target= is for tables, got {str(path)!r}")
    try:
        notes = []
        if is_folder:
            features, y = read_images(path)
        elif suffix == ".npz":
            features, y = _read_arrays(path)
        else:
            columns, y, notes = _read_table(path, target)
            features, done = encode_features(columns, impute=impute)
            notes = [*notes, *done]
        labels, classes = encode_labels(pd.Series(y))
        notes.append(f"the classes are, in this order, {listed(classes)}")
        return from_arrays(
            safe_name(path.absolute().stem),
            features.reshape(len(features), -1),
            labels,
            classes=classes,
            image_shape=features.shape[1:] if features.ndim > 2 else None,
            notes=[f"{path.name}: {note}" for note in notes],
            impute=impute,
            dtype=features.dtype.type,
        )
    except UNREADABLE as error:
        raise ValueError(f"{path.name}: {' '.join(str(error).split())}") from error


def _read_arrays(path):
    """X, in the precision that holds it, and y of an .npz file."""
    if not zipfile.is_zipfile(path):
        raise ValueError("is no .npz file: write one by numpy.savez(path, X=X, y=y)")
    with np.load(path, allow_pickle=False) as arrays:
        if not {"X", "y"} <= set(arrays):
            raise ValueError(f"must have arrays X and y, got {listed(arrays) or 'nothing'}")
        X, y = arrays["X"], arrays["y"]
    if X.size == 0 or not 2 <= X.ndim <= 4:
        must = f"a non-empty [n, d] array, or images [n, height, width], got shape {X.shape}"
        raise ValueError(f"X must be {must}")
    X = X.astype(np.float32 if np.can_cast(X.dtype, np.float32) else np.float64)
    return X, y.astype(str) if y.dtype.kind == "S" else y


def _read_table(path, target):
    """The columns of the features, that of the labels, and notes on how they were read."""
    parquet = path.suffix.lower() == ".parquet"
    frame, notes = (_read_parquet(path), []) if parquet else read_csv(path)
    names = list(frame.columns)
    if target is None:
        raise ValueError(f"needs target=, the column of the labels: {listed(names)}")
    if target not in names:
        near = nearest(target, names)
        hint = f"it has {listed(names)}" if near is None else f"did you mean {near!r}?"
        raise ValueError(f"no column {target!r}; {hint}")
    return frame.drop(columns=target), frame[target], notes


def read_csv(path: Path) -> tuple[pd.DataFrame, list[str]]:
    """The table, whose columns may be separated by commas, semicolons or tabs, and notes on it."""
    options = {"encoding": "utf-8-sig", "index_col": False, "low_memory": False}
    as_written = {"header": None, "nrows": 1, "dtype": str, "keep_default_na": False}
    headers = {one: pd.read_csv(path, sep=one, **as_written, **options) for one in SEPARATORS}
    separator = max(SEPARATORS, key=lambda one: headers[one].shape[1])  # of equals the first
    names = headers[separator].iloc[0].tolist()  # pandas would rename the second of two equal ones
    points = (".",) if separator == "," else (".", ",")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        frames = [pd.read_csv(path, sep=separator, decimal=point, **options) for point in points]
    frame = max(frames, key=lambda one: one.select_dtypes("number").shape[1])
    notes = []
    if separator != ",":
        commas = "" if frame is frames[0] else ", with decimal commas"
        notes.append(f"columns separated by {separator!r}{commas}")
    # the numbers of rows that pandas and R write
    counts = [pd.Series(range(first, first + len(frame))) for first in (0, 1)]
    if not names[0] and any(map(frame.iloc[:, 0].equals, counts)):
        notes.append("left out the first column, which has no name and counts the rows")
        frame, names = frame.iloc[:, 1:], names[1:]
    bad = [k for k, name in enumerate(names) if not name or name in names[:k]]
    if bad:
        must = f"a name of its own, got {names[bad[0]]!r}"
        raise ValueError(f"column {bad[0] + 1} must have {must}")
    return frame.set_axis(names, axis=1), notes


def _read_parquet(path):
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise ValueError("reading it needs a package: pip install pyarrow") from None
    frame.columns = frame.columns.map(str)
    decimals = [name for name in frame if types.infer_dtype(frame[name]) == "decimal"]
    return frame.astype(dict.fromkeys(decimals, float))


def encode_labels(labels: pd.Series) -> tuple[Int32[np.ndarray, " n"], tuple[str, ...]]:
    """Classes of any type as 0 … K−1, in sorted order, and their names.

    Raises:
      ValueError: if a label is missing.
    """
    if gaps := int(labels.isna().sum()):
        raise ValueError(f"{count(gaps, 'missing label')} of {len(labels)}")
    values = pd.Series(labels.to_numpy())  # of categories, which have an order of their own, too
    if not _is_number(values):
        values = values.astype(str)
    numbers, categories = pd.factorize(values, sort=True)
    names = map(str, categories)
    if categories.dtype.kind == "f":
        names = (name.removesuffix(".0") for name in names)
    return numbers.astype(np.int32), tuple(names)


def encode_features(
    columns: pd.DataFrame, *, impute: bool = False
) -> tuple[Float64[np.ndarray, "n d"], list[str]]:
    """Numbers as they are, everything else one-hot encoded, and a note on each thing done.

    Args:
      columns: of numbers, booleans, strings or categories.
      impute: whether values may be missing: a number stays NaN, and a category becomes one more.

    Raises:
      ValueError: if there are no columns or rows, values are missing, infinite or too large, or a
        column has more values than can be encoded, or but one, where none can be a pixel.
    """
    if columns.empty:
        raise ValueError("has no rows, or no features")
    gaps = columns.isna().sum()
    gaps = gaps[gaps > 0]
    if len(gaps) and not impute:
        missing = count(int(gaps.sum()), "missing value")
        where = f"in column{'s' * (len(gaps) > 1)} {listed(gaps.index)}"
        raise ValueError(f"{missing}, {where}; impute=True fills them in")
    blocks = {name: _encode(name, columns[name]) for name in columns}
    widths = {name: block.shape[1] for name, block in blocks.items()}
    same = [name for name in columns if widths[name] == 1 and columns[name].nunique() < 2]
    if same and len(blocks) < SMALLEST_IMAGE:  # at the border of one many pixels never change
        raise ValueError(f"{count(len(same), 'constant feature')}, to be left out: {listed(same)}")
    texts = [name for name in columns if blocks[name].dtype == bool]
    numbers, others = gaps.index.difference(texts, sort=False), gaps.index.intersection(texts)
    replaced = count(int(gaps[numbers].sum()), "missing number")
    added = count(int(gaps[others].sum()), "missing value")
    notes = {
        "standardised by the training part: {}": [name for name in columns if name not in texts],
        "one-hot encoded {}": [f"{name} ({count(widths[name], 'value')})" for name in texts],
        "one feature for almost every example: {}; leave out what only identifies examples": [
            name for name in texts if widths[name] > max(len(columns) / 2, FEW_VALUES)
        ],
        f"{replaced} ({{}}) replaced by the mean of the training part": numbers,
        f"{added} ({{}}) made a category of their own": others,
        "constant, and kept: {}": same,
    }
    said = [note.format(listed(names)) for note, names in notes.items() if len(names)]
    return np.hstack([*blocks.values()], dtype=np.float64), said


def _encode(name, values):
    """A column of numbers `[n, 1]`, or a truth value for each category `[n, w]`."""
    if _is_number(values):
        numbers = values.to_numpy(np.float64, na_value=np.nan)
        if (np.abs(numbers) > LARGEST).any():
            must = f"finite, and within ±{LARGEST:.0e} to be standardised"
            raise ValueError(f"the numbers in column {name} must be {must}")
        return numbers[:, None]
    # a text for each: values of several types would have no order
    codes, categories = pd.factorize(values.astype(str).where(values.notna()), sort=True)
    if len(categories) > MAX_VALUES:
        raise ValueError(
            f"column {name!r} is not numeric and has {len(categories)} different values, at most "
            f"{MAX_VALUES} can be encoded; leave it out or give numbers"
        )
    return codes[:, None] == np.unique(codes)  # a missing value is −1


def _is_number(values):
    return types.is_numeric_dtype(values) and not types.is_bool_dtype(values)


def listed(names: Iterable[Any]) -> str:
    """Some of the names, and how many more there are, where more than one is left."""
    names = [*map(str, names)]
    if len(names) <= SHOWN + 1:
        return ", ".join(names)
    return f"{', '.join(names[:SHOWN])} and {len(names) - SHOWN} more"
