"""Which learning rate has the least validation NLL, counted over cells."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from experiments.tables.grid import Grid


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


def selection_table(counts: pd.DataFrame, dataset: str) -> Grid:
    """Counts of selection as a grid."""
    rows = [
        [label, *map(str, row)] for label, row in zip(counts.index, counts.to_numpy(), strict=True)
    ]
    notes = ["cells in which the rate has the least validation NLL; no comparison of test scores"]
    header = ["Loss", *(f"{rate:g}" for rate in counts.columns)]
    title = f"{dataset}: learning rate of least validation NLL"
    return Grid(title, header, rows, set(), notes)
