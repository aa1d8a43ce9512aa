"""NLL and ECE before and after temperature scaling."""

import pandas as pd

from experiments.tables.grid import Grid
from experiments.tables.summary import performance

METRICS = {
    "nll": "Raw NLL ↓",
    "calibrated_nll": "Cal. NLL ↓",
    "ece": "Raw ECE ↓",
    "calibrated_ece": "Cal. ECE ↓",
}


def temperature_scaling(frame: pd.DataFrame) -> Grid:
    """The table of clean data, with a note where a temperature is no minimum."""
    title = f"{frame['dataset'].iloc[0]}, clean: temperature scaling"
    grid = performance(frame, title, "clean", METRICS)
    at_bound = frame[frame["temperature_at_bound"]]
    notes = [
        f"{run.label}, seed {run.seed}: the best temperature is a bound, {run.temperature:.3g}"
        for run in at_bound.itertuples()
    ]
    return grid.with_notes(notes)
