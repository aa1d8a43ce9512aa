"""What is measured: laps of the contenders in turn, each in a process of its own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np

from experiments.engine.cells import prepare
from experiments.speed.job import Job, Lap
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
    write_job,
)

OURS = "pgeom"
EAGER, BATCHED, ONE_LOSS = "PyTorch, eager", "PyTorch, batched", "JAX, one loss at a time"
CONTENDERS = {
    EAGER: ("torch_contenders", "eager"),
    BATCHED: ("torch_contenders", "batched"),
    ONE_LOSS: ("jax_contenders", "one_loss"),
    OURS: ("jax_contenders", "trainer"),
}
WIDE = 384
GROWTH_REPEATS = 3


class Workshop:
    """A folder for jobs, caches and records, and the processes that run there."""

    def __init__(self, folder: Path, say):
        self.folder, self.say = folder, say

    def lap(self, contender: str, job: Job, *arguments) -> tuple[Lap, float]:
        """A contender's lap, and the seconds of its whole process."""
        module, name = CONTENDERS[contender]
        path = self.job_file(job)
        self.say(f"{contender}: {job.runs} runs of {job.epochs} epochs")
        text, seconds = self.run(f"experiments.speed.{module}", name, path, *arguments)
        return Lap(**json.loads(text)), seconds

    def run(self, module: str, *arguments, cache: str = "cache") -> tuple[str, float]:
        """What a command prints, and the seconds it takes."""
        own = {
            "XDG_CACHE_HOME": str(self.folder / cache),
            "JAX_COMPILATION_CACHE_DIR": str(self.folder / cache / "plain"),
        }
        command = [sys.executable, "-m", module, *map(str, arguments)]
        begun = time.perf_counter()
        done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
        return done.stdout, time.perf_counter() - begun

    def job_file(self, job: Job) -> Path:
        """The file of a job, written unless it is there."""
        path = self.folder / f"{abs(hash(repr(job)))}.npz"
        if not path.exists():
            write_job(path, job)
        return path


def throughput(workshop: Workshop, seeds: int, epochs: int) -> Iterator[dict]:
    """Rows of laps: every contender does one regime after another, in turn with the others."""
    for regime in ALL_REGIMES:
        job = digits_job((regime,), seeds, epochs)
        rate = float(workshop.run("experiments.speed.limit", workshop.job_file(job))[0])
        for contender in CONTENDERS:
            lap, _ = workshop.lap(contender, job)
            yield {
                "contender": contender,
                "regime": regime,
                "runs_per_second": job.runs / lap.seconds,
                "gflops": useful(job) / lap.seconds,
                "limit": rate,
                "compiling": lap.compiling,
                "nll": lap.nll,
            }


def useful(job: Job) -> float:
    """GFLOP of the matrix products of a job, if it is trained to its last epoch."""
    study = make_study(job)
    member = prepare(study, study.cells[0]).task.member
    sizes = (len(member.y), len(member.validation_y), job.batch_size)
    return flop(products(digits_model(job.width), *sizes)) * job.runs * job.epochs / 1e9


def end_to_end(workshop: Workshop, seeds: int, epochs: int) -> Iterator[dict]:
    """Rows of whole commands, with early stopping: what a user waits for.

    The eager contender is given its data ready and draws no figure.
    """
    few = max(1, seeds // 4)
    for count, ways in ((few, ("cold", "warm")), (seeds, ("cold",))):
        job = digits_job(ALL_REGIMES, count, epochs, stopping=True)
        row = {"seeds": count, "runs": job.runs, EAGER: workshop.lap(EAGER, job)[1]}
        for way in ways:
            workshop.say(f"{OURS}: the whole command at {count} seeds, {way}")
            out = workshop.folder / f"noise-{count}-{way}"
            arguments = ["--dataset", DATASET, "--seeds", count, "--epochs", epochs, "--out", out]
            row[way] = workshop.run("experiments.noise", *arguments, cache=f"command-{count}")[1]
        if count == few:
            usual, path = CONTENDERS[ONE_LOSS], workshop.job_file(job)
            workshop.say(f"{ONE_LOSS}: the same job at {count} seeds, cold")
            module = f"experiments.speed.{usual[0]}"
            row[ONE_LOSS] = workshop.run(module, usual[1], path, cache=f"usual-{count}")[1]
        yield row


def growth(workshop: Workshop, seeds: int, epochs: int) -> Iterator[dict]:
    """Rows of pgeom alone: more seeds, losses, devices, and a wider network.

    In rounds, so that a slow minute of the machine does not fall on one size; the sizes that take
    longer than the usual job are measured once.
    """
    regime, few = ALL_REGIMES[:1], max(1, seeds // 4)
    usual = digits_job(regime, seeds, epochs)
    sizes = [("seeds", count, usual._replace(seeds=count)) for count in (few, seeds, 5 * seeds)]
    counts = (1, 4, len(LOSSES))
    sizes += [("losses", count, usual._replace(losses=LOSSES[:count])) for count in counts]
    sizes += [("devices", count, usual, count) for count in range(1, jax.device_count() + 1)]
    widths = (usual.width, WIDE)
    sizes += [("width", width, usual._replace(seeds=few, width=width)) for width in widths]
    for repeat in range(GROWTH_REPEATS):
        for what, value, job, *devices in sizes:
            if repeat == 0 or useful(job) <= useful(usual):
                lap, _ = workshop.lap(OURS, job, *devices)
                yield {
                    "what": what,
                    "value": value,
                    "seconds_per_run": lap.seconds / job.runs,
                    "gflops": useful(job) / lap.seconds,
                    "compiling": lap.compiling,
                    "peak_gib": lap.peak_bytes / 2**30,
                }


def kernels(workshop: Workshop, seeds: int, epochs: int) -> Iterator[dict]:
    """Rows of the score kernels."""
    workshop.say(f"score kernels at K = {', '.join(str(K) for K, _ in SIZES)}")
    yield from json.loads(workshop.run("experiments.speed.kernels")[0])


def first(workshop: Workshop, seeds: int, epochs: int) -> Iterator[dict]:
    """Rows of a newcomer's first seconds."""
    workshop.say("first import, gradient and diagnosis")
    yield from json.loads(workshop.run("experiments.speed.first")[0])


def spread(values) -> tuple[float, float, float]:
    """Median, least and largest."""
    return float(np.median(values)), float(np.min(values)), float(np.max(values))


PARTS = {
    "throughput": throughput,
    "end-to-end": end_to_end,
    "growth": growth,
    "kernels": kernels,
    "first": first,
}
