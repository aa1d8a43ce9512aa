"""Tables: read from records, printed, and written as Markdown or JSON."""

import json as json_format
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from experiments.protocol import LABELS
from pgeom.evaluation.significance import holm, paired_wilcoxon

METRICS = {"accuracy": "Accuracy ↑", "nll": "NLL ↓", "brier": "Brier ↓", "ece": "ECE ↓"}
REFERENCE = "ce"


class Grid(NamedTuple):
    """A table ready to be shown: cells marked as best are emphasised."""

    title: str
    header: list[str]
    rows: list[list[str]]
    best: set[tuple[int, int]]
    footnotes: list[str]


def select(runs: list[dict], cells, losses: Sequence[str]) -> pd.DataFrame:
    """The records of these cells and losses, sorted as asked for."""
    frame = pd.DataFrame(runs)
    wanted = frame.merge(pd.DataFrame(cells), on=["dataset", "regime", "seed"])
    wanted = wanted[wanted["loss"].isin(losses)]
    for column, order in (("loss", losses), ("regime", dict.fromkeys(c.regime for c in cells))):
        wanted[column] = pd.Categorical(wanted[column], list(order), ordered=True)
    return wanted.sort_values(["regime", "loss", "seed"]).reset_index(drop=True)


def summary(
    frame: pd.DataFrame, metrics: Sequence[str] = tuple(METRICS), by=("regime", "loss")
) -> pd.DataFrame:
    """Mean and sample standard deviation over seeds, one row a (regime, loss).

    A run without a number (it diverged) leaves its cell without one too.
    """
    groups = frame.groupby(list(by), observed=True)
    columns = {
        "seeds": groups.size(),
        "diverged": groups["diverged_epoch"].agg(lambda e: (e > 0).sum()),
    }
    for metric in metrics:
        values = groups[metric]
        columns[f"{metric}_mean"] = values.agg(lambda v: v.astype(float).mean(skipna=False))
        columns[f"{metric}_sd"] = values.agg(lambda v: v.astype(float).std(ddof=1, skipna=False))
    return pd.DataFrame(columns).reset_index()


def performance(frame: pd.DataFrame, title: str, regime: str, metrics=METRICS) -> Grid:
    """Mean ± sample sd of every metric for one regime, the best of each marked."""
    rows = summary(frame[frame["regime"] == regime], tuple(metrics)).reset_index(drop=True)
    best = set()
    for column, (metric, label) in enumerate(metrics.items(), start=1):
        means = rows[f"{metric}_mean"].round(3)
        if means.notna().any():
            extreme = means.max() if "↑" in label else means.min()
            best |= {(row, column) for row in rows.index[means == extreme]}
    text = [
        [label_of(row["loss"]), *(_mean_sd(row, metric) for metric in metrics)]
        for row in rows.to_dict("records")
    ]
    seeds = int(rows["seeds"].max())
    notes = [f"mean ± sample sd over {seeds} seed{'s' * (seeds > 1)}; best of each column marked"]
    notes += _diverged(frame[frame["regime"] == regime])
    return Grid(title, ["Loss", *metrics.values()], text, best, notes)


def significance(frame: pd.DataFrame, title: str, regime: str) -> Grid | None:
    """Each loss against cross-entropy on matched seeds: exact Wilcoxon, Holm-corrected.

    None where cross-entropy is not among the losses, or nothing else is.
    """
    frame = frame[frame["regime"] == regime]
    losses = [loss for loss in frame["loss"].unique() if loss != REFERENCE]
    if REFERENCE not in set(frame["loss"]) or not losses:
        return None
    header, columns = ["Loss"], [[label_of(loss) for loss in losses]]
    for metric in ("accuracy", "nll"):
        pivot = frame.pivot(index="seed", columns="loss", values=metric).astype(np.float32)
        tests = [_compare(pivot[loss], pivot[REFERENCE]) for loss in losses]
        known = [place for place, test in enumerate(tests) if test is not None]
        adjusted = dict(zip(known, holm([tests[k].p_value for k in known]), strict=True))
        name = {"accuracy": "acc", "nll": "NLL"}[metric]
        header += [f"Δ{name}", "p", "Holm", "floor"]
        columns += [
            [f"{(pivot[loss] - pivot[REFERENCE]).mean():+.3f}" for loss in losses],
            ["–" if test is None else _p(test.p_value) for test in tests],
            [_p(adjusted[k]) if k in adjusted else "–" for k in range(len(tests))],
            ["–" if test is None else _p(test.attainable) for test in tests],
        ]
    pairs = frame["seed"].nunique()
    notes = [
        "p: exact two-sided Wilcoxon on matched seeds; Holm: corrected over the losses",
        f"floor: the least p that the pairs which differ could give; {_floor(pairs)}",
    ]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return Grid(f"{title}: against CE", header, rows, set(), notes)


