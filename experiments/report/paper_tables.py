"""The tables of the report by label: the paper's own, and those that the comparison adds."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments import ablation, calibration, comparison, longtail, robustness, tables
from experiments.cells import load
from experiments.latex import to_latex
from experiments.protocol import REGIMES
from experiments.report.gather import Results
from experiments.tables import Grid, label_of

CANDIDATES = ("ce", "capm", "hpg", "apms")


class Table(NamedTuple):
    """One label of the report: its grids, and the command that makes it."""

    grids: list[Grid]
    command: str
    in_paper: bool


def write(results: Results, out: Path) -> dict[str, Table]:
    """Write every table as Markdown and LaTeX, and return them by label."""
    out.mkdir(parents=True, exist_ok=True)
    made = {}
    for label, (build, command, in_paper) in TABLES.items():
        grids = [grid for grid in build(results) if grid is not None and grid.rows]
        made[label] = Table(grids, f"python -m experiments.{command}", in_paper)
        (out / f"{label}.md").write_text("\n".join(map(tables.to_markdown, grids)))
        (out / f"{label}.tex").write_text("\n".join(to_latex(grid, label) for grid in grids))
    return made


def compared(results: Results) -> pd.DataFrame:
    """Every published cell beside ours."""
    return comparison.compare(comparison.published(), results.runs)


def as_json(results: Results) -> str:
    """The comparison, cell by cell."""
    rows = compared(results).astype(object)
    return json.dumps(rows.where(rows.notna(), None).to_dict("records"), indent=2)


def datasets(results: Results) -> list[Grid]:
    rows = [
        [name, f"{len(load(name).labels):,}", str(load(name).num_classes), ", ".join(regimes)]
        for name, regimes in REGIMES.items()
    ]
    header = ["Dataset", "Samples", "Classes", "Training regimes"]
    notes = ["stratified 60/20/20 splits; long-tail-30 thins the training part alone, to 30:1"]
    return [Grid("datasets and regimes", header, rows, set(), notes)]


def candidate_accuracy(results: Results) -> list[Grid]:
    runs = results.runs
    runs = runs.assign(shown=runs["accuracy"].where(runs["dataset"] != longtail.DATASET))
    runs["shown"] = runs["shown"].fillna(runs["balanced_accuracy"])
    shown = [loss for loss in CANDIDATES if loss in set(runs["loss"])]
    found = tables.summary(runs, ("shown",), by=("dataset", "regime", "loss"))
    cells = {(row.dataset, row.regime, row.loss): row for row in found.itertuples()}
    rows, best = [], set()
    for dataset, regime in dict.fromkeys(zip(runs["dataset"], runs["regime"], strict=True)):
        values = [cells[dataset, regime, loss] for loss in shown]
        means = [round(value.shown_mean, 3) for value in values]
        best |= {(len(rows), 2 + k) for k, mean in enumerate(means) if mean == max(means)}
        rows.append([dataset, regime, *(_text(v.shown_mean, v.shown_sd) for v in values)])
    header = ["Dataset", "Regime", *map(label_of, shown)]
    notes = [
        f"test accuracy (on long-tail balanced accuracy), mean ± sample sd over {results.seeds} "
        "seeds; best of each row marked; descriptive"
    ]
    return [Grid("accuracy of CE and the candidates", header, rows, best, notes)]


def digits_noise(results: Results) -> list[Grid]:
    frame = _ranked(results.noise["digits"].frame, "symmetric-40", "accuracy")
    return [tables.performance(frame, "digits, symmetric-40", "symmetric-40")]


def long_tail(results: Results) -> list[Grid]:
    frame = _ranked(results.longtail[longtail.EARLY].frame, longtail.REGIME, "balanced_accuracy")
    title = "30:1 long tail, balanced test split"
    return [tables.performance(frame, title, longtail.REGIME, longtail.METRICS)]


def early_stopping(results: Results) -> list[Grid]:
    """With and without early stopping: balanced accuracy, NLL, and the epoch that was kept."""
    with_rule, without = (study.frame for study in results.longtail.values())
    header = ["Loss"]
    for name in ("with", "without"):
        header += [f"Bal. acc. {name} ↑", f"NLL {name} ↓", f"Epoch {name}"]
    rows = []
    for loss in with_rule["loss"].cat.categories:
        texts = [label_of(loss)]
        for frame in (with_rule, without):
            runs = frame[frame["loss"] == loss]
            for metric in ("balanced_accuracy", "nll"):
                values = runs[metric].astype(float)
                texts.append(_text(values.mean(skipna=False), values.std(ddof=1)))
            texts.append(f"{runs['best_epoch'].mean():.1f}")
        rows.append(texts)
    notes = [
        "balanced accuracy, NLL and the epoch kept, with and without early stopping: mean ± sample "
        "sd over seeds; either way the checkpoint of least validation NLL is kept, and only the "
        "epochs differ among which it is chosen"
    ]
    return [Grid("the long tail with and without early stopping", header, rows, set(), notes)]


def temperature(results: Results) -> list[Grid]:
    frame = results.noise["digits"].frame
    return [calibration.grid_of(frame[frame["regime"] == "clean"])]


def significance(results: Results) -> list[Grid]:
    """All losses against CE in every cell, as one table."""
    parts, rows = [], []
    for study in (*results.noise.values(), results.longtail[longtail.EARLY]):
        for regime in study.frame["regime"].cat.categories:
            grid = tables.significance(study.frame, "", regime)
            if grid is not None:
                parts.append(grid)
                rows += [[study.cells[0].dataset, regime, *row] for row in grid.rows]
    if not parts:
        return []
    header = ["Dataset", "Regime", *parts[0].header]
    return [Grid("every loss against CE", header, rows, set(), parts[0].footnotes)]


def comparison_tables(results: Results) -> list[Grid]:
    found = compared(results)
    return [comparison.counts_grid(comparison.counts(found)), comparison.cells_grid(found)]


def rates(results: Results) -> list[Grid]:
    counts = tables.selected_rates(results.rates)
    return [tables.rate_counts(counts, "digits: learning rate of least validation NLL")]


def _ranked(frame: pd.DataFrame, regime: str, metric: str) -> pd.DataFrame:
    """The runs of a regime, the loss with the highest mean first, as in the paper."""
    frame = frame[frame["regime"] == regime]
    means = frame[metric].astype(float).groupby(frame["loss"], observed=True).mean()
    order = list(means.sort_values(ascending=False, kind="stable").index)
    return frame.assign(loss=pd.Categorical(frame["loss"], order, ordered=True))


def _text(mean: float, sd: float) -> str:
    return f"{mean:.3f}" if np.isnan(sd) else f"{mean:.3f} ± {sd:.3f}"


TABLES: dict[str, tuple[Callable[[Results], list[Grid]], str, bool]] = {
    "datasets": (datasets, "report", True),
    "candidate-accuracy": (candidate_accuracy, "report", True),
    "digits-noise": (digits_noise, "noise --dataset digits", True),
    "longtail": (long_tail, "longtail", True),
    "calibration": (temperature, "calibration", True),
    "comparison": (comparison_tables, "comparison", False),
    "early-stopping": (early_stopping, "longtail", False),
    "significance": (significance, "report", False),
    "robustness": (lambda results: robustness.grids_of(results.robustness), "robustness", False),
    "ablations": (lambda results: ablation.grids_of(results.ablation), "ablation", False),
    "lr-sensitivity": (rates, "lr_sensitivity", False),
}
