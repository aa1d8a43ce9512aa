"""Points of the simplex where a claim is most likely to fail, ascents from them, and proofs.

>>> points(3, count=4).shape
(22, 3)
>>> best = maximise(lambda p: -jnp.sum((p - jnp.array([0.6, 0.4])) ** 2), jnp.eye(2))
>>> bool(abs(best.point[0] - 0.6) < 1e-3)
True
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.diagnosis.search import climb, inward

ASCENTS = 16  # of the best starts
STEPS = 61  # the last is for its value alone
CONCENTRATIONS = (0.1, 1.0, 10.0)
INSIDE = 1e-9  # how far ascents keep from the boundary, where a score has no gradient
BATCH = 2048  # cells that are halved at a time
MOST = 300_000  # cells, before a proof ends without having closed the gap


def points(K: int, *, count: int, seed: int = 0) -> np.ndarray:
    """The centre, vertices, points next to them, edges, and Dirichlet draws; `[n, K]`.

    Args:
      K: the number of classes.
      count: how many draws at each of three concentrations.
      seed: of the draws.
    """
    eye, centre = np.eye(K), np.full((1, K), 1 / K)
    near = 0.99 * eye + 0.01 / K
    edges = 0.5 * (eye + np.roll(eye, 1, axis=0))
    return np.concatenate([centre, eye, near, edges, draws(K, count=count, seed=seed)])


def draws(K: int, *, count: int, seed: int = 0) -> np.ndarray:
    """`count` Dirichlet draws at each concentration, `[3 count, K]`, by NumPy: no compilation."""
    rng = np.random.default_rng([seed, K])
    return np.concatenate([rng.dirichlet(np.full(K, c), count) for c in CONCENTRATIONS])


def move_inside(p: jax.Array) -> jax.Array:
    """`p`, moved towards the centre by a relative 1e-9."""
    return inward(p, INSIDE)


def max_abs(x: jax.Array) -> jax.Array:
    """The largest |x| of an array, as of errors."""
    return jnp.max(jnp.abs(x))


def over(function: Callable, *grids: jax.Array) -> Any:
    """`function` at every combination of points of the grids, with an axis for each of them."""
    for i in reversed(range(len(grids))):
        function = jax.vmap(function, in_axes=[0 if i == j else None for j in range(len(grids))])
    return function(*grids)


class Optimum(NamedTuple):
    """The largest value that a search found, and the point `[K]` that has it."""

    value: jax.Array
    point: jax.Array


def maximise(objective: Callable[[jax.Array], jax.Array], starts: jax.Array) -> Optimum:
    """Maximise `objective(p[K]) -> scalar` just inside the simplex, from the best starts `[n, K]`.

    Steps go along the normalised tangent gradient and shrink geometrically from 0.2 to 1e-5. The
    best point ever seen is kept: the result is never below the best start.
    """

    def inside(p):
        return objective(move_inside(p))

    leaders = starts[jnp.argsort(-jax.vmap(inside)(starts))[:ASCENTS]]
    lengths = 0.2 * 0.5 ** (jnp.arange(STEPS) / 4)
    values, ends = climb(inside, leaders, lengths=lengths.astype(starts.dtype))
    best = jnp.argmax(values)
    return Optimum(values[best], ends[best])


class Proof(NamedTuple):
    """A maximum lies between `low`, attained at `point` unless that was known, and `high`."""

    low: float
    high: float
    point: np.ndarray
    cells: int


def prove_maximum(
    cells: np.ndarray, assess: Callable, halve: Callable, *, known: float, gap: float, most: int
) -> Proof:
    """A maximum over cells by branch and bound: of those that may hold it, the best are halved.

    Args:
      cells: any description of them, `[n, ...]`.
      assess: `assess(cells)`, a bound on the values in each `[n]`, the largest value at a point of
        any of them, and the point.
      halve: `halve(cells)`, each of them in two.
      known: a value that is known to be attained.
      gap: the relative gap between the ends at which to stop.
      most: the number of cells at which to give up.
    """
    low, point, count = known, np.zeros(0), 0
    waiting, bounds, highest = cells[:0], np.zeros(0), np.full(1, np.inf)
    while len(cells) and count < most:
        count += len(cells)
        bound, value, where = assess(cells)
        if value > low:
            low, point = value, where
        waiting, bounds = np.concatenate([waiting, cells]), np.concatenate([bounds, bound])
        order = np.argsort(-bounds)
        order = order[bounds[order] > low * (1 + gap)]
        waiting, bounds = waiting[order], bounds[order]
        cells, waiting = halve(waiting[:BATCH]), waiting[BATCH:]
        highest, bounds = bounds[:1], bounds[BATCH:]
    return Proof(low, float(max([low * (1 + gap), *highest])), point, count)
