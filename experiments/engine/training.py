"""What is missing of a study, trained and recorded group by group.

One compiled program trains all cells with equally many training examples, some cells at a time: one
per device on a CPU, and as many as fit on an accelerator. Of a timed study each loss has a program
of its own, on one device.
"""

import time
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jaxtyping import Bool
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from experiments.engine.cells import PreparedCell, make_records, prepare
from experiments.engine.devices import describe_device
from experiments.engine.identity import describe, identify
from experiments.engine.store import Store
from experiments.engine.study import Cell, Study
from experiments.shell.errors import UsageError
from pgeom.data.regimes import KINDS
from pgeom.data.splits import split_rows
from pgeom.training.program import StaticSettings
from pgeom.training.trainer import (
    Programs,
    Trained,
    compile_programs,
    memory_bounds,
    share_features,
    static_settings,
    train,
)

GIB = 2**30
Missing = dict[Cell, Bool[np.ndarray, " _"]]
"""Cells with a run that has no record, and which of the study's losses those runs have."""


def train_missing(
    study: Study,
    store: Store,
    devices: int,
    console: Console,
    *,
    memory: float | None = None,
    title: str = "",
) -> tuple[int, float, float]:
    """Train what is missing of a study, and record it.

    Args:
      study: to train.
      store: where its records are; of several processes only the first one writes.
      devices: how many to train on.
      console: for progress, which is shown beside `title`.
      memory: GiB that the cells trained at once may take.
      title: of the study.

    Returns:
      How many runs were missing, and the seconds spent compiling and training.
    """
    missing, primary = find_missing(study, store), jax.process_index() == 0
    runs, compiling, training = int(sum(map(np.sum, missing.values()))), 0.0, 0.0
    if study.timed and not primary:
        return runs, compiling, training
    parts = divide(study, missing)
    # the settings of all, before anything is trained: there may be too little memory
    plans = [plan(part, cells, devices, memory) for part, cells in parts]
    if primary:
        store.describe(describe(study))
    for (part, cells), settings in zip(parts, plans, strict=True):
        begun = time.perf_counter()
        with console.status(Text(f"{title}: compiling")):
            programs = compile_programs(settings)
        compiling += time.perf_counter() - begun
        training += _train_part(part, cells, programs, store, console, title)
    return runs, compiling, training


def find_missing(study: Study, store: Store) -> Missing:
    """The runs of a study without a record."""
    identity, seen = identify(study), set(store.records)
    missing = np.zeros((len(study.cells), len(study.losses)), bool)
    for row, cell in enumerate(study.cells):
        for column, key in enumerate(identity.runs(cell)):
            missing[row, column] = key not in seen
            seen.add(key)  # two losses of one study may be the same run
    if jax.process_count() > 1:  # others may not see the disk of the primary process
        missing = np.asarray(multihost_utils.broadcast_one_to_all(missing))
    return {cell: row for cell, row in zip(study.cells, missing, strict=True) if row.any()}


def divide(study: Study, missing: Missing) -> list[tuple[Study, Missing]]:
    """What is missing in parts that one program trains, each with the losses that it needs.

    The cells of a part have equally many training examples; one of a timed study has one loss.
    """
    needed = np.flatnonzero(np.any([*missing.values()], axis=0))
    parts: defaultdict[tuple, Missing] = defaultdict(dict)
    for cell, wanted in missing.items():
        size = 0  # of cells that keep all examples, whatever the seed
        if KINDS[cell.regime.kind].thin is not None:
            size = len(split_rows(study.dataset, cell.seed, cell.regime)[0])
        for columns in ([k] for k in np.flatnonzero(wanted)) if study.timed else [needed]:
            parts[size, *columns][cell] = wanted[columns]
    return [
        (replace(study, losses=tuple(study.losses[k] for k in columns)), cells)
        for (_, *columns), cells in parts.items()
    ]


