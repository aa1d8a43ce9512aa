"""A job: the cells of one dataset that have no record yet, trained and written crew by crew."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from jax.experimental import multihost_utils
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.cells import Cell, PreparedCell, network_for, prepare
from experiments.protocol import Training, UsageError
from experiments.records import Store
from experiments.scoring import records_of
from pgeom.losses.catalogue import Builder
from pgeom.training.trainer import (
    Setup,
    Sizes,
    Trained,
    compile_programs,
    member_bytes,
    sizes_of,
    train,
)

Measure = Callable[[PreparedCell, Trained], Mapping[str, np.ndarray]]
"""An experiment's own fields, a value for each of a cell's runs: `{field: values[L]}`."""

GIB = 2**30


class Machine(NamedTuple):
    """What a job runs on, and where it shows its progress.

    `memory` is how many GiB the members that a process trains at once may take.
    """

    devices: int
    console: Console
    memory: float | None = None

    @property
    def leads(self) -> bool:
        """Whether this process is the one that writes and talks."""
        return jax.process_index() == 0


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
    machine: Machine,
    measure: Measure = lambda prepared, trained: {},
) -> Spent:
    """Train what is missing among the cells of one dataset, in one compiled program."""
    missing = _agreed(cells, store.missing(cells, tuple(losses)))
    if not missing:
        return Spent()
    begun = time.perf_counter()
    sizes = sizes_of(prepare(missing[0], training).training)
    setup = setup_of(missing, tuple(losses.values()), training, machine, sizes)
    with machine.console.status("compiling the epoch program"):
        programs = compile_programs(setup, sizes)
    compiled = time.perf_counter()

    total = len(missing) * len(losses)
    with _progress(machine.console) as bar:
        task = bar.add_task(f"training {missing[0].dataset}", total=1.0, finished=0, runs=total)
        for first in range(0, len(missing), setup.crew):
            # prepared as they are needed: a job of any size takes the memory of one crew
            crew = [prepare(cell, training) for cell in missing[first : first + setup.crew]]

            def advance(epoch, stopped, first=first):
                share = (first + len(stopped) * epoch / training.epochs) / len(missing)
                finished = first * len(losses) + int(np.sum(stopped))
                bar.update(task, completed=share, finished=finished)

            results = train(programs, [one.training for one in crew], training.epochs, advance)
            for one, trained in zip(crew, results, strict=True):
                if machine.leads:
                    own = measure(one, trained)
                    store.add(one.cell, *records_of(one, tuple(losses), trained, own))
            bar.update(task, completed=(first + len(crew)) / len(missing))
    return Spent(compiled - begun, time.perf_counter() - compiled, total)


def _agreed(cells: list[Cell], missing: list[Cell]) -> list[Cell]:
    """The missing cells as the leading process sees them: the others may not see its disk."""
    if jax.process_count() == 1:
        return missing
    mask = multihost_utils.broadcast_one_to_all(np.array([cell in missing for cell in cells]))
    return [cell for cell, wanted in zip(cells, mask, strict=True) if wanted]


def setup_of(missing, builders, training: Training, machine: Machine, sizes: Sizes) -> Setup:
    """How many members a device takes: one on a CPU, as many as fit on an accelerator."""
    network = network_for(missing[0].dataset)
    together = jax.default_backend() != "cpu"
    setup = Setup(network, builders, training.batch_size, machine.devices, 1, together)
    devices = min(machine.devices, jax.local_device_count())
    need = member_bytes(setup, sizes) * devices / GIB
    budget = machine.memory or _device_memory() * devices
    if budget < need:
        raise UsageError(
            f"--memory must be at least {need:.2g} GiB, what one member a device takes here, "
            f"got {budget:g}"
        )
    if not together:
        return setup
    wanted = -(-len(missing) // machine.devices)
    return replace(setup, members=int(min(budget / need, wanted)))


def _device_memory() -> float:
    """GiB that a device has for us, where it tells."""
    told = jax.local_devices()[0].memory_stats() or {}
    return 0.8 * told["bytes_limit"] / GIB if "bytes_limit" in told else np.inf


def _progress(console: Console) -> Progress:
    counts = TextColumn("{task.fields[finished]}/{task.fields[runs]} runs stopped")
    columns = (TextColumn("{task.description}"), BarColumn(), counts)
    return Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
