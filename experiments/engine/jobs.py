"""What is missing of a study, trained and written group by group."""

import time
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jax.experimental import multihost_utils
from jaxtyping import Array, Bool, Float
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

from experiments.engine.cells import PreparedCell, cell_stream, prepare
from experiments.engine.devices import describe_device
from experiments.engine.identity import describe, identify
from experiments.engine.measures import Fields
from experiments.engine.scoring import make_records
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


def make_bar(console: Console) -> Progress:
    """A bar on a terminal, and nothing elsewhere: a log has no use for one."""
    counts = TextColumn("{task.fields[finished]} of {task.fields[runs]} runs")
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), counts)
    times, disable = (TimeElapsedColumn(), TimeRemainingColumn()), not console.is_terminal
    return Progress(*columns, *times, console=console, disable=disable)


class Job(NamedTuple):
    """The missing part of a study: its cells, the losses that each needs, and how many devices."""

    study: Study
    store: Store
    cells: list[Cell]
    wanted: list[Bool[np.ndarray, " L"]]
    devices: int = 1

    @property
    def runs(self) -> int:
        return int(np.sum(self.wanted))

    def place_features(self, programs: Programs) -> Float[Array, "N d"]:
        """The features of its dataset, once on each device."""
        return share_features(self.study.dataset.standardised, programs.sharding)

    def prepare(self, first: int, count: int) -> list[PreparedCell]:
        """The data of some of its cells."""
        part = slice(first, first + count)
        pairs = zip(self.cells[part], self.wanted[part], strict=True)
        return [prepare(self.study, cell, wanted) for cell, wanted in pairs]

    def by_size(self) -> list["Job"]:
        """Its parts whose cells have equally many training examples, as a program needs."""
        parts: defaultdict[int, list[int]] = defaultdict(list)
        for row, cell in enumerate(self.cells):
            size = 0  # of those that keep all examples, whatever the seed
            if KINDS[cell.regime.kind].thin is not None:
                size = len(split_rows(self.study.dataset, cell.seed, cell.regime)[0])
            parts[size].append(row)
        return [
            self._replace(
                cells=[self.cells[r] for r in rows], wanted=[self.wanted[r] for r in rows]
            )
            for rows in parts.values()
        ]

    def settings(self, devices: int) -> StaticSettings:
        """What to compile for its cells, if all have equally many examples."""
        study, data = self.study, self.prepare(0, 1)[0].data
        features = study.dataset.standardised
        losses, training = study.losses, study.training
        return static_settings(study.model, losses, training, features, data, devices=devices)

    def write(self, prepared: PreparedCell, trained: Trained, extra_fields: Fields) -> None:
        """Score and record the wanted runs of a trained cell."""
        study, cell = self.study, prepared.cell
        if study.measure is not None:
            seed = int(cell_stream("perturbation", study, cell).integers(2**31))
            measure = partial(study.measure.runs, study.model, study.losses)
            stats = prepared.data.arrays.stats
            measured = measure(trained.parameters, prepared.split, stats, seed)
            extra_fields = {**extra_fields, **measured}
        identity = identify(study)
        records, arrays = make_records(study, identity, prepared, trained, extra_fields)
        device = {"device": describe_device(self.devices)}
        self.store.add(identity.member(cell), [record | device for record in records], arrays)


def find_missing(study: Study, store: Store) -> Job:
    """The runs of a study without a record, decided run by run."""
    identity, seen = identify(study), set(store.records)
    mask = np.zeros((len(study.cells), len(study.losses)), bool)
    for row, cell in enumerate(study.cells):
        for column, key in enumerate(identity.runs(cell)):
            mask[row, column] = key not in seen
            seen.add(key)  # two losses of one study may be the same run
    if jax.process_count() > 1:  # others may not see the disk of the primary process
        mask = np.asarray(multihost_utils.broadcast_one_to_all(mask))
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    losses = tuple(study.losses[column] for column in columns)
    cells = [study.cells[row] for row in rows]
    return Job(replace(study, losses=losses), store, cells, list(mask[rows][:, columns]))


GIB = 2**30


@dataclass(frozen=True)
class Machine:
    """What a job runs on, and where it shows its progress.

    `memory` is how many GiB the cells that a process trains at once may take.
    """

    devices: int
    console: Console
    memory: float | None = None

    @property
    def is_primary(self) -> bool:
        """Whether this process is the one that writes and prints."""
        return jax.process_index() == 0


@dataclass(frozen=True)
class JobStats:
    """Seconds spent compiling and training, and how many runs were trained."""

    compiling: float = 0.0
    training: float = 0.0
    runs: int = 0

    def __add__(self, other: "JobStats") -> "JobStats":
        return JobStats(
            self.compiling + other.compiling,
            self.training + other.training,
            self.runs + other.runs,
        )


