"""A job: the runs of a study that have no record yet, trained and written group by group."""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jax.experimental import multihost_utils
from jaxtyping import Array, Bool, Float
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.text import Text

from experiments.engine.cells import PreparedCell, cell_stream, prepare
from experiments.engine.devices import describe_device
from experiments.engine.identity import describe, identify
from experiments.engine.measures import Fields
from experiments.engine.progress import make_bar
from experiments.engine.records import Store
from experiments.engine.results import member_name
from experiments.engine.scoring import make_records
from experiments.engine.study import Cell, Study
from pgeom.frontend.errors import UsageError
from pgeom.training.memory_bound import feature_bytes, member_bytes
from pgeom.training.placement import Setup, Sizes, share_features, task_sizes
from pgeom.training.trainer import Programs, Trained, compile_programs, train

GIB = 2**30


@dataclass(frozen=True)
class Machine:
    """What a job runs on, and where it shows its progress.

    `memory` is how many GiB the members that a process trains at once may take.
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
        return share_features(self.study.dataset.standardised.features, programs.sharding)

    def prepare(self, first: int, count: int) -> list[PreparedCell]:
        """The data of some of its cells."""
        part = slice(first, first + count)
        pairs = zip(self.cells[part], self.wanted[part], strict=True)
        return [prepare(self.study, cell, wanted) for cell, wanted in pairs]

    def write(self, prepared: PreparedCell, trained: Trained, extra_fields: Fields) -> None:
        """Score and record the wanted runs of a trained cell."""
        study, cell = self.study, prepared.cell
        if study.measure is not None:
            seed = int(cell_stream("perturbation", study, cell).integers(2**31))
            measure = partial(study.measure.runs, study.model, study.losses)
            stats = prepared.task.member.stats
            measured = measure(trained.parameters, prepared.split, stats, seed)
            extra_fields = {**extra_fields, **measured}
        identity = identify(study)
        records, arrays = make_records(study, identity, prepared, trained, extra_fields)
        device = {"device": describe_device(self.devices)}
        name = member_name(study, identity.member(cell), cell)
        self.store.add(name, [record | device for record in records], arrays)


def train_missing(study: Study, store: Store, machine: Machine, title: str = "") -> JobStats:
    """Train what is missing of a study, in one compiled program, and record it.

    Of a timed study, each loss has a program of its own on one device of the primary process.
    Progress is shown beside `title`.
    """
    job = find_missing(study, store)._replace(devices=machine.devices)
    if not job.runs:
        if machine.is_primary:
            store.describe(describe(study))
        return JobStats()
    if study.timed and not machine.is_primary:
        return JobStats(runs=job.runs)
    sizes = task_sizes(study.dataset.standardised.features, job.prepare(0, 1)[0].task)
    setups = plan_setups(job, machine, sizes)
    stats = JobStats()
    for setup in setups:
        begun = time.perf_counter()
        with machine.console.status(Text(f"{title}: compiling")):
            programs = compile_programs(setup, sizes)
        stats += JobStats(compiling=time.perf_counter() - begun)
        if machine.is_primary:
            store.describe(describe(study))
        stats += _timed(job, programs) if study.timed else _grouped(job, programs, machine, title)
    return stats


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


def plan_setups(job: Job, machine: Machine, sizes: Sizes) -> list[Setup]:
    """The programs of a job: one, but for a timed study, which has one per loss.

    A device takes one member at a time on a CPU, and as many as fit on an accelerator.
    """
    study, batched = job.study, jax.default_backend() != "cpu"
    training, devices = study.training, 1 if study.timed else machine.devices
    compiled = (study.model, study.losses, training.batch_size, training.optimiser)
    setup = Setup(*compiled, devices, stop_on=training.stop_on)
    if study.timed:
        return [replace(setup, losses=(loss,)) for loss in study.losses]
    local = min(devices, jax.local_device_count())
    features, need = (part(setup, sizes) * local / GIB for part in (feature_bytes, member_bytes))
    budget = machine.memory or _device_memory() * local
    if budget < features + need:
        raise UsageError(
            f"--memory must be at least {features + need:.2g} GiB, which the data and one member "
            f"per device take here, got {budget:g}"
        )
    if not batched:
        return [setup]
    members = int(min((budget - features) / need, -(-len(job.cells) // devices)))
    return [replace(setup, members_per_device=members, batched=True)]


def _grouped(job: Job, programs: Programs, machine: Machine, title: str) -> JobStats:
    """Train group after group.

    One group is prepared and one written while another trains: the devices do not wait for the
    host, and a job of any size takes the memory of three groups.
    """
    begun, size = time.perf_counter(), programs.setup.group_size
    features = job.place_features(programs)
    with make_bar(machine.console) as bar, ThreadPoolExecutor(1) as executor:
        task = bar.add_task(title, total=1.0, finished=0, runs=job.runs)
        upcoming = executor.submit(job.prepare, 0, size)
        writing: list[Future] = []
        for first in range(0, len(job.cells), size):
            prepared = upcoming.result()
            upcoming = executor.submit(job.prepare, first + size, size)
            advance = partial(_advance, bar, task, job, first)
            tasks = [one.task for one in prepared]
            results = train(programs, features, tasks, job.study.training.epochs, advance)
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
    stopped: Bool[np.ndarray, "tasks L"],
) -> None:
    """Show how far the group that begins with cell `first` is."""
    wanted = np.stack(job.wanted[first : first + len(stopped)])
    share = (first + len(stopped) * epoch / job.study.training.epochs) / len(job.cells)
    finished = np.sum(job.wanted[:first]) + np.sum(stopped & wanted)
    bar.update(task, completed=share, finished=int(finished))


def _timed(job: Job, programs: Programs) -> JobStats:
    """Train each run by itself, with nothing beside it, and record its seconds."""
    (loss,) = programs.setup.losses
    place, epochs = job.study.losses.index(loss), job.study.training.epochs
    alone = replace(job.study, losses=(loss,))
    cells = [c for c, wanted in zip(job.cells, job.wanted, strict=True) if wanted[place]]
    single = Job(alone, job.store, cells, [np.ones(1, bool)] * len(cells))
    prepared, total = single.prepare(0, len(cells)), 0.0
    features = job.place_features(programs)
    train(programs, features, [prepared[0].task], 1)  # a rehearsal, which warms the program up
    for one in prepared:
        begun = time.perf_counter()
        (trained,) = train(programs, features, [one.task], epochs)
        seconds = time.perf_counter() - begun
        single.write(one, trained, {"seconds": np.array([seconds])})
        total += seconds
    return JobStats(training=total, runs=len(cells))


def _device_memory() -> float:
    """GiB that a device has for us, where it says so."""
    stats = jax.local_devices()[0].memory_stats() or {}
    return 0.8 * stats["bytes_limit"] / GIB if "bytes_limit" in stats else np.inf
