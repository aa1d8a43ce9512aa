"""What was published, set beside what was measured: `python -m experiments.comparison --seeds 50`.

The constants that the paper leaves open were fitted to these very numbers: that they agree is
calibration, not independent evidence. With more seeds than the paper's five there is a better
question: is the published mean of five a plausible draw from our protocol?

>>> cells = published()
>>> len(cells), sorted(set(cells["table"]))
(132, ['calibration', 'candidate-accuracy', 'digits-noise', 'longtail'])
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from experiments import cli, longtail, tables
from experiments.cells import Cell
from experiments.jobs import Spent
from experiments.protocol import NOISE_DATASETS, REGIMES
from pgeom.losses import catalogue

PUBLISHED = Path(__file__).with_name("published.json")
PUBLISHED_SEEDS = 5
CELL = ["dataset", "regime", "loss"]
FITTED = (
    "the constants that the paper leaves open were fitted to these published numbers: agreement "
    "is calibration, not independent evidence"
)
UNITS = (
    "difference: ours − published, in published sd; table calibration has no published sd, so "
    "there it is in our own"
)


def main(
    records: Path = Path("results"),
    out: Path = Path("results/comparison"),
    common: cli.Common = cli.DEFAULTS,
) -> None:
    """Train what the published tables need, and set the published values beside ours.

    Args:
        records: The folder in which noise and longtail keep their records.
        out: The folder for the tables.
        common: Options of every command.
    """
    cli.refuse_distributed(common, "experiments.comparison")
    command = cli.begin(common, out)
    runs, spent = _runs(records, command)
    compared = compare(published(), runs)
    out.mkdir(parents=True, exist_ok=True)
    page = out / "comparison.md"
    grids = [counts_grid(counts(compared)), cells_grid(compared)]
    tables.publish(grids, compared, page, command.console, command.json)
    command.console.print(f"{spent.runs} runs trained; written to {page}", highlight=False)


def published() -> pd.DataFrame:
    """The published cells: table, dataset, regime, loss, metric, mean, sd (NaN where not given)."""
    return pd.DataFrame(json.loads(PUBLISHED.read_text())).astype({"sd": float})


def compare(cells: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Each published cell that was run, with our mean and sd, and how far apart they are.

    difference = (ours − published)/sd        z = (published − ours)/(our sd/√5)

    Args:
      cells: as `published` gives them.
      runs: one row a run, with dataset, regime, loss and every metric.

    Returns:
      `cells` with `seeds, ours, our_sd, difference, z`; z is NaN at no more than five seeds, where
      our mean is as uncertain as the published one.
    """
    keyed = runs.astype({"regime": str, "loss": str})
    values = keyed.melt(CELL, sorted(set(cells["metric"])), "metric").astype({"value": float})
    groups = values.groupby([*CELL, "metric"])["value"]
    ours = pd.DataFrame({"seeds": groups.size(), "ours": groups.mean(), "our_sd": groups.std()})
    joined = cells.merge(ours.reset_index(), on=[*CELL, "metric"])
    unit = joined["sd"].fillna(joined["our_sd"])
    standard_error = joined["our_sd"] / np.sqrt(PUBLISHED_SEEDS)
    z = (joined["mean"] - joined["ours"]) / standard_error
    return joined.assign(
        difference=(joined["ours"] - joined["mean"]) / unit,
        z=z.where(joined["seeds"] > PUBLISHED_SEEDS),
    )


def counts(compared: pd.DataFrame) -> pd.DataFrame:
    """Cells within one and two sd, and at |z| ≤ 2, for each table and in all."""
    parts = {**dict(list(compared.groupby("table", sort=False))), "all": compared}
    return pd.DataFrame(
        {
            "table": name,
            "cells": len(part),
            "within_one": int((part["difference"].abs() <= 1).sum()),
            "within_two": int((part["difference"].abs() <= 2).sum()),
            "plausible": int((part["z"].abs() <= 2).sum()),
            "with_z": int(part["z"].notna().sum()),
        }
        for name, part in parts.items()
    )


def counts_grid(counted: pd.DataFrame) -> tables.Grid:
    """The counts, and the share of plausible cells where there are enough seeds to ask."""
    asked = bool(counted["with_z"].max() > 0)
    header = ["Table", "Cells", "Within 1 sd", "Within 2 sd", *["|z| ≤ 2", "Share"] * asked]
    rows = []
    for row in counted.itertuples():
        text = [row.table, str(row.cells), str(row.within_one), str(row.within_two)]
        if asked:
            share = f"{row.plausible / row.with_z:.2f}" if row.with_z else "–"
            text += [f"{row.plausible} of {row.with_z}", share]
        rows.append(text)
    return tables.Grid("published and ours: counts", header, rows, set(), _notes(asked))


def cells_grid(compared: pd.DataFrame) -> tables.Grid:
    """Every published cell beside ours."""
    asked = bool(compared["z"].notna().any())
    header = ["Table", "Dataset", "Regime", "Loss", "Metric", "Published", "Ours", "Difference"]
    rows = []
    for row in compared.itertuples():
        where = [row.table, row.dataset, row.regime, tables.label_of(row.loss)]
        values = [_mean_sd(row.mean, row.sd), _mean_sd(row.ours, row.our_sd)]
        far = ["–" if np.isnan(row.difference) else f"{row.difference:+.2f}"]
        z = [f"{row.z:+.2f}" if np.isfinite(row.z) else "–"] * asked
        rows.append([*where, row.metric.replace("_", " "), *values, *far, *z])
    header += ["z"] * asked
    return tables.Grid("published and ours: every cell", header, rows, set(), _notes(asked))


def _notes(asked: bool) -> list[str]:
    z = (
        "z: (published − our mean)/(our sd/√5), how plausible the published mean of five seeds is "
        "as a draw from our protocol; published values are rounded to three decimals"
    )
    return [UNITS, FITTED, *[z] * asked]


def _mean_sd(mean: float, sd: float) -> str:
    return f"{mean:.3f}" if np.isnan(sd) else f"{mean:.3f} ± {sd:.3f}"


def _runs(records: Path, command: cli.Command) -> tuple[pd.DataFrame, Spent]:
    """All runs of the published tables, those that are missing trained first."""
    needed = [(name, "noise", tuple(catalogue.GENERAL)) for name in NOISE_DATASETS]
    needed.append((longtail.DATASET, "longtail", tuple(catalogue.LOSSES)))
    frames, spent = [], Spent()
    for dataset, folder, losses in needed:
        cells = [Cell(dataset, name, seed) for name in REGIMES[dataset] for seed in command.seeds]
        store, more = command.train(records / folder, cells, losses)
        frames.append(tables.select(store.runs(), cells, losses))
        spent += more
    return pd.concat(frames, ignore_index=True), spent


if __name__ == "__main__":
    cli.start(main, "experiments.comparison")
