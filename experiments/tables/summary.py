"""Means and deviations over seeds, as frames and as tables."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from experiments.tables.grid import Grid
from experiments.tables.margins import METRICS, compared
from experiments.tables.numbers import mean_sd
from pgeom.losses.spec import LossSpec
from pgeom.messages import count

CALIBRATION_ERRORS = {
    "ece": "ECE ↓",
    "debiased_ece": "Debiased ECE ↓",
    "smooth_ece": "Smooth ECE ↓",
    "classwise_ece": "Classwise ECE ↓",
}


def scores(frame: pd.DataFrame) -> dict[str, str]:
    """The metrics of a page about these runs by name, with their labels."""
    return {one.name: one.label for one in compared(frame) if one.name != "calibrated_nll"}


def summarise(
    frame: pd.DataFrame, metrics: Sequence[str] | None = None, by=("regime", "loss")
) -> pd.DataFrame:
    """Mean and sample standard deviation over seeds, one row per (regime, loss), with its label.

    Without `metrics` they are those of `scores`.

    A run without a number (it diverged) leaves its cell without one too.
    """
    metrics = tuple(scores(frame)) if metrics is None else metrics
    groups = frame.groupby(list(by), observed=True)
    columns = {
        "label": groups["label"].first(),
        "seeds": groups.size(),
        "diverged": groups["diverged_epoch"].agg(lambda e: (e > 0).sum()),
    }
    for metric in metrics:
        values = groups[metric]
        columns[f"{metric}_mean"] = values.agg(lambda v: v.astype(float).mean(skipna=False))
        columns[f"{metric}_sd"] = values.agg(lambda v: v.astype(float).std(ddof=1, skipna=False))
    return pd.DataFrame(columns).reset_index()


def performance(
    frame: pd.DataFrame, title: str, regime: str, metrics: Mapping[str, str] | None = None
) -> Grid:
    """Mean ± sample sd of every metric for one regime, the best of each marked.

    Without `metrics` they are those of `scores`.
    """
    metrics = scores(frame) if metrics is None else metrics
    frame = frame[frame["regime"] == regime]
    rows = summarise(frame, tuple(metrics)).reset_index(drop=True)
    best = set()
    for column, (metric, label) in enumerate(metrics.items(), start=1):
        means = rows[f"{metric}_mean"].round(3)
        if means.notna().any():
            extreme = means.max() if "↑" in label else means.min()
            best |= {(row, column) for row in rows.index[means == extreme]}
    text = [
        [row["label"], *(_cell(row, metric) for metric in metrics)]
        for row in rows.to_dict("records")
    ]
    seeds = int(rows["seeds"].max())
    notes = [f"mean ± sample sd over {count(seeds, 'seed')}; best of each column marked"]
    return Grid(title, ["Loss", *metrics.values()], text, best, notes + run_notes(frame))


def crossed(frame: pd.DataFrame, variants: Sequence[LossSpec], title: str, metric: str) -> Grid:
    """Mean ± sample sd of one metric, variants down, places across, the best of each marked."""
    names = [variant.name for variant in variants]
    frame = frame[frame["loss"].isin(names)]
    rows = summarise(frame, (metric,), by=("loss", "place"))
    places = list(dict.fromkeys(frame["place"]))
    cells = {(row["loss"], row["place"]): row for row in rows.to_dict("records")}
    text = [
        [variant.label, *(_cell(cells[variant.name, place], metric) for place in places)]
        for variant in variants
    ]
    best = set()
    for column, place in enumerate(places, start=1):
        means = [round(cells[name, place][f"{metric}_mean"], 3) for name in names]
        best |= {(row, column) for row, mean in enumerate(means) if mean == np.nanmax(means)}
    seeds = count(frame["seed"].nunique(), "seed")
    notes = [f"{METRICS[metric].words}, mean ± sample sd over {seeds}; descriptive"]
    return Grid(title, ["Variant", *places], text, best, notes + run_notes(frame))


def run_notes(frame: pd.DataFrame) -> list[str]:
    """What a reader must know of runs: which diverged or have not converged, several versions."""
    return _diverged(frame) + convergence_notes(frame) + version_notes(frame)


def convergence_notes(frame: pd.DataFrame, epochs: int | None = None) -> list[str]:
    """A note where runs were best in their last epoch: they would have gone on.

    Args:
      frame: the runs.
      epochs: the number that `--epochs` had, where runs had others.
    """
    if "stopped_epoch" not in frame:
        return []
    last = frame[frame["best_epoch"] == frame["stopped_epoch"]]
    last = last[[_is_best_at_the_end(run) for run in last.to_dict("records")]]
    if last.empty:
        return []
    more = 2 * (epochs or int(last["stopped_epoch"].max()))
    were = "was best in its" if len(last) == 1 else "were best in their"
    runs = count(len(frame), "run")
    return [f"{len(last)} of {runs} {were} last epoch: not converged, try --epochs {more}"]


def _is_best_at_the_end(run: dict) -> bool:
    """Whether the last epoch, which was kept, was the best: `--stop-on none` keeps it anyway."""
    if run.get("stop_on") != "none":
        return True
    curves = (run.get(name) for name in ("validation_nll", "validation_loss"))
    values = next((curve for curve in curves if isinstance(curve, list)), [])
    known = [value for value in values if value is not None]
    return not known or values[-1] == min(known)


def version_notes(frame: pd.DataFrame) -> list[str]:
    """A note where the runs were not all made by the same versions."""
    made = pd.DataFrame(list(frame["versions"])) if "versions" in frame else pd.DataFrame()
    several = [name for name in made.columns if made[name].nunique() > 1]
    if not several:
        return []
    counts = [
        f"{name} "
        + " and ".join(f"{v} ({count(n, 'run')})" for v, n in made[name].value_counts().items())
        for name in several
    ]
    return [f"made by several versions: {'; '.join(counts)}"]


def _cell(row: dict, metric: str) -> str:
    return mean_sd(row[f"{metric}_mean"], row[f"{metric}_sd"])


def _diverged(frame: pd.DataFrame) -> list[str]:
    bad = frame[frame["diverged_epoch"] > 0]
    return [
        f"{run.label}, seed {run.seed}: validation NLL not finite from epoch "
        f"{run.diverged_epoch}; scored at its best epoch before, {run.best_epoch}"
        for run in bad.itertuples()
    ]
