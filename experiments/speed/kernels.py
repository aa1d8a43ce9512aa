"""Value and gradient of scores against optax's cross-entropy: time ratio and peak memory.

Compiled as the trainer compiles them, and, for the ratio alone, as JAX comes.

`python -m experiments.speed.kernels` prints a list of rows as JSON.
"""

import json
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

import pgeom
from pgeom.compilation import CPU_OPTIONS, supported
from pgeom.types import Generator

SIZES = ((10, 4096), (1_000, 256), (100_000, 16))  # classes, batch
REPEATS = 101
REFERENCE = "optax CE"
DENSE = 1_000  # the most classes for which a K×K matrix is reasonable


def scores(K: int) -> dict:
    """The losses to compare, of K classes."""
    w = np.random.default_rng(0).standard_normal((4, K))
    w = (w / np.linalg.norm(w, axis=1, keepdims=True)).astype(np.float32)
    ridges = pgeom.generators.hyperbolic(lam=1.0, a=0.25, rho=0.25, w=w, b=w.mean(axis=1))
    named: dict[str, Generator] = {
        "Shannon": pgeom.generators.shannon,
        "hyperbolic, R = 4": ridges,
    }
    if K <= DENSE:
        named["quadratic"] = pgeom.generators.quadratic(np.eye(K, dtype=np.float32) + 0.1)
    named["a user's Σp³"] = lambda p: jnp.sum(p**3)
    losses = {name: pgeom.on_logits(pgeom.bregman_score(F)) for name, F in named.items()}
    return {REFERENCE: optax.softmax_cross_entropy_with_integer_labels, **losses}


def measure(K: int, batch: int, repeats: int = REPEATS) -> list[dict]:
    """A row a score: median milliseconds, ratios to the reference, and bytes beyond in and out."""
    programs = _compiled(K, batch, supported(CPU_OPTIONS))
    times, ratios = _timed(programs, K, batch, repeats)
    _, usual = _timed(_compiled(K, batch, {}), K, batch, repeats)
    return [
        {
            "classes": K,
            "batch": batch,
            "score": name,
            "milliseconds": times[name],
            "ratio": ratios[name],
            "usual_ratio": usual[name],
            "bytes": program.memory_analysis().temp_size_in_bytes,
        }
        for name, program in programs.items()
    ]


def _batch(K: int, batch: int) -> tuple[jax.Array, jax.Array]:
    """Logits and labels."""
    rng = np.random.default_rng(1)
    logits = jnp.asarray(3 * rng.standard_normal((batch, K)), jnp.float32)
    return logits, jnp.asarray(rng.integers(K, size=batch), jnp.int32)


def _compiled(K: int, batch: int, options: dict) -> dict:
    """A program a score, of its sum over a batch and the gradient in the logits."""
    programs = {}
    for name, loss in scores(K).items():
        both = jax.value_and_grad(lambda z, y, loss=loss: jnp.sum(loss(z, y)))
        program = jax.jit(both, compiler_options=options)
        programs[name] = program.lower(*_batch(K, batch)).compile()
    return programs


def _timed(programs: dict, K: int, batch: int, repeats: int) -> tuple[dict, dict]:
    """Median milliseconds of each program, and median ratios to the reference, run in turn."""
    arguments, times = _batch(K, batch), {name: [] for name in programs}
    for turn in range(repeats + 1):
        for name, program in programs.items():
            begun = time.perf_counter()
            jax.block_until_ready(program(*arguments))
            if turn:  # the first is a rehearsal
                times[name].append(1e3 * (time.perf_counter() - begun))
    reference = np.array(times[REFERENCE])
    medians = {name: float(np.median(values)) for name, values in times.items()}
    ratios = {name: float(np.median(values / reference)) for name, values in times.items()}
    return medians, ratios


if __name__ == "__main__":
    print(json.dumps([row for size in SIZES for row in measure(*size)]))
