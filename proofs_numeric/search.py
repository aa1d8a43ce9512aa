"""Searching the simplex for an extreme: projected gradient ascent from many starts.

>>> import jax.numpy as jnp
>>> best = maximise(lambda p: -jnp.sum((p - jnp.array([0.6, 0.4])) ** 2), jnp.eye(2))
>>> bool(abs(best.point[0] - 0.6) < 1e-3)
True
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from pgeom.diagnosis.search import climb

ASCENTS = 16  # of the best starts
STEPS = 61  # the last is for its value alone


class Optimum(NamedTuple):
    """The largest value that a search found, and the point `[K]` that has it."""

    value: jax.Array
    point: jax.Array


def maximise(objective: Callable[[jax.Array], jax.Array], starts: jax.Array) -> Optimum:
    """Maximise `objective(p[K]) -> scalar` over the simplex, from the best of the starts `[n, K]`.

    Steps go along the normalised tangent gradient and shrink geometrically from 0.2 to 1e-5. The
    best point ever seen is kept: the result is never below the best start.
    """
    leaders = starts[jnp.argsort(-jax.vmap(objective)(starts))[:ASCENTS]]
    lengths = 0.2 * 0.5 ** (jnp.arange(STEPS) / 4)
    values, points = climb(objective, leaders, lengths=lengths.astype(starts.dtype))
    best = jnp.argmax(values)
    return Optimum(values[best], points[best])
