"""What a newcomer waits for: help, refusals, imports, the first gradient and diagnosis."""

import os
import resource
import subprocess
import sys
import time
from functools import cache, partial
from importlib import import_module

from benchmarks.page import Part, Rows
from benchmarks.processes import Processes, peak_bytes, resident_bytes

CLASSES = (10, 100, 1_000)
COMMANDS = (
    "experiments.noise --help",
    "experiments.noise --datset digits",
    "experiments.noise --losses nonsense",
    "proofs_numeric --help",
)


def measure(processes: Processes, seeds: int, epochs: int) -> Rows:
    """Rows of a newcomer's first seconds."""
    return processes.call("benchmarks.waiting.measure_steps")


def measure_steps(classes: tuple = CLASSES, commands: tuple = COMMANDS) -> Rows:
    """Seconds of each step the first and the second time, and the peak memory after it.

    Commands are processes of their own, the other steps are of this one, which imports little.
    """
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    steps = {f"python -m {words}": partial(_command, words) for words in commands}
    names = {"import jax": "jax", "import pgeom and all its names, after that": "pgeom.public"}
    steps |= {what: partial(import_module, name) for what, name in names.items()}
    steps["README's gradient of Σp³, eagerly"] = _gradient
    steps |= {f"diagnose Σp³, K = {K:,}": partial(_diagnose, K) for K in classes}
    rows = []
    for what, step in steps.items():
        first, second = _seconds(step), _seconds(step)
        peak = max(peak_bytes(), resident_bytes(resource.RUSAGE_CHILDREN)) / 2**30
        rows.append({"what": what, "first": first, "second": second, "gib": peak})
    return rows


def _seconds(step) -> float:
    begun = time.perf_counter()
    step()
    return time.perf_counter() - begun


def _command(words: str) -> None:
    subprocess.run([sys.executable, "-m", *words.split()], capture_output=True)


def cubic(p):
    import jax.numpy as jnp

    return jnp.sum(p**3)


@cache
def _loss():
    import pgeom

    return pgeom.on_logits(pgeom.bregman_score(cubic))


def _gradient() -> None:
    import jax
    import numpy as np

    loss = _loss()
    both = jax.value_and_grad(lambda z: loss(z, np.array([0])).mean())
    jax.block_until_ready(both(np.array([[2.0, 0.0, 1.0]], np.float32)))


def _diagnose(K: int) -> None:
    import pgeom

    pgeom.diagnose(cubic, K)


PART = Part(
    "First seconds",
    "Help and refusals import neither JAX nor scikit-learn.",
    measure,
    {
        "Step": "{what}",
        "First time (s) ↓": "{first:.2f}",
        "Again (s) ↓": "{second:.2f}",
        "Memory (GiB) ↓": "{gib:.2f}",
    },
    (
        "commands are processes of their own, the others one, in this order, with nothing compiled "
        "before; again: the same once more",
        "memory: the peak of the processes so far",
    ),
)
