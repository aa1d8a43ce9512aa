"""A job: the cells of one dataset that have no record yet, trained and written crew by crew."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
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
from pgeom.training.crew import Setup, Sizes, member_bytes, sizes_of
from pgeom.training.trainer import Programs, Trained, compile_programs, train

GIB = 2**30

Measure = Callable[[PreparedCell, Trained], Mapping[str, np.ndarray]]
"""An experiment's own fields, a value for each of a cell's runs: `{field: values[L]}`."""


def nothing(prepared: PreparedCell, trained: Trained) -> dict:
    """No fields but those of every record."""
    return {}


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
    measure: Measure = nothing,
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

    def keep(crew, results):
        for one, trained in zip(crew, results, strict=True):
            own = measure(one, trained)
            store.add(one.cell, *records_of(one, tuple(losses), trained, own))

    # One crew is prepared and one written while another trains: the devices do not wait for the
    # host, and a job of any size takes the memory of three crews.
    with _progress(machine.console) as bar, ThreadPoolExecutor(1) as aside:
        task = bar.add_task(f"training {missing[0].dataset}", total=1.0, finished=0, runs=total)

        def advance(done, epoch, stopped):
            share = (done + len(stopped) * epoch / training.epochs) / len(missing)
            finished = done * len(losses) + int(np.sum(stopped))
            bar.update(task, completed=share, finished=finished)

        keeping = None
        for crew, results in _in_turn(programs, missing, training, aside, advance):
            if keeping is not None:
                keeping.result()
            if machine.leads:
                keeping = aside.submit(keep, crew, results)
        if keeping is not None:
            keeping.result()
        bar.update(task, completed=1.0, finished=total)
    return Spent(compiled - begun, time.perf_counter() - compiled, total)


def _in_turn(programs: Programs, cells, training: Training, aside, advance):
    """Train crew after crew, the next one being prepared aside; yield each with its results."""
    size = programs.setup.crew
    crews = [cells[first : first + size] for first in range(0, len(cells), size)]

    def ready(number):
        return [prepare(cell, training) for cell in crews[number]]

    upcoming = aside.submit(ready, 0)
    for number in range(len(crews)):
        crew = upcoming.result()
        if number + 1 < len(crews):
            upcoming = aside.submit(ready, number + 1)
        tasks, told = [one.training for one in crew], partial(advance, number * size)
        yield crew, train(programs, tasks, training.epochs, told)


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
