"""Value and gradient of losses beside optax's cross-entropy: time ratio and peak memory.

Scores of softmax, and Fenchel–Young losses by the canonical links of their generators, compiled as
the trainer compiles them, and, for the ratio alone, as JAX comes.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

import pgeom
from benchmarks.page import Part, Rows
from benchmarks.processes import Processes
from pgeom.compilation import CPU_OPTIONS, supported
from pgeom.types import Generator

SIZES = ((10, 4096), (1_000, 256), (100_000, 16))  # classes, batch
REFERENCE = "optax CE"
DENSE = 1_000  # the most classes for which a K×K matrix is reasonable


def measure(processes: Processes, seeds: int, epochs: int) -> Rows:
    """Rows of all sizes, measured in one process."""
    return processes.call("benchmarks.kernels.compare_all")


def compare_all() -> Rows:
    return [row for size in SIZES for row in compare(losses(size[0]), *size)]


def losses(K: int) -> dict:
    """The reference, and the losses of K classes to compare with it."""
    G, structured = pgeom.generators, _structured(K)
    scores = {"Shannon": G.shannon, **structured, "a user's Σp³": lambda p: jnp.sum(p**3)}
    linked = {"Shannon": G.shannon, "squared norm": G.squared_norm, "Tsallis 1.5": G.tsallis(1.5)}
    linked = linked | structured if K <= DENSE else {}
    return {
        REFERENCE: optax.softmax_cross_entropy_with_integer_labels,
        **{name: pgeom.on_logits(pgeom.bregman_score(F)) for name, F in scores.items()},
        **{f"Fenchel–Young, {name}": pgeom.fenchel_young(F) for name, F in linked.items()},
    }


def _structured(K: int) -> dict[str, Generator]:
    """The paper's generators; the quadratic one where its matrix is of reasonable size."""
    w = np.random.default_rng(0).standard_normal((4, K)).astype(np.float32)
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    ridges = pgeom.generators.hyperbolic(lam=1.0, a=0.25, rho=0.25, w=w, b=w.mean(axis=1))
    named: dict[str, Generator] = {"hyperbolic, R = 4": ridges}
    if K <= DENSE:
        A = np.eye(K) + 0.1 + 0.5 * w.T @ w  # no multiple of the identity on the tangent space
        named["quadratic"] = pgeom.generators.quadratic(A.astype(np.float32))
    return named


def compare(losses: dict, K: int, batch: int, repeats: int = 101) -> Rows:
    """A row per loss: median milliseconds, ratios to the reference, and bytes beyond in and out."""
    rng = np.random.default_rng(1)
    logits = jnp.asarray(3 * rng.standard_normal((batch, K)), jnp.float32)
    given = logits, jnp.asarray(rng.integers(K, size=batch), jnp.int32)
    programs = _compiled(losses, given, supported(CPU_OPTIONS))
    times, usual = (
        _timed(programs, given, repeats),
        _timed(_compiled(losses, given), given, repeats),
    )
    return [
        {
            "classes": K,
            "batch": batch,
            "loss": name,
            "milliseconds": float(np.median(times[name])),
            "ratio": float(np.median(times[name] / times[REFERENCE])),
            "usual_ratio": float(np.median(usual[name] / usual[REFERENCE])),
            "mib": program.memory_analysis().temp_size_in_bytes / 2**20,
        }
        for name, program in programs.items()
    ]


def _compiled(losses: dict, given: tuple, options: dict | None = None) -> dict:
    """A program per loss, of its sum over a batch and the gradient in the logits."""
    programs = {}
    for name, loss in losses.items():
        both = jax.value_and_grad(lambda z, y, loss=loss: jnp.sum(loss(z, y)))
        programs[name] = jax.jit(both, compiler_options=options or {}).lower(*given).compile()
    return programs


def _timed(programs: dict, given: tuple, repeats: int) -> dict[str, np.ndarray]:
    """Milliseconds of each program, run in turn with the others."""
    times = {name: [] for name in programs}
    for _ in range(repeats + 1):
        for name, program in programs.items():
            begun = time.perf_counter()
            jax.block_until_ready(program(*given))
            times[name].append(1e3 * (time.perf_counter() - begun))
    return {name: np.array(values[1:]) for name, values in times.items()}  # the first warms up


PART = Part(
    "Value and gradient of a batch",
    "A loss alone, beside optax's cross-entropy.",
    measure,
    {
        "Classes": "{classes:,}",
        "Batch": "{batch:,}",
        "Loss": "{loss}",
        "Milliseconds ↓": "{milliseconds:.2f}",
        "Times optax CE ↓": "{ratio:.2f}",
        "As JAX comes ↓": "{usual_ratio:.2f}",
        "Memory (MiB) ↓": "{mib:.1f}",
    },
    (
        "compiled with `pgeom.compilation.CPU_OPTIONS`, as the trainer does, optax CE too; as JAX "
        "comes: the ratio with XLA's defaults, for both",
        "memory: what the program takes beyond its inputs and outputs",
    ),
)