def train_missing(study: Study, store: Store, machine: Machine, title: str = "") -> JobStats:
    """Train what is missing of a study, and record it.

    It is one compiled program for all cells with equally many training examples. Of a timed
    study, each loss has a program of its own on one device of the primary process.
    Progress is shown beside `title`.
    """
    job = find_missing(study, store)._replace(devices=machine.devices)
    if not job.runs:
        if machine.is_primary:
            store.describe(describe(study))
        return JobStats()
    if study.timed and not machine.is_primary:
        return JobStats(runs=job.runs)
    parts = job.by_size()
    plans = [plan_programs(part, machine) for part in parts]  # all, before anything is trained
    train_part = _timed if study.timed else partial(_grouped, machine=machine, title=title)
    stats = JobStats()
    for part, plan in zip(parts, plans, strict=True):
        for settings in plan:
            begun = time.perf_counter()
            with machine.console.status(Text(f"{title}: compiling")):
                programs = compile_programs(settings)
            stats += JobStats(compiling=time.perf_counter() - begun)
            if machine.is_primary:
                store.describe(describe(study))
            stats += train_part(part, programs)
    return stats


def plan_programs(job: Job, machine: Machine) -> list[StaticSettings]:
    """The programs of a job: one, but for a timed study, which has one per loss.

    A device takes one cell at a time on a CPU, and as many as fit on an accelerator.
    """
    study, batched = job.study, jax.default_backend() != "cpu"
    devices = 1 if study.timed else machine.devices
    settings = job.settings(devices)
    if study.timed:
        wanted = np.any(job.wanted, axis=0)
        pairs = zip(study.losses, wanted, strict=True)
        return [replace(settings, losses=(loss,)) for loss, any_cell in pairs if any_cell]
    local = min(devices, jax.local_device_count())
    features, need = (size * local / GIB for size in memory_bounds(settings))
    budget = machine.memory or _device_memory() * local
    if budget < features + need:
        raise UsageError(
            f"--memory must be at least {features + need:.2g} GiB, which the data and one cell "
            f"per device take here, got {budget:g}"
        )
    if not batched:
        return [settings]
    cells = int(min((budget - features) / need, -(-len(job.cells) // devices)))
    return [replace(settings, cells_per_device=cells, batched=True)]


def _grouped(job: Job, programs: Programs, machine: Machine, title: str) -> JobStats:
    """Train group after group.

    One group is prepared and one written while another trains: the devices do not wait for the
    host, and a job of any size takes the memory of three groups.
    """
    begun, size = time.perf_counter(), programs.settings.cells
    features = job.place_features(programs)
    with make_bar(machine.console) as bar, ThreadPoolExecutor(1) as executor:
        task = bar.add_task(title, total=1.0, finished=0, runs=job.runs)
        upcoming = executor.submit(job.prepare, 0, size)
        writing: list[Future] = []
        for first in range(0, len(job.cells), size):
            prepared = upcoming.result()
            upcoming = executor.submit(job.prepare, first + size, size)
            advance = partial(_advance, bar, task, job, first)
            cells = [one.data for one in prepared]
            results = train(programs, features, cells, job.study.training.epochs, advance)
            for done in writing:
                done.result()
            writing = [
                executor.submit(job.write, one, trained, {})
                for one, trained in zip(prepared, results, strict=True)
                if machine.is_primary
            ]
        for done in writing:
            done.result()
        bar.update(task, completed=1.0, finished=job.runs)
    return JobStats(training=time.perf_counter() - begun, runs=job.runs)


def _advance(
    bar: Progress,
    task: TaskID,
    job: Job,
    first: int,
    epoch: int,
    stopped: Bool[np.ndarray, "cells L"],
) -> None:
    """Show how far the group that begins with cell `first` is."""
    wanted = np.stack(job.wanted[first : first + len(stopped)])
    share = (first + len(stopped) * epoch / job.study.training.epochs) / len(job.cells)
    finished = np.sum(job.wanted[:first]) + np.sum(stopped & wanted)
    bar.update(task, completed=share, finished=int(finished))


def _timed(job: Job, programs: Programs) -> JobStats:
    """Train each run by itself, with nothing beside it, and record its seconds."""
    (loss,) = programs.settings.losses
    place, epochs = job.study.losses.index(loss), job.study.training.epochs
    alone = replace(job.study, losses=(loss,))
    cells = [c for c, wanted in zip(job.cells, job.wanted, strict=True) if wanted[place]]
    single = Job(alone, job.store, cells, [np.ones(1, bool)] * len(cells))
    prepared, total = single.prepare(0, len(cells)), 0.0
    features = job.place_features(programs)
    train(programs, features, [prepared[0].data], 1)  # a rehearsal, which warms the program up
    for one in prepared:
        begun = time.perf_counter()
        (trained,) = train(programs, features, [one.data], epochs)
        seconds = time.perf_counter() - begun
        single.write(one, trained, {"seconds": np.array([seconds])})
        total += seconds
    return JobStats(training=total, runs=len(cells))


def _device_memory() -> float:
    """GiB that a device has for us, where it says so."""
    stats = jax.local_devices()[0].memory_stats() or {}
    return 0.8 * stats["bytes_limit"] / GIB if "bytes_limit" in stats else np.inf
