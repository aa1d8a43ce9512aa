"""A job: the cells of one dataset that have no record yet, trained and written crew by crew."""

import time
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.cells import Cell, network_for, prepare
from experiments.protocol import Training
from experiments.records import Store
from experiments.scoring import records_of
from pgeom.losses import catalogue
from pgeom.training.trainer import Setup, compile_programs, sizes_of, train


class Spent(NamedTuple):
    """Seconds, apart."""

    compiling: float
    training: float
    runs: int


def run(
    store: Store,
    cells: list[Cell],
    losses: tuple[str, ...],
    training: Training,
    devices: int,
    console: Console,
) -> Spent:
    """Train what is missing among the cells of one dataset, in one compiled program."""
    missing = store.missing(cells, losses)
    if not missing:
        return Spent(0.0, 0.0, 0)
    prepared = [prepare(cell, training) for cell in missing]
    network = network_for(missing[0].dataset)
    builders = tuple(catalogue.LOSSES[loss] for loss in losses)
    setup = Setup(network, builders, training.batch_size, devices)
    with console.status("compiling the epoch program"):
        programs = compile_programs(setup, sizes_of(prepared[0].training))
    console.print(f"compiled in {programs.compile_seconds:.1f} s", style="dim")

    begun = time.perf_counter()
    with _progress(console) as bar:
        total = len(prepared) * len(losses)
        task = bar.add_task("training", total=1.0, finished=0, runs=total)

        def advance(now):
            bar.update(task, completed=now.share, finished=now.finished_runs)

        waiting = iter(prepared)
        tasks = [one.training for one in prepared]
        for crew in train(programs, tasks, training.epochs, advance):
            for trained in crew:
                one = next(waiting)
                store.add(one.cell, *records_of(one, losses, trained))
    return Spent(programs.compile_seconds, time.perf_counter() - begun, total)


def _progress(console: Console) -> Progress:
    counts = TextColumn("{task.fields[finished]}/{task.fields[runs]} runs stopped")
    columns = (TextColumn("{task.description}"), BarColumn(), counts)
    return Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
