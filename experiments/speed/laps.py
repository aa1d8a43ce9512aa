"""What is measured of the digits job: laps of the contenders in turn, each in its own process."""

from collections.abc import Iterator

import jax
import numpy as np

from experiments.engine.cells import prepare
from experiments.speed.job import Job
from experiments.speed.kernels import SIZES
from experiments.speed.prepare import (
    ALL_REGIMES,
    DATASET,
    LOSSES,
    digits_job,
    digits_model,
    flop,
    make_study,
    products,
)
from experiments.speed.this_machine import describe_machine
from experiments.speed.workshop import (
    BATCHED,
    COMPILED,
    COMPILED_BATCHED,
    CONTENDERS,
    EAGER,
    ONE_LOSS,
    OURS,
    Sizes,
    Workshop,
)

REGIMES = ALL_REGIMES[:3]  # the repeats of a throughput
TRIAL = "torch.compile"
WIDE = 384
GROWTH_REPEATS = 2


def throughput(workshop: Workshop, sizes: Sizes) -> Iterator[dict]:
    """Rows of laps: every contender does one regime after another, in turn with the others.

    First of all torch.compile is tried; where it is slower, its contender does not run.
    """
    jobs = {regime: digits_job((regime,), sizes.seeds, sizes.epochs) for regime in REGIMES}
    trials = list(try_compiling(workshop, jobs[REGIMES[0]]))
    yield from trials
    contenders = [EAGER, BATCHED, OURS]
    for way, contender in (("eager", COMPILED), ("batched", COMPILED_BATCHED)):
        if np.median([row["ratio"] for row in trials if row["regime"].startswith(way)]) > 1:
            contenders.append(contender)
    for regime, job in jobs.items():
        rate = float(workshop.run("experiments.speed.limit", workshop.job_file(job))[0])
        # that of one loss at a time compiles for a minute: once is enough
        once = [ONE_LOSS] if regime == REGIMES[0] else []
        for contender in (one for one in CONTENDERS if one in [*contenders, *once]):
            lap, _ = workshop.lap(contender, job)
            yield {
                "contender": contender,
                "regime": regime,
                "runs_per_second": job.runs / lap.seconds,
                "gflops": useful(job) / lap.seconds,
                "limit": rate,
                "machine": describe_machine(),
                "compiling": lap.compiling,
                "nll": lap.nll,
            }


def try_compiling(workshop: Workshop, job: Job) -> Iterator[dict]:
    """Rows of how many times as fast torch.compile makes the contenders in PyTorch."""
    workshop.say("trying torch.compile")
    try:
        found = workshop.rows("torch_trial", workshop.job_file(job))
    except RuntimeError as error:  # such as where there is no compiler for C++
        found = {"failed": {"ratio": 0.0, "error": str(error).strip().splitlines()[-1]}}
    yield from ({"contender": TRIAL, "regime": way, **row} for way, row in found.items())


def useful(job: Job) -> float:
    """GFLOP of the matrix products of a job, if it is trained to its last epoch."""
    study = make_study(job)
    member = prepare(study, study.cells[0]).data.arrays
    sizes = (len(member.y), len(member.validation_y), job.batch_size)
    return flop(products(digits_model(job.width), *sizes)) * job.runs * job.epochs / 1e9


def end_to_end(workshop: Workshop, sizes: Sizes) -> Iterator[dict]:
    """A row of whole commands, with early stopping: what a user waits for.

    The contenders are given their data ready and draw no figure.
    """
    job = digits_job(ALL_REGIMES, sizes.few, sizes.epochs, stopping=True)
    row = {"seeds": sizes.few, "runs": job.runs, EAGER: workshop.lap(EAGER, job)[1]}
    for way in ("cold", "warm"):
        workshop.say(f"{OURS}: the whole command at {sizes.few} seeds, {way}")
        out = workshop.folder / f"noise-{way}"
        options = ["--dataset", DATASET, "--seeds", sizes.few, "--epochs", sizes.epochs]
        row[way] = workshop.run("experiments.noise", *options, "--out", out, cache="command")[1]
    yield row


def growth(workshop: Workshop, sizes: Sizes) -> Iterator[dict]:
    """Rows of pgeom alone: more seeds, losses, devices, and a wider network.

    In rounds, so that a slow minute of the machine does not fall on one size; the sizes that take
    longer than the usual job are measured once, and a job that several rows share once a round.
    """
    usual, few = digits_job(ALL_REGIMES[:1], sizes.seeds, sizes.epochs), max(1, sizes.seeds // 4)
    counts = {"seeds": (few, sizes.seeds, 5 * sizes.seeds), "losses": (1, 4, len(LOSSES))}
    jobs = [("seeds", count, usual._replace(seeds=count)) for count in counts["seeds"]]
    jobs += [("losses", n, usual._replace(losses=LOSSES[:n])) for n in counts["losses"]]
    available = jax.device_count()
    jobs += [("devices", count, usual, count) for count in range(1, available + 1)]
    widths = (usual.width, WIDE)
    jobs += [("width", width, usual._replace(seeds=few, width=width)) for width in widths]
    for repeat in range(GROWTH_REPEATS):
        laps = {}
        for what, value, job, *devices in jobs:
            if repeat and useful(job) > useful(usual):
                continue
            key = (repr(job), *(devices or [available]))
            if key not in laps:
                laps[key], _ = workshop.lap(OURS, job, *devices)
            lap = laps[key]
            yield {
                "what": what,
                "value": value,
                "seconds_per_run": lap.seconds / job.runs,
                "gflops": useful(job) / lap.seconds,
                "compiling": lap.compiling,
                "peak_gib": lap.peak_bytes / 2**30,
            }


def kernels(workshop: Workshop, sizes: Sizes) -> Iterator[dict]:
    """Rows of the score kernels."""
    workshop.say(f"score kernels at K = {', '.join(str(K) for K, _ in SIZES)}")
    yield from workshop.rows("kernels")


def first(workshop: Workshop, sizes: Sizes) -> Iterator[dict]:
    """Rows of a newcomer's first seconds."""
    workshop.say("first help, import, gradient and diagnosis")
    yield from workshop.rows("first")
