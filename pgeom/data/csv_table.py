"""A table from a .csv file, whose columns may be separated by commas, semicolons or tabs."""

import csv
import warnings
from pathlib import Path

import pandas as pd
from pandas.api import types

from pgeom.frontend.errors import UsageError

SEPARATORS = (",", ";", "\t")


def read_csv(path: Path) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The table, and notes on how it was read.

    Raises:
      UsageError: for a file that is empty, or has rows longer than its header.
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
        raise UsageError(f"{path.name} is empty")
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
            raise UsageError(f"{path.name} has rows longer than its header") from None
