"""Which learning rate has the least validation NLL, counted over cells."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from experiments.tables.grid import Grid
from pgeom.messages import count


def count_selected(frames: Mapping[float, pd.DataFrame]) -> pd.DataFrame:
    """How often each learning rate has the least validation NLL: labels down, rates across."""
    selected = select_runs(frames)
    counts = pd.crosstab(selected["label"], selected["learning_rate"])
    order = list(dict.fromkeys(next(iter(frames.values()))["label"]))
    return counts.reindex(index=order, columns=sorted(frames), fill_value=0)


def select_runs(frames: Mapping[float, pd.DataFrame]) -> pd.DataFrame:
    """Of the runs of a loss with a seed, the one at the rate of least validation NLL."""
    parts = [frame.assign(learning_rate=rate) for rate, frame in frames.items()]
    runs = pd.concat(parts, ignore_index=True)
    runs["least"] = runs["validation_nll"].map(
        lambda curve: min((v for v in curve if v is not None), default=np.inf)
    )
    groups = runs.groupby(["dataset", "regime", "seed", "loss"], observed=True)
    return runs.loc[groups["least"].idxmin()].drop(columns="least")


def edge_notes(at_end: int, chosen: int) -> list[str]:
    """A note where chosen learning rates are at an end of their grid.

    Args:
      at_end: how many are the smallest or the largest.
      chosen: how many there are.
    """
    if not at_end:
        return []
    rates, are = count(chosen, "chosen learning rate"), "is" if at_end == 1 else "are"
    return [
        f"{at_end} of {rates} {are} at an end of the grid: the best may lie beyond it, try another "
        "--learning-rate"
    ]


def selection_table(counts: pd.DataFrame, dataset: str) -> Grid:
    """Counts of selection as a grid."""
    at_end = int(counts.iloc[:, [0, -1]].to_numpy().sum())
    rows = [
        [label, *map(str, row)] for label, row in zip(counts.index, counts.to_numpy(), strict=True)
    ]
    notes = ["cells in which the rate has the least validation NLL; no comparison of test scores"]
    notes += edge_notes(at_end, int(counts.to_numpy().sum()))
    header = ["Loss", *(f"{rate:g}" for rate in counts.columns)]
    title = f"{dataset}: learning rate of least validation NLL"
    return Grid(title, header, rows, set(), notes)
