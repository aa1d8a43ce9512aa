"""How long a run takes with each loss: `python -m experiments.runtime`.

Every loss is trained alone, in a program of its own on one device, on the same members. Neither
compiling nor the first epoch, which warms the program up, is part of the time.
"""

import time
from pathlib import Path

from experiments import cli
from experiments.cells import Cell, PreparedCell, network_for, prepare
from experiments.protocol import chosen
from experiments.records import Store
from pgeom.losses import catalogue
from pgeom.training.crew import Setup, sizes_of
from pgeom.training.trainer import compile_programs, train

COLUMNS = {"seconds": "Seconds a run ↓"}


def main(
    losses: tuple[str, ...] = (),
    out: Path = Path("results/runtime"),
    common: cli.Common = cli.DEFAULTS,
) -> None:
    """Time each loss alone on the same members of clean digits, compile apart.

    Args:
        losses: Names such as ce or hpg; all thirteen if none are given.
        out: The folder for records and the table.
        common: Options of every command.
    """
    from experiments import tables

    losses = chosen("loss", losses, tuple(catalogue.GENERAL))
    cli.refuse_distributed(common, "experiments.runtime")
    command = cli.begin(common, out)
    cells = [Cell("digits", "clean", seed) for seed in command.seeds]
    store = time_missing(out, cells, losses, command)
    frame = tables.select(store.runs(), cells, losses)
    grid = tables.performance(frame, "digits, clean: a loss alone", "clean", COLUMNS)
    summary = tables.summary(frame, tuple(COLUMNS))
    tables.publish([grid], summary, out / "tables-runtime.md", command.console, command.json)


def time_missing(out: Path, cells: list[Cell], losses, command: cli.Command) -> Store:
    """Time what has no record yet, a loss after another, and return the store."""
    store = Store(out, command.training.configuration())
    prepared = [prepare(cell, command.training) for cell in store.missing(cells, losses)]
    with command.console.status("timing each loss alone"):
        for loss in losses if prepared else ():
            for one, run in zip(prepared, _timed(loss, prepared, command), strict=True):
                store.add(one.cell, [run], {})
    return store


def _timed(loss: str, prepared: list[PreparedCell], command: cli.Command) -> list[dict]:
    """The records of one loss: seconds to train each member."""
    network = network_for(prepared[0].cell.dataset)
    builders = (catalogue.GENERAL[loss],)
    setup = Setup(network, builders, command.training.batch_size, devices=1)
    programs = compile_programs(setup, sizes_of(prepared[0].training))
    train(programs, [prepared[0].training], 1)
    records = []
    for one in prepared:
        begun = time.perf_counter()
        (trained,) = train(programs, [one.training], command.training.epochs)
        record = {
            **one.cell._asdict(),
            "loss": loss,
            "seconds": round(time.perf_counter() - begun, 4),
            "stopped_epoch": int(trained.stopped_epoch[0]),
            "diverged_epoch": int(trained.diverged_epoch[0]),
        }
        records.append(record)
    return records


if __name__ == "__main__":
    cli.start(main, "experiments.runtime")
