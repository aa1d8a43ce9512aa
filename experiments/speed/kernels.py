"""Value and gradient of losses against optax's cross-entropy: time ratio and peak memory.

Scores of softmax, and Fenchel–Young losses by the canonical links of their generators.

Compiled as the trainer compiles them, and, for the ratio alone, as JAX comes.

`python -m experiments.speed.kernels` prints a list of rows as JSON.
"""

import json
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax

import pgeom
from pgeom.compilation import CPU_OPTIONS, supported
from pgeom.types import Generator

SIZES = ((10, 4096), (1_000, 256), (100_000, 16))  # classes, batch
LINKED = SIZES[:2]  # of the Fenchel–Young losses
REPEATS, FEWER = 101, 21
REFERENCE = "optax CE"
DENSE = 1_000  # the most classes for which a K×K matrix is reasonable


def scores(K: int) -> dict:
    """The scores to compare, of K classes."""
    named = {"Shannon": pgeom.generators.shannon, **_structured(K)}
    named["a user's Σp³"] = lambda p: jnp.sum(p**3)
    losses = {name: pgeom.on_logits(pgeom.bregman_score(F)) for name, F in named.items()}
    return {REFERENCE: optax.softmax_cross_entropy_with_integer_labels, **losses}


def fenchel_young_losses(K: int) -> dict:
    """The Fenchel–Young losses to compare, of K classes."""
    G = pgeom.generators
    named = {"Shannon": G.shannon, "squared norm": G.squared_norm, "Tsallis 1.5": G.tsallis(1.5)}
    named |= _structured(K)
    losses = {f"Fenchel–Young, {name}": pgeom.fenchel_young(F) for name, F in named.items()}
    return {REFERENCE: optax.softmax_cross_entropy_with_integer_labels, **losses}


def _structured(K: int) -> dict[str, Generator]:
    """The paper's generators; the quadratic one where its matrix is of reasonable size."""
    w = np.random.default_rng(0).standard_normal((4, K))
    w = (w / np.linalg.norm(w, axis=1, keepdims=True)).astype(np.float32)
    ridges = pgeom.generators.hyperbolic(lam=1.0, a=0.25, rho=0.25, w=w, b=w.mean(axis=1))
    named: dict[str, Generator] = {"hyperbolic, R = 4": ridges}
    if K <= DENSE:
        A = np.eye(K) + 0.1 + 0.5 * w.T @ w  # no multiple of the identity on the tangent space
        named["quadratic"] = pgeom.generators.quadratic(A.astype(np.float32))
    return named


def measure(K: int, batch: int, repeats: int = REPEATS, make: Callable = scores) -> list[dict]:
    """A row a loss: median milliseconds, ratios to the reference, and bytes beyond in and out."""
    programs = _compiled(make(K), K, batch, supported(CPU_OPTIONS))
    times, ratios = _timed(programs, K, batch, repeats)
    _, usual = _timed(_compiled(make(K), K, batch, {}), K, batch, repeats)
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


def _compiled(losses: dict, K: int, batch: int, options: dict) -> dict:
    """A program a loss, of its sum over a batch and the gradient in the logits."""
    programs = {}
    for name, loss in losses.items():
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
    rows = [row for size in SIZES for row in measure(*size)]
    for size in LINKED:  # the reference is there already
        rows += measure(*size, FEWER, fenchel_young_losses)[1:]
    print(json.dumps(rows))
