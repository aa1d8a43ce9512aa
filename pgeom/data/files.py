"""A dataset from a file: `.npz` with arrays X and y, `.csv` or `.parquet` with a target column."""

import csv
import math
import re
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from pgeom.data.csv_table import read_csv
from pgeom.data.dataset import Dataset, from_arrays
from pgeom.data.encoding import EncodedLabels, encode_features, encode_labels, listed
from pgeom.data.paths import FORMS, SUFFIXES
from pgeom.data.splits import SMALLEST_CLASS
from pgeom.frontend.errors import UsageError
from pgeom.frontend.names import nearest

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
      UsageError: in one line, for a file that is no dataset.
    """
    table = _read(path, target)
    where = path.name
    if not len(table.columns):
        raise UsageError(f"{where} has no rows")
    if not table.columns.shape[1]:
        raise UsageError(f"{where} has no features")
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
        raise UsageError(f"a dataset must be the path of a {FORMS}, got {str(path)!r}")
    if not path.exists():
        there = [file.name for file in path.parent.glob("*") if file.suffix.lower() in SUFFIXES]
        near = nearest(path.name, there)
        hint = f"; did you mean {str(path.with_name(near))!r}?" if near is not None else ""
        raise UsageError(f"there is no file {str(path)!r}{hint}")
    if suffix == ".npz" and target is not None:
        raise UsageError(f"--target is for tables; the labels of {path.name} are its array y")
    try:
        if suffix == ".npz":
            return _read_npz(path)
        frame, notes = read_csv(path) if suffix == ".csv" else (_read_parquet(path), ())
    except UsageError:
        raise
    except UNREADABLE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(f"cannot read {str(path)!r}: {reason}") from error
    return _separate(frame, target, path.name, notes)


def _read_npz(path: Path) -> Table:
    if not zipfile.is_zipfile(path):
        raise UsageError(f"{path.name} is no .npz file: write one by numpy.savez(path, X=X, y=y)")
    with np.load(path, allow_pickle=False) as arrays:
        lacking = {"X", "y"} - set(arrays.files)
        if lacking:
            has = listed(arrays.files) or "nothing"
            raise UsageError(f"{path.name} must have arrays X and y, got {has}")
        try:
            X, y = arrays["X"], arrays["y"]
        except ValueError as error:
            if "pickle" in str(error):
                must = "which could run code; save numbers and strings"
                raise UsageError(f"{path.name} has pickled objects, {must}") from None
            raise
    if not 2 <= X.ndim <= 4 or X.dtype.kind not in "fiu":
        must = "a [n, d] array of real numbers, or images [n, height, width]"
        raise UsageError(f"{path.name}: X must be {must}, got {X.dtype} of shape {X.shape}")
    if y.shape != X.shape[:1]:
        raise UsageError(f"{path.name}: y must have shape [{len(X)}] like X, got {y.shape}")
    labels = np.char.decode(y, "utf-8", "replace") if y.dtype.kind == "S" else y
    dtype = np.float32 if np.can_cast(X.dtype, np.float32) else np.float64
    names = [f"X[:, {str(place)[1:-1].rstrip(',')}]" for place in np.ndindex(X.shape[1:])]
    columns = pd.DataFrame(X.reshape(len(X), len(names)), columns=names)
    return Table(columns, pd.Series(labels), dtype, X.shape[1:] if X.ndim > 2 else None)


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise UsageError(f"reading {path.name} needs a package: pip install pyarrow") from None
    frame.columns = frame.columns.map(str)
    return frame


def _separate(frame: pd.DataFrame, target: str | None, where: str, notes: tuple[str, ...]) -> Table:
    """The features and the labels of a table."""
    names = list(frame.columns)
    twice = frame.columns[frame.columns.duplicated()]
    if "" in names:
        raise UsageError(f"{where}: column {names.index('') + 1} has no name")
    if len(twice):
        raise UsageError(f"{where} has two columns called {twice[0]!r}")
    if target is None:
        raise UsageError(f"{where} needs --target, the column of the labels: {listed(names)}")
    if target not in names:
        near = nearest(target, names)
        hint = f"did you mean {near!r}?" if near is not None else f"it has {listed(names)}"
        raise UsageError(f"{where} has no column {target!r}; {hint}")
    return Table(frame.drop(columns=target), frame[target], notes=notes)


def require_enough(encoded: EncodedLabels, where: str) -> None:
    """Refuse labels that cannot be split: of one class, or with too few of another."""
    if len(encoded.classes) < 2:
        (only,) = encoded.classes
        raise UsageError(f"{where}: labels must have at least 2 classes, got only {only!r}")
    counts = np.bincount(encoded.labels)
    rarest = counts.argmin()
    if counts[rarest] < SMALLEST_CLASS:
        raise UsageError(
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
