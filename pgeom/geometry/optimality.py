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

from pgeom.geometry import simplex
from pgeom.types import Generator

ACCEPTED = 1e4  # units of rounding up to which a gap is an answer
UNITS = 2  # of rounding of its terms, below which a gap cannot be told from zero


def slopes(F: Generator, p: Float[Array, "K n"]) -> Float[Array, "K n"]:
    """∇F at each column."""
    return jax.vmap(jax.grad(F), in_axes=1, out_axes=1)(p)


def unit(F: Generator, z: Float[Array, "K n"]) -> Float[Array, ""]:
    """The size of the slopes of F, as a power of two, by which F and z are divided exactly.

    With F and z in this unit no tolerance depends on the units of the user. Of z only the type is
    used: in a `shard_map`, F must be evaluated at points that vary over devices as z does.
    """
    K, dtype = z.shape[0], z.dtype
    centre = jnp.full_like(jnp.sum(z, axis=1), 1 / K)
    first, last = ((centre + simplex.vertex(k, K, dtype)) / 2 for k in (0, K - 1))
    middle, *others = (jax.grad(F)(p) for p in (centre, first, last))
    largest = jnp.maximum(*(jnp.max(jnp.abs(other - middle)) for other in others))
    size = jax.lax.stop_gradient(jnp.max(jnp.abs(middle)) + largest)
    usual = (size > 0) & (size < jnp.inf)
    return jnp.exp2(jnp.floor(jnp.log2(jnp.where(usual, size, 1.0))))


def slack(residual: Float[Array, "K n"]) -> Float[Array, "K n"]:
    """s_j = max_k r_k − r_j."""
    return jnp.max(residual, axis=0, keepdims=True) - residual


def gap_and_rounding(
    p: Float[Array, "K n"], z: Float[Array, "K n"], slope: Float[Array, "K n"]
) -> tuple[Float[Array, "1 n"], Float[Array, "1 n"]]:
    """The optimality gap of each column, and a few units of rounding of its terms.

    Args:
      p: points of the simplex.
      z: logits, the largest zero, in the `unit` of F.
      slope: ∇F(p), in that unit too.
    """
    s, sizes = slack(z - slope), jnp.abs(slope) - z
    gap = jnp.sum(jnp.where(p == 0, 0.0, p * s), axis=0, keepdims=True)
    terms = jnp.sum(jnp.where(p == 0, 0.0, p * sizes), axis=0, keepdims=True)
    # the largest residual is in every s_j, and may be that of a tiny entry with a steep slope
    largest = jnp.max(jnp.where((s == 0) & (p > 0), sizes, 0.0), axis=0, keepdims=True)
    return gap, UNITS * jnp.finfo(p.dtype).eps * (1 + terms + largest)
