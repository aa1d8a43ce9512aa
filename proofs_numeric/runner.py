"""Which claims to check for which numbers of classes, and running them in parallel.

>>> for job in plan_jobs(("regret", "margin"), (3, 100)):
...     print(job.claim, job.K)
regret 3
margin 3
margin 100
"""

import gc
import os
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress

from experiments.shell.errors import UsageError
from experiments.shell.names import choose_all
from experiments.shell.processes import worker_pool
from pgeom.deferred import Deferred
from proofs_numeric.check import Check

CLASSES = (2, 3, 10, 100)
MANY = 32  # classes, beyond which only the cheap claims are checked
MOST = 1000  # classes, for which a check takes more than a gigabyte
WORKERS = min(4, os.cpu_count() or 1)


class Claim(NamedTuple):
    """How a claim is checked.

    Attributes:
      checks: `checks(K)`, all of the claim for K classes.
      check_capm: the part of it that is about the CAPM matrices of the experiments, if there is
        one; by default it is also checked for the classes of every dataset.
      cheap: whether it is checked for more than `MANY` classes.
    """

    checks: Callable[..., list[Check]]
    check_capm: Callable[..., list[Check]] | None = None
    cheap: bool = False


def _claim(name: str, *, capm: bool = False, cheap: bool = False) -> Claim:
    """The claim in the module of that name, which is imported when it is checked."""
    module = Deferred(f"proofs_numeric.{name}")
    return Claim(module.checks, module.check_capm if capm else None, cheap)


CLAIMS = {
    "regret": _claim("regret", capm=True),
    "curvature": _claim("curvature", capm=True),
    "loss_range": _claim("loss_range", capm=True),
    "gradients": _claim("gradients", capm=True),
    "hessian_lipschitz": _claim("hessian_lipschitz"),
    "margin": _claim("margin", cheap=True),
    "margin_steps": _claim("margin_steps"),
    "displacement": _claim("displacement"),
    "improper": _claim("improper", cheap=True),
    "graph_weights": _claim("graph_weights"),
    "contamination": _claim("contamination", cheap=True),
    "numerics": _claim("numerics"),
    "canonical_links": _claim("canonical_links"),
}


class Job(NamedTuple):
    """One claim, or the CAPM part of it, to be checked for K classes."""

    claim: str
    K: int
    checks: Callable[..., list[Check]]


def plan_jobs(only: tuple[str, ...], classes: tuple[int, ...]) -> list[Job]:
    """The jobs of a command, claim by claim, for more and more classes.

    Args:
      only: names of claims, or none for all.
      classes: numbers of classes, or none for `CLASSES` and those of the datasets.
    """
    names = choose_all("claim", only, CLAIMS)
    check_classes(classes)
    jobs = [
        Job(name, K, CLAIMS[name].checks)
        for name in names
        for K in dict.fromkeys(classes or CLASSES)
        if K <= MANY or CLAIMS[name].cheap
    ]
    if not classes:
        jobs += _plan_capm(names)
    if not jobs:
        cheap = [name for name, claim in CLAIMS.items() if claim.cheap]
        raise UsageError(
            f"--classes: more than {MANY} are checked for {', '.join(cheap)} only, "
            f"got {', '.join(map(str, classes))} for {', '.join(names)}"
        )
    return sorted(jobs, key=lambda job: (names.index(job.claim), job.K))


def _plan_capm(names: tuple[str, ...]) -> list[Job]:
    """The CAPM parts of claims, for the datasets whose number of classes is not in `CLASSES`."""
    from proofs_numeric import experiment_metrics

    others = set(experiment_metrics.dataset_classes().values()) - set(CLASSES)
    return [
        Job(name, K, check_capm)
        for name in names
        if (check_capm := CLAIMS[name].check_capm) is not None
        for K in sorted(others)
    ]


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


def run(jobs: list[Job], console: Console) -> dict[str, list[Check]]:
    """The checks of every job, by claim, with progress on the console."""
    results = {}
    disable = not console.is_terminal
    with Progress(console=console, transient=True, disable=disable) as progress:
        bar = progress.add_task("compiling", total=len(jobs))
        for job, checks in _complete(jobs):
            results[job] = checks
            progress.update(bar, advance=1, description=f"{job.claim}, K = {job.K}")
    grouped: dict[str, list[Check]] = {}
    for job in jobs:
        grouped.setdefault(job.claim, []).extend(results[job])
    return grouped


def _complete(jobs: list[Job]) -> Iterator[tuple[Job, list[Check]]]:
    """Each job and its checks, as they are completed by this process and one per other core.

    Processes, because two threads that compile at the same time deadlock.
    """
    order = sorted(jobs, key=lambda job: -job.K)  # the largest K first: those take longest
    if len(jobs) == 1 or WORKERS == 1:
        yield from ((job, job.checks(job.K)) for job in order)
        return
    with worker_pool(WORKERS - 1, configure) as pool:
        futures = {pool.submit(job.checks, job.K): job for job in order}
        for future, job in reversed(futures.items()):
            if future.cancel():  # no other process has begun it
                yield job, job.checks(job.K)
        for future in as_completed(future for future in futures if not future.cancelled()):
            yield futures[future], future.result()
