"""The files of the report beside its page: tables and runs, each in several forms."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from experiments.shell.files import write_text
from experiments.show.records import Results
from experiments.show.tables import Grid, grids_to_json, to_csv, to_json, to_latex, to_markdown

Findings = Mapping[str, Callable[[Results], str | None]]
"""By kind and label, as in `tab:longtail`: what a table or figure shows, if the runs allow it."""


BOOKKEEPING = ("cell",)  # of records, no use to a reader


class Table(NamedTuple):
    """One label of the report: what it is and shows, its grids, and the command that makes it."""

    heading: str
    finding: str
    grids: list[Grid]
    command: str
    in_paper: bool


def write_grids(grids: Sequence[Grid], label: str, out: Path) -> None:
    """The grids of a label in every form; several of them are several CSV and JSON files, too."""
    write_text(out / f"{label}.md", "\n".join(map(to_markdown, grids)))
    write_text(out / f"{label}.tex", "\n".join(to_latex(grid, label) for grid in grids))
    write_text(out / f"{label}.json", grids_to_json(grids))
    for name, grid in zip(csv_names(label, len(grids)), grids, strict=True):
        write_text(out / name, to_csv(grid))
        if len(grids) > 1:
            write_text((out / name).with_suffix(".json"), grids_to_json([grid]))


def csv_names(label: str, grids: int) -> list[str]:
    """The names of the CSV files of a label."""
    return [f"{label}.csv"] if grids == 1 else [f"{label}-{k + 1}.csv" for k in range(grids)]


def write_runs(results: Results, out: Path) -> None:
    """The runs that the figures are drawn from, one row each."""
    frames = {
        "runs": results.runs,
        "longtail-runs": pd.concat(list(results.longtail.values())),
        "robustness-runs": results.robustness,
        "ablation-runs": results.ablation,
        "runtime-runs": results.runtime,
        "regrets-runs": results.regrets,
    }
    for name, frame in frames.items():
        plain = [field for field in frame if not isinstance(frame[field].iloc[0], (list, dict))]
        kept = frame[[field for field in plain if field not in BOOKKEEPING]]
        write_text(out / f"{name}.csv", kept.to_csv(index=False))
        write_text(out / f"{name}.json", to_json(kept))
