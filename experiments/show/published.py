"""The published tables, cell by cell, and how far ours are from them.

>>> cells = load_published()
>>> len(cells), sorted(set(cells["table"]))
(132, ['calibration', 'candidate-accuracy', 'digits-noise', 'longtail'])
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.show.tables import Grid, plus_minus
from pgeom.losses.catalogue import LOSSES
from pgeom.messages import count

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


def load_published() -> pd.DataFrame:
    """The published cells: table, dataset, regime, loss, metric, mean, sd (NaN where not given)."""
    return pd.DataFrame(json.loads(PUBLISHED.read_text("utf-8"))).astype({"sd": float})


def compare(cells: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Each published cell that was run, with our mean and sd, and how far apart they are.

    difference = (ours − published)/sd        z = (published − ours)/(our sd/√5)

    Args:
      cells: as `load_published` gives them.
      runs: one row per run, with dataset, regime, loss and every metric.

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


def count_cells(compared: pd.DataFrame) -> pd.DataFrame:
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


def expected_share(sds: float, seeds: int) -> float:
    """The share of cells that agree within so many published sd, if both follow one protocol.

    The published mean and sd are of five seeds, ours of `seeds`: their difference over the
    published sd is √(1/5 + 1/seeds) times a Student variable of four degrees of freedom.

    >>> round(132 * expected_share(1, 5)), round(132 * expected_share(2, 5))
    (107, 127)
    """
    t = sds / np.sqrt(1 / PUBLISHED_SEEDS + 1 / seeds)
    u = t**2 / (4 + t**2)
    return float(np.sqrt(u) * (3 - u) / 2)  # of four degrees: the distribution is elementary


def yardstick(cells: int, seeds: int) -> str:
    """How many of the cells two independent draws of one protocol would agree in."""
    one, two = (round(cells * expected_share(sds, seeds)) for sds in (1, 2))
    return (
        f"independent draws of one protocol, of {PUBLISHED_SEEDS} and of {count(seeds, 'seed')}, "
        f"agree within one sd in about {one} of {cells} cells and within two in about {two}"
    )


def counts_grid(compared: pd.DataFrame) -> Grid:
    """The counts, and the share of plausible cells where there are enough seeds to ask."""
    counted = count_cells(compared)
    enough_seeds = bool(counted["with_z"].max() > 0)
    header = ["Table", "Cells", "Within 1 sd", "Within 2 sd", *["|z| ≤ 2", "Share"] * enough_seeds]
    rows = []
    for row in counted.to_dict("records"):
        plausible, with_z = row["plausible"], row["with_z"]
        text = [row["table"], str(row["cells"]), str(row["within_one"]), str(row["within_two"])]
        if enough_seeds:
            share = f"{plausible / with_z:.2f}" if with_z else "–"
            text += [f"{plausible} of {with_z}", share]
        rows.append(text)
    expected = [] if compared.empty else [yardstick(len(compared), int(compared["seeds"].max()))]
    notes = [*expected, *_notes(enough_seeds)]
    return Grid("published and ours: counts", header, rows, set(), notes)


def cells_grid(compared: pd.DataFrame) -> Grid:
    """Every published cell beside ours."""
    enough_seeds = bool(compared["z"].notna().any())
    header = ["Table", "Dataset", "Regime", "Loss", "Metric", "Published", "Ours", "Difference"]
    rows = []
    for row in compared.to_dict("records"):
        where = [row["table"], row["dataset"], row["regime"], LOSSES[row["loss"]].label]
        values = [plus_minus(row["mean"], row["sd"]), plus_minus(row["ours"], row["our_sd"])]
        far = ["–" if np.isnan(row["difference"]) else f"{row['difference']:+.2f}"]
        z = [f"{row['z']:+.2f}" if np.isfinite(row["z"]) else "–"] * enough_seeds
        rows.append([*where, row["metric"].replace("_", " "), *values, *far, *z])
    header += ["z"] * enough_seeds
    return Grid("published and ours: every cell", header, rows, set(), _notes(enough_seeds))


def _notes(enough_seeds: bool) -> list[str]:
    z = (
        "z: (published − our mean)/(our sd/√5), how plausible the published mean of five seeds is "
        "as a draw from our protocol; published values are rounded to three decimals"
    )
    return [UNITS, FITTED, *[z] * enough_seeds]
