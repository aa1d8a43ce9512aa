"""Where laps are run: a folder for jobs, caches and records, and one process after another."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.speed.job import Job, Lap
from experiments.speed.prepare import write_job

OURS = "pgeom"
EAGER, BATCHED, ONE_LOSS = "PyTorch, eager", "PyTorch, batched", "JAX, one loss at a time"
COMPILED, COMPILED_BATCHED = "PyTorch, compiled", "PyTorch, batched and compiled"
CHANNELS_FIRST, CHANNELS_LAST = "PyTorch, channels first", "PyTorch, channels last"
FLAX = "flax.linen.Conv in the trainer"
CONTENDERS = {  # the module, the way in it, and what follows the file of the job
    EAGER: ("torch_contenders", "eager"),
    COMPILED: ("torch_contenders", "eager", "compiled"),
    BATCHED: ("torch_contenders", "batched"),
    COMPILED_BATCHED: ("torch_contenders", "batched", "compiled"),
    ONE_LOSS: ("jax_contenders", "one_loss"),
    CHANNELS_FIRST: ("torch_images", "first"),
    CHANNELS_LAST: ("torch_images", "last"),
    FLAX: ("jax_contenders", "flax"),
    OURS: ("jax_contenders", "trainer"),
}


class Sizes(NamedTuple):
    """How much is measured: seeds, epochs, and the seeds by which the model of costs is checked."""

    seeds: int
    epochs: int
    check_seeds: int

    @property
    def few(self) -> int:
        """Seeds, where many would take long."""
        return max(1, self.seeds // 2)


class Workshop:
    """A folder, and the processes that run there, one at a time.

    Args:
      folder: where they find their jobs and caches.
      say: called with what is being measured.
    """

    def __init__(self, folder: Path, say):
        self.folder, self.say = folder, say

    def lap(self, contender: str, job: Job, *arguments) -> tuple[Lap, float]:
        """A contender's lap, and the seconds of its whole process."""
        module, name, *more = CONTENDERS[contender]
        path = self.job_file(job)
        self.say(f"{contender}: {job.runs} runs of {job.epochs} epochs")
        text, seconds = self.run(f"experiments.speed.{module}", name, path, *more, *arguments)
        return Lap(**json.loads(text)), seconds

    def rows(self, module: str, *arguments, cache: str = "cache") -> Any:
        """What a module of this package measures and prints."""
        return json.loads(self.run(f"experiments.speed.{module}", *arguments, cache=cache)[0])

    def run(self, module: str, *arguments, cache: str = "cache") -> tuple[str, float]:
        """What a command prints, and the seconds it takes."""
        own = {
            "XDG_CACHE_HOME": str(self.folder / cache),
            "JAX_COMPILATION_CACHE_DIR": str(self.folder / cache / "plain"),
            "TORCHINDUCTOR_CACHE_DIR": str(self.folder / cache / "inductor"),
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


def spread(values) -> tuple[float, float, float]:
    """Median, least and largest."""
    return float(np.median(values)), float(np.min(values)), float(np.max(values))
