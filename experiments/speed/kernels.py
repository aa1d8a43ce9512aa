"""Value and gradient of scores against optax's cross-entropy: time ratio and peak memory.

`python -m experiments.speed.kernels` prints a list of rows as JSON.
"""

import json
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

import pgeom

SIZES = ((10, 4096), (1_000, 256), (100_000, 16))  # classes, batch
REPEATS = 41
REFERENCE = "optax CE"
DENSE = 1_000  # the most classes for which a K×K matrix is reasonable


def scores(K: int) -> dict:
    """The losses to compare, of K classes."""
    w = np.random.default_rng(0).standard_normal((4, K))
    w = (w / np.linalg.norm(w, axis=1, keepdims=True)).astype(np.float32)
    ridges = pgeom.generators.hyperbolic(lam=1.0, a=0.25, rho=0.25, w=w, b=w.mean(axis=1))
    named = {"Shannon": pgeom.generators.shannon, "hyperbolic, R = 4": ridges}
    if K <= DENSE:
        named["quadratic"] = pgeom.generators.quadratic(np.eye(K, dtype=np.float32) + 0.1)
    named["a user's Σp³"] = lambda p: jnp.sum(p**3)
    losses = {name: pgeom.on_logits(pgeom.bregman_score(F)) for name, F in named.items()}
    return {REFERENCE: optax.softmax_cross_entropy_with_integer_labels, **losses}


def measure(K: int, batch: int, repeats: int = REPEATS) -> list[dict]:
    """A row a score: median milliseconds, ratio to the reference, and bytes beyond in and out."""
    rng = np.random.default_rng(1)
    logits = jnp.asarray(3 * rng.standard_normal((batch, K)), jnp.float32)
    labels = jnp.asarray(rng.integers(K, size=batch), jnp.int32)
    programs, times = {}, {}
    for name, loss in scores(K).items():
        both = jax.value_and_grad(lambda z, y, loss=loss: jnp.sum(loss(z, y)))
        programs[name], times[name] = jax.jit(both).lower(logits, labels).compile(), []
        jax.block_until_ready(programs[name](logits, labels))
    for _ in range(repeats):
        for name, program in programs.items():
            begun = time.perf_counter()
            jax.block_until_ready(program(logits, labels))
            times[name].append(1e3 * (time.perf_counter() - begun))
    reference = np.array(times[REFERENCE])
    return [
        {
            "classes": K,
            "batch": batch,
            "score": name,
            "milliseconds": float(np.median(times[name])),
            "ratio": float(np.median(np.array(times[name]) / reference)),
            "bytes": programs[name].memory_analysis().temp_size_in_bytes,
        }
        for name in programs
    ]


if __name__ == "__main__":
    print(json.dumps([row for size in SIZES for row in measure(*size)]))
