"""What a newcomer waits for: the import, the first gradient, run eagerly, and the first diagnosis.

`python -m experiments.speed.first` prints a list of rows as JSON; each is measured in this process,
in the order of the rows, without a compilation cache.
"""

import json
import os
import resource
import sys
import time
from functools import cache

CLASSES = (10, 100, 1_000)


def rows(classes: tuple[int, ...] = CLASSES) -> list[dict]:
    """Seconds of each step the first and the second time, and the peak memory after it."""
    measured = []

    def measure(what: str, step) -> None:
        times = []
        for _ in range(2):
            begun = time.perf_counter()
            step()
            times.append(time.perf_counter() - begun)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        peak /= 2**30 if sys.platform == "darwin" else 2**20
        measured.append({"what": what, "first": times[0], "second": times[1], "peak_gib": peak})

    measure("import pgeom", _import)
    measure("README's gradient of Σp³, eagerly", _gradient)
    for K in classes:
        measure(f"diagnose Σp³, K = {K:,}", lambda K=K: _diagnosis(K))
    return measured


def _import() -> None:
    import pgeom  # noqa: F401


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
