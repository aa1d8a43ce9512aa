"""A few pairs of points that can show that a function is not convex, while it is being used.

This is no search: `pgeom.diagnose` is. It costs a few dozen evaluations of F per batch, and keeps
a solver from returning one of many stationary points without a word.

>>> import jax.numpy as jnp
>>> bool(contradicts_convexity(lambda p: -jnp.sum(p**2), jnp.zeros((1, 3))))
True
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from pgeom.geometry.interior_point import maximise
from pgeom.geometry.link_columns import choose_method, hoisted
from pgeom.types import Generator

UNITS = 64  # of rounding of the terms of a divergence that a negative one must exceed
DRAWS, CORNERS = 16, 16


def contradicts_convexity(F: Generator, z: Float[Array, "n K"]) -> Bool[Array, ""]:
    """Whether D_F(q, p) < 0 for one of the pairs; never of a generator known to be convex."""
    if choose_method(F).maximise is not maximise:
        return jnp.zeros((), bool)
    pure, parameters, (z,) = hoisted(F, z.T)
    points = jnp.asarray(_points(len(z)), z.dtype) + jnp.sum(jnp.zeros_like(z))
    values, slopes = jax.vmap(jax.value_and_grad(pure(*parameters)))(points)

    def negative(shift):
        q, at_q = jnp.roll(points, shift, axis=0), jnp.roll(values, shift)
        divergence = at_q - values - jnp.sum(slopes * (q - points), axis=1)
        size = jnp.abs(at_q) + jnp.abs(values) + jnp.sum(jnp.abs(slopes) * (q + points), axis=1)
        return jnp.any(divergence < -UNITS * jnp.finfo(z.dtype).eps * size)

    return negative(1) | negative(2) | negative(5)


def _points(K: int) -> np.ndarray:
    """Points next to the corners, draws of Dirichlet(1), and the centre, all inside."""
    corners = np.eye(K)[np.linspace(0, K - 1, min(K, CORNERS)).astype(int)]
    draws = np.random.default_rng(0).dirichlet(np.ones(K), DRAWS)
    points = np.concatenate([corners, draws, np.full((1, K), 1 / K)])
    return 0.99 * points + 0.01 / K
