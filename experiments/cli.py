"""What every command shares: its common options, the set-up of JAX, training, and its errors."""

import contextlib
import io
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, NamedTuple

import jax
import tyro
from rich.console import Console

from experiments import jobs
from experiments.cells import Cell
from experiments.protocol import SEEDS, Training, UsageError, parse_seeds
from experiments.records import Store
from pgeom.losses import catalogue


@dataclass(frozen=True)
class Options:
    """Options of every command."""

    seeds: tuple[str, ...] = (str(len(SEEDS)),)
    """How many, as in 5 for the seeds 0 to 4, or a list, as in 0 3 7."""
    epochs: int = Training.epochs
    """The most epochs that a run is trained."""
    devices: int | None = None
    """How many devices to train on; all there are if not given."""
    memory: float | None = None
    """GiB that the members trained at once may take; a larger job is cut in pieces."""
    distributed: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Be one of the processes of a job that Slurm, Open MPI, Kubernetes or Cloud TPU started."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print the aggregated table as JSON, and nothing else, on stdout."""


Common = Annotated[Options, tyro.conf.OmitArgPrefixes]
DEFAULTS = Options()


class Command(NamedTuple):
    """The common options of a command that has begun, checked."""

    seeds: tuple[int, ...]
    training: Training
    machine: jobs.Machine
    json: bool
    begun: float

    @property
    def console(self) -> Console:
        return self.machine.console

    def train(
        self,
        out: Path,
        cells: list[Cell],
        losses: tuple[str, ...],
        training: Training | None = None,
        measure: jobs.Measure = jobs.nothing,
    ) -> tuple[Store, jobs.Spent]:
        """Train what has no record in `out` yet; return the records, and what it took.

        Args:
          out: the folder of the records.
          cells: all of one dataset.
          losses: names of the catalogue.
          training: the protocol's, unless given.
          measure: the experiment's own fields.
        """
        training = training or self.training
        store = Store(out, training.configuration())
        builders = {loss: catalogue.LOSSES[loss] for loss in losses}
        return store, jobs.run(store, cells, builders, training, self.machine, measure)


def start(main: Callable, name: str) -> None:
    """Run a typed `main` as the command line `python -m name`.

    A `UsageError` is one line on stderr and exit code 2; an interruption says what was kept.
    """
    try:
        _parsed(main, name)()
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted: finished cells are kept, the same command goes on", file=sys.stderr)
        sys.exit(130)


def _parsed(main: Callable, name: str) -> Callable:
    """`main` with the arguments of the command line; tyro's box about bad ones as one line."""

    @wraps(main)
    def with_arguments(*arguments, **options):
        return partial(main, *arguments, **options)

    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(with_arguments, prog=f"python -m {name}")
    except SystemExit as stop:
        if stop.code != 2:
            raise
        raise UsageError(" ".join(re.sub(r"[╭╮╰╯│─]+", " ", said.getvalue()).split())) from None


def begin(options: Options, out: Path) -> Command:
    """Check the common options and set up JAX; nothing is written yet."""
    begun = time.perf_counter()
    seeds = parse_seeds(options.seeds)
    if options.epochs < 1:
        raise UsageError(f"--epochs must be at least 1, got {options.epochs}")
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out must be a folder, but {str(out)!r} is a file")
    if options.memory is not None and not options.memory > 0:
        raise UsageError(f"--memory must be positive, got {options.memory:g}")
    if options.distributed:
        join_processes(options.devices)
    devices = prepare_devices(options.devices)
    # where stdout is for JSON, talk on stderr; and of several processes only one talks
    console = Console(stderr=options.json, quiet=jax.process_index() > 0)
    machine = jobs.Machine(devices, console, options.memory)
    return Command(seeds, Training(options.epochs), machine, options.json, begun)


def finish(
    command: Command, spent: jobs.Spent, asked: int, out: Path, report: Callable[[], Sequence[Path]]
) -> None:
    """Write the report, in the process that leads, and say where everything is."""
    if not command.machine.leads:
        return
    names = ", ".join(path.name for path in report())
    command.console.print(
        f"{spent.runs} runs trained, {asked - spent.runs} found; compile {spent.compiling:.1f} s, "
        f"training {spent.training:.1f} s, all in all {time.perf_counter() - command.begun:.1f} s; "
        f"written to {out}: records.jsonl, manifest.json, logits, {names}",
        soft_wrap=True,
        highlight=False,
    )


def join_processes(devices: int | None) -> None:
    """Become one of the processes that a launcher started, as JAX finds them."""
    if devices is not None:
        raise UsageError("--distributed trains on all devices of all processes: give no --devices")
    try:
        jax.distributed.initialize()
    except (RuntimeError, ValueError) as error:
        told = str(error).splitlines()[0]
        raise UsageError(
            f"--distributed needs a launcher that JAX knows, such as srun: {told}"
        ) from None
    # the library under JAX greets its peers on stdout, which is for tables and JSON alone
    ours = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = os.fdopen(ours, "w")


def refuse_distributed(options: Options, name: str) -> None:
    """For commands that read records between training."""
    if options.distributed:
        raise UsageError(
            f"{name} runs as one process: train with --distributed in the experiments' own "
            "commands, and it finds their records"
        )


def prepare_devices(devices: int | None) -> int:
    """Set up JAX for training on so many devices, by default all there are.

    On a CPU every core becomes a device, each running single-threaded: members in parallel beat
    threads inside a small matrix product.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pgeom"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if devices is not None and devices < 1:
        raise UsageError(f"--devices must be at least 1, got {devices}")
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    jax.config.update("jax_num_cpu_devices", cores)
    there = jax.device_count()
    if devices is not None and devices > there:
        raise UsageError(f"--devices must be at most {there}, as many as there are, got {devices}")
    return devices or there
