"""Bounds on the curvature of sums of `quadratic`, `hyperbolic` and `squared_norm`.

>>> import jax.numpy as jnp
>>> from pgeom.geometry.generators import squared_norm
>>> m, M = curvature_limits(squared_norm, jnp.zeros((3, 1)))
>>> round(float(m), 3), round(float(M), 3)
(2.0, 2.04)
"""

from functools import singledispatch

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pgeom.geometry.closed_forms import sum_over_parts
from pgeom.geometry.generators import Hyperbolic, Quadratic, SquaredNorm
from pgeom.types import Generator

POWER_STEPS = 12  # of power iterations: the ascent corrects estimates that are too small
SAFETY = 1.02


def curvature_limits(F: Generator, z: Float[Array, "K n"]) -> tuple[Array, Array]:
    """Estimates of m_T and M_T, the second at most slightly too small, by power iterations.

    Of z only the type is used, as by `optimality.unit`.
    """
    K, dtype = z.shape[0], z.dtype
    irregular = jnp.cos(jnp.arange(1, K + 1, dtype=dtype) ** 2)  # like no one's eigenvectors
    start = irregular + jnp.zeros_like(jnp.sum(z, axis=1))

    def product(which):
        def apply(v):
            v = v - jnp.mean(v)
            full = sum_over_parts(lambda part: _products(part, v)[which], F, dtype)
            return full - jnp.mean(full)

        return apply

    M = SAFETY * _largest(product(1), start)
    return M - _largest(lambda v: M * v - product(0)(v), start), M


def _largest(product, start: Float[Array, " K"]) -> Array:
    """The largest eigenvalue of a positive semidefinite matrix on the tangent space."""
    tiny = jnp.finfo(start.dtype).tiny

    def multiply(_, v):
        v = product(v - jnp.mean(v))
        return v / jnp.maximum(jnp.linalg.norm(v), tiny)

    v = jax.lax.fori_loop(0, POWER_STEPS, multiply, start)
    v = v - jnp.mean(v)
    return jnp.linalg.norm(product(v)) / jnp.maximum(jnp.linalg.norm(v), tiny)


@singledispatch
def _products(F: Generator, v: Float[Array, " K"]) -> tuple[Array, Array]:
    """H⁻v and H⁺v, where H⁻ ⪯ H(p) ⪯ H⁺ for every p."""
    raise TypeError(f"no bound on the curvature of {type(F).__name__} is known")


@_products.register
def _(F: SquaredNorm, v) -> tuple[Array, Array]:
    return 2 * v, 2 * v


@_products.register
def _(F: Quadratic, v) -> tuple[Array, Array]:
    product = jax.jvp(jax.grad(F), (v,), (v,))[1]  # its Hessian is the same everywhere
    return product, product


@_products.register
def _(F: Hyperbolic, v) -> tuple[Array, Array]:
    F = jax.tree.map(lambda leaf: jnp.asarray(leaf, v.dtype), F)
    flat = F.scale * F.lam * v
    return flat, flat + F.scale * jnp.dot(F.w.T, F.a * jnp.dot(F.w, v))
