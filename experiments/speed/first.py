"""What a newcomer waits for: help, refusals, imports, the first gradient and diagnosis.

`python -m experiments.speed.first` prints a list of rows as JSON, measured in the order of the rows
and without a compilation cache: commands in processes of their own, the rest in this one.
"""

import json
import os
import resource
import subprocess
import sys
import time
from functools import cache

from experiments.speed.memory import peak_bytes, resident_bytes

CLASSES = (10, 100, 1_000)
COMMANDS = (
    "experiments.noise --help",
    "experiments.noise --datset digits",
    "experiments.noise --losses nonsense",
    "proofs_numeric --help",
)


def rows(classes: tuple[int, ...] = CLASSES, commands: tuple[str, ...] = COMMANDS) -> list[dict]:
    """Seconds of each step the first and the second time, and the peak memory after it."""
    measured = []

    def measure(what: str, step) -> None:
        times = []
        for _ in range(2):
            begun = time.perf_counter()
            step()
            times.append(time.perf_counter() - begun)
        peak = max(peak_bytes(), resident_bytes(resource.RUSAGE_CHILDREN)) / 2**30
        measured.append({"what": what, "first": times[0], "second": times[1], "peak_gib": peak})

    for words in commands:
        measure(f"python -m {words}", lambda words=words: _command(words))
    measure("import jax", _import_jax)
    measure("import pgeom and all its names, after that", _import)
    measure("README's gradient of Σp³, eagerly", _gradient)
    for K in classes:
        measure(f"diagnose Σp³, K = {K:,}", lambda K=K: _diagnosis(K))
    return measured


def _command(words: str) -> None:
    subprocess.run([sys.executable, "-m", *words.split()], capture_output=True)


def _import_jax() -> None:
    import jax  # noqa: F401


def _import() -> None:
    import pgeom.public  # noqa: F401


def cubic(p):
    import jax.numpy as jnp

    return jnp.sum(p**3)


@cache
def _loss():
    import pgeom

    return pgeom.on_logits(pgeom.bregman_score(cubic))


def _gradient() -> None:
    import jax
    import jax.numpy as jnp

    loss = _loss()
    logits, labels = jnp.array([[2.0, 0.0, 1.0]]), jnp.array([0])
    both = jax.value_and_grad(lambda z: loss(z, labels).mean())
    jax.block_until_ready(both(logits))


def _diagnosis(K: int) -> None:
    import pgeom

    pgeom.diagnose(cubic, K)


if __name__ == "__main__":
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    print(json.dumps(rows()))
