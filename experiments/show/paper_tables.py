"""The tables of the report by label: the paper's own, and those that the comparison adds."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from experiments import ablation, longtail, robustness
from experiments.show import published, regrets
from experiments.show.claims import claims_table
from experiments.show.decisions import decision_table
from experiments.show.item_files import Findings, Table, write_grids
from experiments.show.links import compare_links, links_table
from experiments.show.records import NOISIEST, Results
from experiments.show.stopping_table import early_stopping
from experiments.show.summary import (
    CALIBRATION_ERRORS,
    REFERENCE,
    convergence_notes,
    performance,
    scores,
    selection_table,
    significance,
    summarise,
    version_notes,
)
from experiments.show.tables import Grid, mean_sd, to_json
from pgeom.data import sources

TEMPERATURE = {
    "nll": "Raw NLL ↓",
    "plain_calibrated_nll": "Plainly cal. NLL ↓",
    "calibrated_nll": "Cal. NLL ↓",
    "ece": "Raw ECE ↓",
    "plain_calibrated_ece": "Plainly cal. ECE ↓",
    "calibrated_ece": "Cal. ECE ↓",
}


class Recipe(NamedTuple):
    """How to make a table from records."""

    heading: str
    build: Callable[[Results], Sequence[Grid | None]]
    command: str
    in_paper: bool = False


def write(results: Results, findings: Findings, out: Path) -> dict[str, Table]:
    """Write every table as Markdown, LaTeX, CSV and JSON, and return them by label."""
    made = {}
    for label, recipe in TABLES.items():
        grids = [grid for grid in recipe.build(results) if grid is not None and grid.rows]
        finding = findings[f"tab:{label}"](results) or ""
        command = f"python -m experiments.{recipe.command}"
        made[label] = Table(recipe.heading, finding, grids, command, recipe.in_paper)
        write_grids(grids, label, out)
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
        for dataset in map(sources.load, [*results.noise, longtail.DATASET])
    ]
    header = ["Dataset", "Samples", "Classes", "Training regimes"]
    notes = ["stratified 60/20/20 splits; long-tail-30 thins the training part alone, to 30:1"]
    return [Grid("datasets and regimes", header, rows, set(), notes)]


def candidate_accuracy(results: Results) -> list[Grid]:
    runs = results.runs
    runs = runs.assign(shown=runs["accuracy"].where(runs["dataset"] != longtail.DATASET))
    runs["shown"] = runs["shown"].fillna(runs["balanced_accuracy"])
    entries = [one for one in results.legend.values() if one.studied or one.name == REFERENCE]
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
        *convergence_notes(runs),
        *version_notes(runs),
    ]
    grid = Grid("accuracy of CE and the candidates", header, rows, best, notes)
    known = published.published_texts("candidate-accuracy")
    metrics = ("accuracy", "balanced_accuracy")
    texts = {
        (row, 2 + k): known[key]
        for row, (dataset, regime, *_) in enumerate(rows)
        for k, one in enumerate(shown)
        for metric in metrics
        if (key := (dataset, regime, one.label, metric)) in known
    }
    return [published.put_beside(grid, texts)]


def digits_noise(results: Results) -> list[Grid]:
    frame = _ranked(results.noise["digits"], NOISIEST, "accuracy")
    grid = performance(frame, f"digits, {NOISIEST}", NOISIEST)
    return [_beside(grid, "digits-noise", ("digits", NOISIEST), scores(frame))]


def long_tail(results: Results) -> list[Grid]:
    frame = _ranked(results.early_stopping, longtail.REGIME, "balanced_accuracy")
    title = "30:1 long tail, balanced test split"
    grid = performance(frame, title, longtail.REGIME)
    return [_beside(grid, "longtail", (longtail.DATASET, longtail.REGIME), scores(frame))]


def _beside(grid: Grid, table: str, place: tuple[str, str], metrics: Mapping[str, str]) -> Grid:
    """A table of losses and metrics with the published values."""
    known = published.published_texts(table)
    texts = {
        (row, 1 + k): known[key]
        for row, (label, *_) in enumerate(grid.rows)
        for k, metric in enumerate(metrics)
        if (key := (*place, label, metric)) in known
    }
    return published.put_beside(grid, texts)


def temperature(results: Results) -> list[Grid]:
    """The paper's fit is the plain one; ours has a prior."""
    grid = performance(results.clean, "digits, clean: temperature scaling", "clean", TEMPERATURE)
    return [_beside(grid, "calibration", ("digits", "clean"), TEMPERATURE)]