def crossed(frame: pd.DataFrame, title: str, metric: str) -> Grid:
    """Mean ± sample sd of one metric, variants down, places across, the best of each marked."""
    rows = summary(frame, (metric,), by=("loss", "place"))
    places = list(dict.fromkeys(frame["place"]))
    names = list(dict.fromkeys(rows["loss"]))
    cells = {(row["loss"], row["place"]): row for row in rows.to_dict("records")}
    text = [
        [label_of(name), *(_mean_sd(cells[name, place], metric) for place in places)]
        for name in names
    ]
    best = set()
    for column, place in enumerate(places, start=1):
        means = [round(cells[name, place][f"{metric}_mean"], 3) for name in names]
        best |= {(row, column) for row, mean in enumerate(means) if mean == np.nanmax(means)}
    notes = [f"{metric}, mean ± sample sd over {frame['seed'].nunique()} seeds; descriptive"]
    return Grid(title, ["Variant", *places], text, best, notes)


def selected_rates(frame: pd.DataFrame) -> pd.DataFrame:
    """How often each learning rate has the least validation NLL: losses down, rates across."""
    least = frame["validation_nll"].map(
        lambda curve: min((v for v in curve if v is not None), default=np.inf)
    )
    frame = frame.assign(least=least)
    chosen = frame.loc[frame.groupby(["regime", "seed", "loss"], observed=True)["least"].idxmin()]
    rates = sorted(frame["learning_rate"].unique())
    counts = pd.crosstab(chosen["loss"], chosen["learning_rate"], dropna=False)
    return counts.reindex(columns=rates, fill_value=0)


def rate_counts(counts: pd.DataFrame, title: str) -> Grid:
    """Counts of selection as a grid."""
    rows = [
        [label_of(loss), *map(str, row)]
        for loss, row in zip(counts.index, counts.to_numpy(), strict=True)
    ]
    notes = ["cells in which the rate has the least validation NLL; no comparison of test scores"]
    return Grid(title, ["Loss", *(f"{rate:g}" for rate in counts.columns)], rows, set(), notes)


def publish(
    grids: Sequence[Grid | None], summary: pd.DataFrame, page: Path, console: Console, json: bool
) -> None:
    """Write the grids as Markdown, and print them, or the summary as JSON on stdout."""
    grids = [grid for grid in grids if grid is not None]
    page.write_text("\n".join(to_markdown(grid) for grid in grids))
    if json:
        rows = summary.astype(object)
        rows = rows.where(rows.notna(), None).to_dict("records")
        print(json_format.dumps(rows, indent=2))
        return
    for grid in grids:
        console.print(to_rich(grid))


def to_rich(grid: Grid) -> Group:
    """A grid for the terminal: its title, the table, its footnotes."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0))
    for place, name in enumerate(grid.header):
        table.add_column(name, justify="left" if place == 0 else "right", no_wrap=True)
    for row, texts in enumerate(grid.rows):
        marked = (
            f"[bold]{text}*[/bold]" if (row, column) in grid.best else text
            for column, text in enumerate(texts)
        )
        table.add_row(*marked)
    notes = (Text(note, style="dim") for note in grid.footnotes)
    return Group(Text(f"\n{grid.title}", style="bold"), table, *notes)


def to_markdown(grid: Grid) -> str:
    """A grid as a Markdown section."""

    def line(texts):
        return "| " + " | ".join(text.replace("|", r"\|") for text in texts) + " |"

    lines = [f"## {grid.title}", "", line(grid.header), "|" + "---|" * len(grid.header)]
    for row, texts in enumerate(grid.rows):
        marked = (
            f"**{text}**" if (row, column) in grid.best else text
            for column, text in enumerate(texts)
        )
        lines.append(line(marked))
    return "\n".join([*lines, "", *(f"- {note}" for note in grid.footnotes), ""])


def label_of(loss: str) -> str:
    """The printed name of a loss, or of a variant of one."""
    return LABELS.get(loss, loss)


def _mean_sd(row: dict, metric: str) -> str:
    mean, sd = row[f"{metric}_mean"], row[f"{metric}_sd"]
    if np.isnan(mean):
        return "diverged"
    return f"{mean:.3f}" if np.isnan(sd) else f"{mean:.3f} ± {sd:.3f}"


def _diverged(frame: pd.DataFrame) -> list[str]:
    bad = frame[frame["diverged_epoch"] > 0]
    return [
        f"{label_of(run.loss)}, seed {run.seed}: validation NLL not finite from epoch "
        f"{run.diverged_epoch}; scored at its best epoch before, {run.best_epoch}"
        for run in bad.itertuples()
    ]


def _compare(values: pd.Series, reference: pd.Series):
    """The test of one loss, or None where a run has no number to compare."""
    if values.isna().any() or reference.isna().any():
        return None
    return paired_wilcoxon(values.to_numpy(), reference.to_numpy())


def _p(value: float) -> str:
    return "1" if value == 1 else f"{value:.4f}".lstrip("0")


def _floor(pairs: int) -> str:
    least = 2.0 / 2**pairs
    if least > 0.05:
        return f"with {pairs} pairs at best {least:.4g}, so the comparison is descriptive"
    return f"with {pairs} pairs at best {least:.4g}"
