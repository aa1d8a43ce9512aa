"""How far a point of the simplex is from maximising ⟨z, p⟩ − F(p), for a batch `[K, n]`.

With the residual r = z − ∇F(p), a convex F has

    F*(z) − ⟨z, p⟩ + F(p) ≤ max_j r_j − ⟨r, p⟩ = Σ_j p_j s_j,    s_j = max_k r_k − r_j ≥ 0,

and p is the maximiser if and only if this gap is zero: s are the multipliers of p ≥ 0.

>>> import jax.numpy as jnp
>>> from pgeom.geometry.generators import squared_norm
>>> z, p = jnp.array([[1.0], [0.0]]), jnp.array([[0.75], [0.25]])
>>> gap_and_rounding(p, z, slopes(squared_norm, p))[0]
Array([[0.]], dtype=float32)
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pgeom.types import Generator

UNITS = 2  # of rounding of its terms, below which a gap cannot be told from zero


def slopes(F: Generator, p: Float[Array, "K n"]) -> Float[Array, "K n"]:
    """∇F at each column."""
    return jax.vmap(jax.grad(F), in_axes=1, out_axes=1)(p)


def products(F: Generator, p: Float[Array, "K n"], v: Float[Array, "K n"]) -> Float[Array, "K n"]:
    """H(p)v, column by column."""
    return jax.jvp(lambda p: slopes(F, p), (p,), (v,))[1]


def slack(residual: Float[Array, "K n"]) -> Float[Array, "K n"]:
    """s_j = max_k r_k − r_j."""
    return jnp.max(residual, axis=0, keepdims=True) - residual


def gap_and_rounding(
    p: Float[Array, "K n"], z: Float[Array, "K n"], slope: Float[Array, "K n"]
) -> tuple[Float[Array, "1 n"], Float[Array, "1 n"]]:
    """The optimality gap of each column, and a few units of rounding of its terms.

    Args:
      p: points of the simplex.
      z: logits, the largest zero.
      slope: ∇F(p).
    """
    gap = jnp.sum(jnp.where(p == 0, 0.0, p * slack(z - slope)), axis=0, keepdims=True)
    terms = jnp.sum(jnp.where(p == 0, 0.0, p * (jnp.abs(slope) - z)), axis=0, keepdims=True)
    return gap, UNITS * jnp.finfo(p.dtype).eps * (1 + terms)
