"""The tables of the answer by label, and the files that they are written to."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from experiments.shell.files import write_text
from experiments.tables import control_effects, decisions, ranking
from experiments.tables.claim_verdicts import claims_table
from experiments.tables.contrasts import CANDIDATES, DIGITS, TAIL
from experiments.tables.effects import REFERENCES, effects_table, reference_label
from experiments.tables.evidence import Evidence
from experiments.tables.grid import Grid, to_json, to_markdown
from experiments.tables.latex import to_latex
from experiments.tables.margins import METRICS
from experiments.tables.numbers import mean_sd
from experiments.tables.samples import Samples


def make_tables(evidence: Evidence, reasons: Mapping[str, str]) -> dict[str, list[Grid]]:
    """The grids of every label; a label without runs has none.

    Args:
      evidence: as `weigh` gives it.
      reasons: for each control.
    """
    metrics = [metric.name for metric in evidence.samples.metrics]
    tables: dict[str, list[Grid | None]] = {
        "decisions": [decisions.decision_table(evidence.decisions)],
        "claims": [claims_table(evidence.claims)],
        "ranks": [ranking.ranks_table(evidence.ranked)],
        "means": [means_table(evidence.samples, metric) for metric in metrics],
        "controls": control_tables(evidence, reasons),
    }
    for reference in set(REFERENCES) & set(evidence.effects["reference"]):
        tables[f"against-{reference}"] = [
            effects_table(evidence.effects, reference, metric) for metric in metrics
        ]
    return {label: [grid for grid in grids if grid] for label, grids in tables.items()}


def means_table(samples: Samples, metric: str) -> Grid:
    """Mean ± sample sd over seeds: losses down, places across, the best of each marked."""
    rows, means = [], []
    for loss, label in samples.labels.items():
        values = [
            samples.compared(place, [loss], metric)[0].astype(float)
            if loss in samples.losses(place)
            else np.array([])
            for place in samples.places
        ]
        means.append([one.mean() if len(one) else np.nan for one in values])
        rows.append([label, *map(_mean_sd, values)])
    signed = METRICS[metric].gain(1.0) * np.round(means, 3)
    highest = np.max(signed, axis=0, where=~np.isnan(signed), initial=-np.inf)
    best = {(int(row), int(column) + 1) for row, column in np.argwhere(signed == highest)}
    title = f"{METRICS[metric].label}: mean ± sample sd"
    notes = ["best of each column marked"]
    return Grid(title, ["Loss", *map(str, samples.places)], rows, best, notes)


def control_tables(evidence: Evidence, reasons: Mapping[str, str]) -> list[Grid | None]:
    """Why the controls are there, how the candidates fare under them, and two cells in full."""
    if evidence.controls.empty:
        return []
    grids = [control_effects.describe_controls(evidence.control_runs, reasons)]
    for reference in REFERENCES:
        counts = control_effects.verdict_counts(evidence.controls, CANDIDATES, reference)
        title = f"CAPM, HPG and APMS against {reference_label(reference)}, by control"
        grids.append(control_effects.counts_by_control(counts, title))
    first = evidence.samples.headline.name
    cells = [(DIGITS, metric) for metric in evidence.controlled] + [(TAIL, first)]
    return grids + [
        control_effects.by_control(evidence.controls, place, metric, "ce")
        for place, metric in cells
    ]


def write_tables(tables: Mapping[str, list[Grid]], evidence: Evidence, out: Path) -> list[Path]:
    """Every table as Markdown and LaTeX, and the numbers behind them as CSV and JSON."""
    written = []
    for label, grids in tables.items():
        if grids:
            latex = "\n".join(to_latex(grid, f"answer-{label}") for grid in grids)
            written.append(write_text(out / f"{label}.md", "\n".join(map(to_markdown, grids))))
            write_text(out / f"{label}.tex", latex)
    frames = {name: getattr(evidence, name) for name in ("effects", "decisions", "claims")}
    if not evidence.controls.empty:
        frames["control-effects"] = evidence.controls
    for name, frame in frames.items():
        write_text(out / f"{name}.csv", frame.to_csv(index=False))
        write_text(out / f"{name}.json", to_json(frame))
    return written


def _mean_sd(values: np.ndarray) -> str:
    if not len(values):
        return "–"
    return mean_sd(values.mean(), values.std(ddof=1) if len(values) > 1 else np.nan)