def calibration_errors(results: Results) -> list[Grid]:
    """By every measure, of clean digits and of the noisiest."""
    digits = results.noise["digits"]
    return [
        performance(digits, f"digits, {regime}: calibration errors", regime, CALIBRATION_ERRORS)
        for regime in ("clean", NOISIEST)
    ]


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
    cells, runs = compared(results), results.runs
    notes = convergence_notes(runs) + version_notes(runs)
    grids = (published.counts_table(cells), published.cells_table(cells))
    return [grid.with_notes(notes) for grid in grids]


def rates(results: Results) -> list[Grid]:
    return [selection_table(results.rate_counts, "digits")]


def _ranked(frame: pd.DataFrame, regime: str, metric: str) -> pd.DataFrame:
    """The runs of a regime, the loss with the highest mean first, as in the paper."""
    frame = frame[frame["regime"] == regime]
    means = frame[metric].astype(float).groupby(frame["loss"], observed=True).mean()
    order = list(means.sort_values(ascending=False, kind="stable").index)
    return frame.assign(loss=pd.Categorical(frame["loss"], order, ordered=True))


def decisions(results: Results) -> list[Grid | None]:
    return [decision_table(results.evidence.decisions)] if results.evidence else []


def claims(results: Results) -> list[Grid | None]:
    return [claims_table(results.evidence.claims)] if results.evidence else []


def linked(results: Results) -> list[Grid]:
    if results.links is None:
        return []
    table = links_table(compare_links(results.links))
    return [table.with_notes(convergence_notes(results.links))]


TABLES: dict[str, Recipe] = {
    "decisions": Recipe("Which loss for which situation", decisions, "answer"),
    "claims": Recipe("The paper's empirical claims", claims, "answer"),
    "datasets": Recipe("The datasets", dataset_table, "report", True),
    "candidate-accuracy": Recipe(
        "Accuracy of cross-entropy and the candidates", candidate_accuracy, "report", True
    ),
    "digits-noise": Recipe(
        "All losses under 40% symmetric noise", digits_noise, "noise --dataset digits", True
    ),
    "longtail": Recipe("All losses on the long tail", long_tail, "longtail", True),
    "calibration": Recipe("Temperature scaling on clean digits", temperature, "calibration", True),
    "calibration-errors": Recipe(
        "Calibration errors by four measures", calibration_errors, "report"
    ),
    "comparison": Recipe("Every published cell beside ours", comparison_tables, "comparison"),
    "early-stopping": Recipe("The long tail by way of stopping", early_stopping, "longtail"),
    "significance": Recipe("Tests against cross-entropy in every cell", paired_tests, "report"),
    "regrets": Recipe(
        "Regret of every loss by every score",
        lambda results: regrets.grids(results.regrets),
        "known_truth",
    ),
    "displacement": Recipe(
        "How far each loss is from the truth",
        lambda results: [regrets.displacements(results.regrets, results.displacement)],
        "known_truth",
    ),
    "robustness": Recipe(
        "Accuracy under corruption and attack",
        lambda results: robustness.make_grids(results.robustness),
        "robustness",
    ),
    "ablations": Recipe(
        "Accuracy of every variant",
        lambda results: ablation.make_grids(results.ablation),
        "ablation",
    ),
    "links": Recipe("Canonical links against softmax", linked, "links"),
    "lr-sensitivity": Recipe("Selected learning rates", rates, "lr_sensitivity"),
}
