"""Seventeen losses on a 30:1 long tail: `python -m experiments.longtail`.

Every loss is trained twice, with the protocol's early stopping and without any, because the
published tie of cross-entropy and the candidates near .16 is an effect of stopping: their
validation NLL is best in the second or third epoch, long before they have learnt anything.
"""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from experiments import cli
from experiments.cells import Cell
from experiments.jobs import Spent
from experiments.protocol import Training, chosen
from experiments.records import Store
from pgeom.losses import catalogue
from pgeom.training import early_stopping

DATASET, REGIME = "long-tail", "long-tail-30"
EARLY = "early stopping"
METRICS = {
    "balanced_accuracy": "Balanced acc. ↑",
    "nll": "NLL ↓",
    "brier": "Brier ↓",
    "ece": "ECE ↓",
}


def main(
    losses: tuple[str, ...] = (),
    out: Path = Path("results/longtail"),
    common: cli.Common = cli.DEFAULTS,
) -> None:
    """Train every loss on a long-tailed sample, with and without early stopping.

    Args:
        losses: Names such as ce or ldam; all seventeen if none are given.
        out: The folder for records, tables and figures.
        common: Options of every command.
    """
    losses = chosen("loss", losses, tuple(catalogue.LOSSES))
    command = cli.begin(common, out)
    cells = [Cell(DATASET, REGIME, seed) for seed in command.seeds]
    stores, spent = train_missing(out, cells, losses, command)
    asked = 2 * len(cells) * len(losses)
    cli.finish(command, spent, asked, out, lambda: report(stores, cells, losses, command))


def train_missing(out: Path, cells, losses, command: cli.Command):
    """Train what has no record yet, in either way; return the store of each, and what it took."""
    spent, stores = Spent(), {}
    for name, training in stoppings(command.training).items():
        stores[name], more = command.train(out, cells, losses, training)
        spent += more
    return stores, spent


def stoppings(training: Training) -> dict[str, Training]:
    """The two ways to stop."""
    never = {
        "minimum_epochs": early_stopping.NEVER.minimum,
        "patience": early_stopping.NEVER.patience,
    }
    return {EARLY: training, "no early stopping": replace(training, **never)}


def report(stores: dict[str, Store], cells, losses, command: cli.Command) -> list[Path]:
    """Print the tables and write them and the figure, all from records."""
    from experiments import figures, tables

    frames = {name: tables.select(store.runs(), cells, losses) for name, store in stores.items()}
    regime = cells[0].regime
    grids = [
        tables.performance(frame, f"{regime}, {name}", regime, METRICS)
        for name, frame in frames.items()
    ]
    grids.append(tables.significance(frames[EARLY], regime, regime))
    folder = stores[EARLY].folder
    page = folder / "tables-longtail.md"
    summary = pd.concat(
        tables.summary(frame, tuple(METRICS)).assign(stopping=name)
        for name, frame in frames.items()
    )
    tables.publish(grids, summary, page, command.console, command.json)
    return [page, *figures.longtail(frames, folder / "longtail")]


if __name__ == "__main__":
    cli.start(main, "experiments.longtail")
