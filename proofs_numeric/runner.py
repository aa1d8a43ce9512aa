"""Which claims to check for which numbers of classes, and running them side by side.

>>> jobs(("regret", "margin"), (3, 100))
[('regret', 3), ('margin', 3), ('margin', 100)]
"""

import difflib
import gc
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import jax
from rich.console import Console
from rich.progress import Progress

from pgeom.frontend.command_line import UsageError
from proofs_numeric import (
    contamination,
    curvature,
    displacement,
    gradients,
    hessian_lipschitz,
    improper,
    loss_range,
    margin,
    numerics,
    regret,
)
from proofs_numeric.check import Check

CLAIMS = {
    "regret": regret.checks,
    "curvature": curvature.checks,
    "loss_range": loss_range.checks,
    "gradients": gradients.checks,
    "hessian_lipschitz": hessian_lipschitz.checks,
    "margin": margin.checks,
    "displacement": displacement.checks,
    "improper": improper.checks,
    "contamination": contamination.checks,
    "numerics": numerics.checks,
}
CAPM = {  # the part of a claim that is about the experiments' CAPM
    "regret": regret.capm_checks,
    "curvature": curvature.capm_checks,
    "loss_range": loss_range.capm_checks,
    "gradients": gradients.capm_checks,
}
CLASSES = (2, 3, 10, 100)
CAPM_CLASSES = 6  # those of the one dataset that the others do not cover
CHEAP = ("margin", "improper", "contamination")
MANY = 32  # classes, beyond which only the cheap claims are checked
WORKERS = min(4, os.cpu_count() or 1)


def jobs(only: tuple[str, ...], classes: tuple[int, ...]) -> list[tuple[str, int]]:
    """The pairs (claim, K) to check.

    Args:
      only: names of claims, or none for all.
      classes: numbers of classes, or none for the default.
    """
    for name in only:
        if name not in CLAIMS:
            nearest = difflib.get_close_matches(name, CLAIMS, n=1, cutoff=0.0)[0]
            raise UsageError(
                f"--only: unknown check {name!r}; nearest is {nearest!r}, known are "
                + ", ".join(CLAIMS)
            )
    check_classes(classes)
    names = dict.fromkeys(only) if only else CLAIMS
    found = [
        (name, K)
        for K in dict.fromkeys(classes or CLASSES)
        for name in names
        if K <= MANY or name in CHEAP
    ]
    if not classes:
        found += [(name, CAPM_CLASSES) for name in names if name in CAPM]
    if not found:
        raise UsageError(
            f"--classes: more than {MANY} are checked for {', '.join(CHEAP)} only, "
            f"got {', '.join(map(str, classes))} for {', '.join(names)}"
        )
    return sorted(found, key=lambda job: (list(CLAIMS).index(job[0]), job[1]))


def check_classes(classes: tuple[int, ...]) -> None:
    """Refuse fewer than two classes."""
    for K in classes:
        if K < 2:
            raise UsageError(f"--classes: the number of classes must be at least 2, got {K}")


def configure() -> None:
    """float64; little optimisation, because compilation takes most of the time; a cache of it.

    Tracing makes many objects and leaves little garbage, so that it is looked for less often.
    """
    gc.set_threshold(100_000)
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_disable_most_optimizations", True)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pgeom" / "jax"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def run(
    jobs: list[tuple[str, int]], console: Console, *, capm_only: bool = False
) -> dict[str, list[Check]]:
    """Every job's checks, by claim, with progress on the console.

    Args:
      jobs: pairs (claim, K).
      console: where progress is shown.
      capm_only: whether K = 6 stands for CAPM alone, as it does by default.
    """
    tasks = {
        (name, K): (CAPM if capm_only and K == CAPM_CLASSES else CLAIMS)[name] for name, K in jobs
    }
    results = {}
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("compiling", total=len(jobs))
        for job, checks in _completed(tasks):
            results[job] = checks
            progress.update(bar, advance=1, description=f"{job[0]}, K = {job[1]}")
    grouped: dict[str, list[Check]] = {}
    for job in jobs:
        grouped.setdefault(job[0], []).extend(results[job])
    return grouped


def _completed(tasks: dict[tuple[str, int], Callable]):
    """`(job, its checks)` as they come, from this process and one more for each other core.

    Processes, because two threads that compile at the same time wait for each other for ever.
    """
    order = sorted(tasks, key=lambda job: -job[1])  # the largest K first: those take longest
    if len(tasks) == 1 or WORKERS == 1:
        yield from ((job, tasks[job](job[1])) for job in order)
        return
    with ProcessPoolExecutor(WORKERS - 1, get_context("spawn"), initializer=configure) as pool:
        futures = {pool.submit(tasks[job], job[1]): job for job in order}
        for future, job in reversed(futures.items()):
            if future.cancel():  # no other process has begun it
                yield job, tasks[job](job[1])
        for future in as_completed(future for future in futures if not future.cancelled()):
            yield futures[future], future.result()
