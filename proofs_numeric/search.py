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

from pgeom import simplex

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
    values_and_slopes = jax.vmap(jax.value_and_grad(objective))

    def ascend(state, length):
        points, best = state
        values, slope = values_and_slopes(points)
        slope = jnp.nan_to_num(slope - jnp.mean(slope, axis=1, keepdims=True))
        norm = jnp.linalg.norm(slope, axis=1, keepdims=True)
        onward = simplex.project(points + length * slope / jnp.where(norm > 0, norm, 1.0))
        return (onward, _better(best, points, values)), None

    first = jax.vmap(objective)(starts)
    best = _better(Optimum(jnp.asarray(-jnp.inf, first.dtype), starts[0]), starts, first)
    leaders = starts[jnp.argsort(-first)[:ASCENTS]]
    lengths = 0.2 * 0.5 ** (jnp.arange(STEPS) / 4)
    return jax.lax.scan(ascend, (leaders, best), lengths.astype(starts.dtype))[0][1]


def _better(best: Optimum, points, values) -> Optimum:
    values = jnp.where(jnp.isnan(values), -jnp.inf, values)
    index = jnp.argmax(values)
    improved = values[index] > best.value
    point = jnp.where(improved, points[index], best.point)
    return Optimum(jnp.where(improved, values[index], best.value), point)
