"""A job: the cells of one dataset that have no record yet, trained and written crew by crew."""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.cells import Cell, PreparedCell, network_for, prepare
from experiments.protocol import Training
from experiments.records import Store
from experiments.scoring import records_of
from pgeom.losses.catalogue import Builder
from pgeom.training.trainer import Setup, Trained, compile_programs, sizes_of, train

Measure = Callable[[PreparedCell, Trained], Mapping[str, np.ndarray]]
"""An experiment's own fields, a value for each of a cell's runs: `{field: values[L]}`."""


class Spent(NamedTuple):
    """Seconds, apart, and what they were spent on."""

    compiling: float = 0.0
    training: float = 0.0
    runs: int = 0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(*(a + b for a, b in zip(self, other, strict=True)))


def run(
    store: Store,
    cells: list[Cell],
    losses: Mapping[str, Builder],
    training: Training,
    devices: int,
    console: Console,
    measure: Measure = lambda prepared, trained: {},
) -> Spent:
    """Train what is missing among the cells of one dataset, in one compiled program."""
    missing = store.missing(cells, tuple(losses))
    if not missing:
        return Spent()
    begun = time.perf_counter()
    prepared = [prepare(cell, training) for cell in missing]
    network = network_for(missing[0].dataset)
    setup = Setup(network, tuple(losses.values()), training.batch_size, devices)
    with console.status("compiling the epoch program"):
        programs = compile_programs(setup, sizes_of(prepared[0].training))
    compiled = time.perf_counter()

    with _progress(console) as bar:
        total = len(prepared) * len(losses)
        name = missing[0].dataset
        task = bar.add_task(f"training {name}", total=1.0, finished=0, runs=total)

        def advance(now):
            bar.update(task, completed=now.share, finished=now.finished_runs)

        waiting = iter(prepared)
        tasks = [one.training for one in prepared]
        for crew in train(programs, tasks, training.epochs, advance):
            for trained in crew:
                one = next(waiting)
                own = measure(one, trained)
                store.add(one.cell, *records_of(one, tuple(losses), trained, own))
    return Spent(compiled - begun, time.perf_counter() - compiled, total)


def _progress(console: Console) -> Progress:
    counts = TextColumn("{task.fields[finished]}/{task.fields[runs]} runs stopped")
    columns = (TextColumn("{task.description}"), BarColumn(), counts)
    return Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