def plan(study: Study, missing: Missing, devices: int, memory: float | None) -> StaticSettings:
    """What to compile for cells with equally many training examples.

    Raises:
      UsageError: if the data and one cell per device take more than the memory.
    """
    devices = 1 if study.timed else devices
    features, data = study.dataset.standardised, prepare(study, next(iter(missing))).data
    settings = static_settings(
        study.model, study.losses, study.training, features, data, devices=devices
    )
    local = min(devices, jax.local_device_count())
    shared, need = (size * local / GIB for size in memory_bounds(settings))
    budget = memory or _device_memory() * local
    if budget < shared + need:
        raise UsageError(
            f"--memory must be at least {shared + need:.2g} GiB, which the data and one cell "
            f"per device take here, got {budget:g}"
        )
    if jax.default_backend() == "cpu" or study.timed:
        return settings
    cells = int(min((budget - shared) / need, -(-len(missing) // devices)))
    return replace(settings, cells_per_device=cells, batched=True)


def _device_memory() -> float:
    """GiB that a device has for us, where it says so."""
    stats = jax.local_devices()[0].memory_stats() or {}
    return 0.8 * stats["bytes_limit"] / GIB if "bytes_limit" in stats else np.inf


def _train_part(
    study: Study,
    missing: Missing,
    programs: Programs,
    store: Store,
    console: Console,
    title: str,
) -> float:
    """Train the cells of a part group by group, and return how many seconds that took.

    One group is prepared and one written while another trains: the devices do not wait for the
    host, and a job of any size takes the memory of three groups. But nothing happens beside a timed
    run, which follows a rehearsal that warms its program up.
    """
    cells, size, epochs = list(missing), programs.settings.cells, study.training.epochs
    features = share_features(study.dataset.standardised, programs.sharding)
    device = describe_device(programs.settings.devices)

    def prepare_group(first: int) -> list[PreparedCell]:
        return [prepare(study, cell, missing[cell]) for cell in cells[first : first + size]]

    begun, finished = time.perf_counter(), 0
    with make_bar(console) as bar, ThreadPoolExecutor(1) as background:
        task = bar.add_task(title, total=int(sum(map(np.sum, missing.values()))))
        upcoming = background.submit(prepare_group, 0)
        writing: list[Future] = []
        for first in range(0, len(cells), size):
            prepared = upcoming.result()
            upcoming = background.submit(prepare_group, first + size)
            data = [one.data for one in prepared]
            wanted = np.stack([one.wanted for one in data])
            if study.timed:
                wait([upcoming, *writing])
                if first == 0:
                    train(programs, features, data, 1)
            started, advance = time.perf_counter(), partial(_advance, bar, task, finished, wanted)
            results = train(programs, features, data, epochs, advance)
            more: dict[str, Any] = {"device": device}
            if study.timed:
                more["seconds"] = time.perf_counter() - started
            finished += int(np.sum(wanted))
            for done in writing:
                done.result()
            writing = [
                background.submit(_write, study, store, one, trained, more)
                for one, trained in zip(prepared, results, strict=True)
                if jax.process_index() == 0
            ]
        for done in writing:
            done.result()
        bar.update(task, completed=finished)
    return time.perf_counter() - begun


def _write(
    study: Study, store: Store, prepared: PreparedCell, trained: Trained, more: dict[str, Any]
) -> None:
    """Score and record the wanted runs of a trained cell."""
    records, arrays = make_records(study, prepared, trained)
    store.add(identify(study).cell_hash(prepared.cell), [one | more for one in records], arrays)


def _advance(bar: Progress, task: TaskID, finished: int, wanted, epoch: int, stopped) -> None:
    """Show how many runs have finished: those of former groups, and those that have stopped."""
    bar.update(task, completed=finished + int(np.sum(stopped & wanted)))


def make_bar(console: Console) -> Progress:
    """A bar on a terminal, and nothing elsewhere: a log has no use for one."""
    counts = TextColumn("{task.completed} of {task.total} runs")
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), counts)
    times, disable = (TimeElapsedColumn(), TimeRemainingColumn()), not console.is_terminal
    return Progress(*columns, *times, console=console, disable=disable)
