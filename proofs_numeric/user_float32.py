"""The float32 arithmetic of a user's generator, against float64: value, sign, gradient, zeros.

Whatever F is, an error is allowed as large as a relative 1e-5 and sixteen units in the last place
of the terms that the number is made of; see `pgeom.scores`.

>>> import jax, jax.numpy as jnp
>>> with jax.enable_x64(True):
...     rows = diagnostics(lambda p: jnp.sum(p**3), 3, M=6.0)
>>> [one.check.holds for one in rows]
[True, True, True, True]
"""

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import simplex
from pgeom.compilation import quick_jit
from pgeom.types import Generator
from proofs_numeric import numerics
from proofs_numeric.check import agreement, finiteness, upper_bound
from proofs_numeric.failures import FLOAT32, Diagnostic

UNITS = 16 * float(np.finfo(np.float32).eps)
CLAIMS = (
    "float32 loss: error over 1e-5 ℓ + 16 ε size",
    "float32 logit gradient: error over 1e-5 ‖∇ℓ‖ + 16 ε size",
    "float32 loss ≥ −16 ε size",
    "finite at exact zeros",
)


def diagnostics(F: Generator, K: int, M: float) -> list[Diagnostic]:
    """Next to a vertex and at exact zeros, by the library in both precisions.

    M is the largest curvature of F: where it is bounded, entries of H may round as it does.
    """
    logits = numerics.near_vertex_logits(K)
    value_and_slope = jax.value_and_grad(lambda z: numerics.library_loss(F)(z, jnp.array(0)))
    both = quick_jit(jax.vmap(value_and_slope))
    value, slope = map(np.asarray, both(logits))
    every, logits = np.concatenate([value, slope.ravel()]), logits[:-2].astype(np.float64)
    exact, exact_slope = map(np.asarray, both(logits))
    size, slope_size = map(np.asarray, quick_jit(lambda z: _sizes_on_logits(F, z, M))(logits))
    value, slope = value[:-2], slope[:-2]
    allowed = numerics.VALUE * np.abs(exact) + UNITS * size
    error = np.abs(value - exact) / allowed
    norm = np.linalg.norm(exact_slope, axis=1)
    miss = np.linalg.norm(slope - exact_slope, axis=1)
    miss = miss / np.maximum(numerics.VALUE * norm + UNITS * slope_size, np.finfo(float).tiny)
    negative = -np.min(value + UNITS * size)
    how, zeros = f"K={K}: 1 − p_y = 1e-1 … 1e-7", f"K={K}: logits ±300"
    rows = [
        agreement(CLAIMS[0], FLOAT32, error=error, tolerance=1.0, how=how),
        agreement(CLAIMS[1], FLOAT32, error=miss, tolerance=1.0, how=how),
        upper_bound(CLAIMS[2], FLOAT32, observed=negative, paper=0.0, how=how),
        finiteness(CLAIMS[3], FLOAT32, values=every, how=zeros),
    ]
    failures = (
        f"the loss is off by {error.max():.3g} times what is allowed{_locate(error)}",
        f"the logit gradient is off by {miss.max():.3g} times what is allowed{_locate(miss)}",
        f"the loss is {value.min():.3g}{_locate(-value)}",
        "a loss or a logit gradient is not finite next to a vertex, or at one",
    )
    return [Diagnostic(row, f"{FLOAT32}: {text}") for row, text in zip(rows, failures, strict=True)]


def sizes(F: Generator, q: jax.Array, p: jax.Array) -> jax.Array:
    """|F(q)| + |F(p)| + Σ_j |∂_jF(p)|(p_j + q_j) of pairs `[n, K]`, and never zero; `[n]`."""
    values, slopes = jax.vmap(jax.value_and_grad(F))(simplex.interior(p))
    size = jnp.abs(jax.vmap(F)(simplex.interior(q))) + jnp.abs(values)
    size = size + jnp.sum(jnp.abs(slopes) * (p + q), axis=1)
    return jnp.maximum(size, jnp.finfo(p.dtype).tiny)


def _sizes_on_logits(F: Generator, logits, M: float):
    """The sizes of the loss of label 0 and of its gradient, Σ_j p_j(|(H(p)d)_j| + M|d_j|)."""
    p = jax.nn.softmax(logits)
    vertices = jnp.broadcast_to(simplex.vertex(0, p.shape[1], p.dtype), p.shape)
    d = jax.vmap(simplex.displacement)(vertices, p, vertices)
    products = jax.vmap(lambda p, d: jax.jvp(jax.grad(F), (p,), (d,))[1])(p, d)
    curvature = M if np.isfinite(M) else 0.0
    return sizes(F, vertices, p), jnp.sum(p * (jnp.abs(products) + curvature * jnp.abs(d)), axis=1)


def _locate(badness: np.ndarray) -> str:
    """The distance from the vertex of the worst of the logits next to it."""
    distances = np.repeat(numerics.DISTANCES, numerics.SPLITS)
    return f" at 1 − p_y = {distances[np.argmax(badness)]:.0e}"
