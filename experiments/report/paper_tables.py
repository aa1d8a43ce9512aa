"""The tables of the report by label: the paper's own, and those that the comparison adds."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from experiments import ablation, longtail, robustness
from experiments.report.gather import NOISIEST, Results
from experiments.tables import published
from experiments.tables.grid import Grid, to_json, to_markdown
from experiments.tables.latex import to_latex
from experiments.tables.learning_rates import selection_table
from experiments.tables.paired_tests import REFERENCE, significance
from experiments.tables.summary import performance, summarise, version_notes
from experiments.tables.temperature import temperature_scaling
from pgeom.data import datasets
from pgeom.frontend.numbers import mean_sd
from pgeom.frontend.writing import write_text


class Table(NamedTuple):
    """One label of the report: its grids, and the command that makes it."""

    grids: list[Grid]
    command: str
    in_paper: bool


def write(results: Results, out: Path) -> dict[str, Table]:
    """Write every table as Markdown and LaTeX, and return them by label."""
    made = {}
    for label, (build, command, in_paper) in TABLES.items():
        grids = [grid for grid in build(results) if grid is not None and grid.rows]
        made[label] = Table(grids, f"python -m experiments.{command}", in_paper)
        write_text(out / f"{label}.md", "\n".join(map(to_markdown, grids)))
        write_text(out / f"{label}.tex", "\n".join(to_latex(grid, label) for grid in grids))
    return made


def compared(results: Results) -> pd.DataFrame:
    """Every published cell beside ours."""
    return published.compare(published.load_published(), results.runs)


def as_json(results: Results) -> str:
    """The comparison, cell by cell."""
    return to_json(compared(results))


def dataset_table(results: Results) -> list[Grid]:
    """The datasets of the paper and the regimes they are studied under."""
    rows = [
        [
            dataset.name,
            f"{len(dataset.labels):,}",
            str(dataset.num_classes),
            ", ".join(map(str, dataset.regimes)),
        ]
        for dataset in map(datasets.load, [*results.noise, longtail.DATASET])
    ]
    header = ["Dataset", "Samples", "Classes", "Training regimes"]
    notes = ["stratified 60/20/20 splits; long-tail-30 thins the training part alone, to 30:1"]
    return [Grid("datasets and regimes", header, rows, set(), notes)]


def candidate_accuracy(results: Results) -> list[Grid]:
    runs = results.runs
    runs = runs.assign(shown=runs["accuracy"].where(runs["dataset"] != longtail.DATASET))
    runs["shown"] = runs["shown"].fillna(runs["balanced_accuracy"])
    entries = [one for one in results.legend.values() if one.candidate or one.name == REFERENCE]
    shown = [one for one in entries if one.name in set(runs["loss"])]
    means = summarise(runs, ("shown",), by=("dataset", "regime", "loss"))
    cells = {(row["dataset"], row["regime"], row["loss"]): row for row in means.to_dict("records")}
    rows, best = [], set()
    for dataset, regime in dict.fromkeys(zip(runs["dataset"], runs["regime"], strict=True)):
        values = [cells[dataset, regime, one.name] for one in shown]
        rounded = [round(value["shown_mean"], 3) for value in values]
        best |= {(len(rows), 2 + k) for k, mean in enumerate(rounded) if mean == max(rounded)}
        texts = [mean_sd(value["shown_mean"], value["shown_sd"]) for value in values]
        rows.append([dataset, regime, *texts])
    header = ["Dataset", "Regime", *(one.label for one in shown)]
    notes = [
        f"test accuracy (on long-tail balanced accuracy), mean ± sample sd over {results.seeds} "
        "seeds; best of each row marked; descriptive",
        *version_notes(runs),
    ]
    return [Grid("accuracy of CE and the candidates", header, rows, best, notes)]


def digits_noise(results: Results) -> list[Grid]:
    frame = _ranked(results.noise["digits"], NOISIEST, "accuracy")
    return [performance(frame, f"digits, {NOISIEST}", NOISIEST)]


def long_tail(results: Results) -> list[Grid]:
    frame = _ranked(results.early_stopping, longtail.REGIME, "balanced_accuracy")
    title = "30:1 long tail, balanced test split"
    return [performance(frame, title, longtail.REGIME, longtail.METRICS)]


def early_stopping(results: Results) -> list[Grid]:
    """With and without early stopping: balanced accuracy, NLL, and the epoch that was kept."""
    with_rule, without = results.longtail.values()
    header = ["Loss"]
    for name in ("with", "without"):
        header += [f"Bal. acc. {name} ↑", f"NLL {name} ↓", f"Epoch {name}"]
    rows = []
    for loss in with_rule["loss"].cat.categories:
        texts = [results.legend[loss].label]
        for frame in (with_rule, without):
            runs = frame[frame["loss"] == loss]
            for metric in ("balanced_accuracy", "nll"):
                values = runs[metric].astype(float)
                texts.append(mean_sd(values.mean(skipna=False), values.std(ddof=1)))
            texts.append(f"{runs['best_epoch'].mean():.1f}")
        rows.append(texts)
    notes = [
        "balanced accuracy, NLL and the epoch kept, with and without early stopping: mean ± sample "
        "sd over seeds; either way the checkpoint of least validation NLL is kept, and only the "
        "epochs differ among which it is chosen",
        *version_notes(pd.concat([with_rule, without])),
    ]
    return [Grid("the long tail with and without early stopping", header, rows, set(), notes)]


def temperature(results: Results) -> list[Grid]:
    return [temperature_scaling(results.clean)]


def paired_tests(results: Results) -> list[Grid]:
    """All losses against CE in every cell, as one table."""
    parts, rows = [], []
    for frame in (*results.noise.values(), results.early_stopping):
        for regime in frame["regime"].cat.categories:
            grid = significance(frame, "", regime)
            if grid is not None:
                parts.append(grid)
                rows += [[frame["dataset"].iloc[0], regime, *row] for row in grid.rows]
    if not parts:
        return []
    header = ["Dataset", "Regime", *parts[0].header]
    return [Grid("every loss against CE", header, rows, set(), parts[0].footnotes)]


def comparison_tables(results: Results) -> list[Grid]:
    cells, notes = compared(results), version_notes(results.runs)
    grids = [published.counts_table(cells), published.cells_table(cells)]
    return [grid._replace(footnotes=grid.footnotes + notes) for grid in grids]


def rates(results: Results) -> list[Grid]:
    return [selection_table(results.rate_counts, "digits")]


def _ranked(frame: pd.DataFrame, regime: str, metric: str) -> pd.DataFrame:
    """The runs of a regime, the loss with the highest mean first, as in the paper."""
    frame = frame[frame["regime"] == regime]
    means = frame[metric].astype(float).groupby(frame["loss"], observed=True).mean()
    order = list(means.sort_values(ascending=False, kind="stable").index)
    return frame.assign(loss=pd.Categorical(frame["loss"], order, ordered=True))


TABLES: dict[str, tuple[Callable[[Results], list[Grid]], str, bool]] = {
    "datasets": (dataset_table, "report", True),
    "candidate-accuracy": (candidate_accuracy, "report", True),
    "digits-noise": (digits_noise, "noise --dataset digits", True),
    "longtail": (long_tail, "longtail", True),
    "calibration": (temperature, "calibration", True),
    "comparison": (comparison_tables, "comparison", False),
    "early-stopping": (early_stopping, "longtail", False),
    "significance": (paired_tests, "report", False),
    "robustness": (lambda results: robustness.make_grids(results.robustness), "robustness", False),
    "ablations": (lambda results: ablation.make_grids(results.ablation), "ablation", False),
    "lr-sensitivity": (rates, "lr_sensitivity", False),
}
