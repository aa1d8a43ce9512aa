"""Which claims to check for which numbers of classes, and checking them in parallel.

>>> for job in plan_jobs(("regret", "margin"), (3, 100)):
...     print(job.name, job.K)
regret 3
margin 3
margin 100
"""

import gc
import os
from collections.abc import Iterator
from concurrent.futures import as_completed
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console
from rich.progress import Progress

from experiments.shell.errors import UsageError
from experiments.shell.names import choose_all
from experiments.shell.processes import worker_pool

if TYPE_CHECKING:
    from proofs_numeric.claims import Check

# modules with `FAMILIES` of claims, which are imported where they are checked
NAMES = (
    "regret",
    "curvature",
    "loss_range",
    "gradients",
    "hessian_lipschitz",
    "margin",
    "displacement",
    "improper",
    "graph_weights",
    "contamination",
    "numerics",
    "canonical_links",
)
CHEAP = ("margin", "improper", "contamination")  # also checked for more than MANY classes
# also checked, by default, for the classes of every dataset, where they are about its matrices
DATASETS = ("regret", "curvature", "loss_range", "gradients")
CLASSES = (2, 3, 10, 100)
MANY = 32
MOST = 1000  # classes, for which a check takes more than a gigabyte
WORKERS = min(4, os.cpu_count() or 1)


class Job(NamedTuple):
    """The claims of one module for K classes, or those that are about the datasets' matrices."""

    name: str
    K: int
    datasets: bool = False

    def checks(self) -> list["Check"]:
        families = import_module(f"proofs_numeric.{self.name}").FAMILIES
        chosen = [one for one in families if one.datasets or not self.datasets]
        return [check for family in chosen for check in family.checks(self.K)]


def plan_jobs(only: tuple[str, ...], classes: tuple[int, ...]) -> list[Job]:
    """The jobs of a command, claim by claim, for more and more classes.

    Args:
      only: names of claims, or none for all.
      classes: numbers of classes, or none for `CLASSES` and those of the datasets.
    """
    names = choose_all("claim", only, NAMES)
    check_classes(classes)
    jobs = {Job(x, K) for x in names for K in classes or CLASSES if K <= MANY or x in CHEAP}
    if not classes:
        from proofs_numeric.configurations import dataset_classes

        others = {*dataset_classes().values()} - {*CLASSES}
        jobs |= {Job(name, K, datasets=True) for name in names for K in others if name in DATASETS}
    if not jobs:
        raise UsageError(
            f"--classes: more than {MANY} are checked for {', '.join(CHEAP)} only, "
            f"got {', '.join(map(str, classes))} for {', '.join(names)}"
        )
    return sorted(jobs, key=lambda job: (names.index(job.name), job.K))


def check_classes(classes: tuple[int, ...]) -> None:
    """Refuse fewer than two classes, and so many that a check would take gigabytes."""
    for K in classes:
        if K < 2:
            raise UsageError(f"--classes: the number of classes must be at least 2, got {K}")
        if K > MOST:
            raise UsageError(f"--classes: the number of classes must be at most {MOST}, got {K}")


def configure() -> None:
    """Set up JAX: float64, little optimisation because compilation dominates, and a cache of it.

    Tracing makes many objects and leaves little garbage, so that it is collected less often.
    """
    import jax

    from experiments.shell.compilation_cache import use_cache

    gc.set_threshold(100_000)
    jax.config.update("jax_enable_x64", True)
    use_cache(min_seconds=0.2)
    jax.config.update("jax_disable_most_optimizations", True)


def run(jobs: list[Job], console: Console) -> dict[str, list["Check"]]:
    """The checks of every job, by claim, with progress on the console."""
    results = {}
    disable = not console.is_terminal
    with Progress(console=console, transient=True, disable=disable) as progress:
        bar = progress.add_task("compiling", total=len(jobs))
        for job, checks in _complete(jobs):
            results[job] = checks
            progress.update(bar, advance=1, description=f"{job.name}, K = {job.K}")
    grouped: dict[str, list[Check]] = {}
    for job in jobs:
        grouped.setdefault(job.name, []).extend(results[job])
    return grouped


def _complete(jobs: list[Job]) -> Iterator[tuple[Job, list["Check"]]]:
    """Each job and its checks, as they are completed by this process and one per other core.

    Processes, because two threads that compile at the same time deadlock.
    """
    order = sorted(jobs, key=lambda job: -job.K)  # the largest K first: those take longest
    if len(jobs) == 1 or WORKERS == 1:
        yield from ((job, job.checks()) for job in order)
        return
    with worker_pool(WORKERS - 1, configure) as pool:
        futures = {pool.submit(job.checks): job for job in order}
        for future, job in reversed(futures.items()):
            if future.cancel():  # no other process has begun it
                yield job, job.checks()
        for future in as_completed(future for future in futures if not future.cancelled()):
            yield futures[future], future.result()
