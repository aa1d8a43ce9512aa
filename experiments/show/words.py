"""What the findings are written with: means, names and ranges as text.

>>> span(pd.Series([0.1, 0.25])), join(["CE", "HPG", "APMS"])
('0.100–0.250', 'CE, HPG and APMS')
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from experiments.show.figures.legend import Entry
from experiments.show.records import Results

REFERENCE = "ce"


def means(frame: pd.DataFrame, metric: str, by: str | Sequence[str] = "loss") -> pd.Series:
    """Means over seeds, by loss or whatever is given."""
    names = [by] if isinstance(by, str) else by
    return frame[metric].astype(float).groupby([frame[name].astype(str) for name in names]).mean()


def candidates(results: Results, values: Iterable) -> list[Entry]:
    """The candidates of which there are values."""
    known = set(values)
    return [one for one in results.legend.values() if one.studied and one.name in known]


def select(values: pd.Series, entries: list[Entry]) -> pd.Series:
    """The values of these losses."""
    return values[[entry.name for entry in entries]]


def labels(results: Results, names: Iterable[str]) -> str:
    """Losses by their labels, joined."""
    return join([results.legend[name].label for name in names])


def join(texts: Sequence[str]) -> str:
    """Texts as an English list."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def span(values: pd.Series | np.ndarray, form: str = ".3f") -> str:
    """The least and the largest value, or the one there is."""
    low, high = format(values.min(), form), format(values.max(), form)
    return low if low == high else f"{low}–{high}"


def signed(values: pd.Series | np.ndarray) -> str:
    """The least and the largest difference, with signs."""
    low, high = f"{values.min():+.3f}", f"{values.max():+.3f}"
    return low if low == high else f"{low} to {high}"
