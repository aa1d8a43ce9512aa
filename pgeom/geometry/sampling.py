"""Points of the simplex at which to evaluate a function, and its evaluation at many points.

>>> lattice(3, 10)
array([[0. , 0. , 1. ],
       [0. , 0.5, 0.5],
       [0. , 1. , 0. ],
       [0.5, 0. , 0.5],
       [0.5, 0.5, 0. ],
       [1. , 0. , 0. ]])
"""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Array, Float

from pgeom.compilation import quick_jit
from pgeom.types import Generator

INSIDE = 1e-6  # distance from the boundary for derivatives that diverge on it
LATTICE = 4  # classes up to which points form a lattice: beyond, random ones cover as well
LATTICE_POINTS = 8_000
NUMBERS = 2_000_000  # the approximate size of one batch of a program

Points = TypeVar("Points", Array, np.ndarray)


def inward(points: Points, margin: Any = INSIDE) -> Points:
    """Points `[..., K]` moved towards the centre by a fraction of their distance from it."""
    return (1 - margin) * points + margin / points.shape[-1]


def map_points(function: Callable, F: Generator, *columns: Float[np.ndarray, "n K"]) -> Any:
    """`function(F, *row)` for every row of the columns, in one program of bounded memory."""
    count, K = columns[0].shape
    batch = max(1, min(count, NUMBERS // (4 * K * min(K, 32))))
    return jax.tree.map(np.asarray, _mapped(function, batch, F, *columns))


def _map(function, batch, F, *columns):
    return jax.lax.map(lambda row: function(F, *row), columns, batch_size=batch)


_mapped = quick_jit(_map, static_argnums=(0, 1))


def landmarks(K: int) -> Float[np.ndarray, "n {K}"]:
    """The centre, the vertices, points next to them, and edge midpoints of consecutive classes."""
    eye, few = np.eye(K), slice(None, 128)
    midpoints = 0.5 * (eye + np.roll(eye, 1, axis=0))
    near = 0.99 * eye + 0.01 / K
    return np.concatenate([np.full((1, K), 1 / K), eye[few], near[few], midpoints[few]])


def many_points(K: int, rng: np.random.Generator) -> Float[np.ndarray, "n {K}"]:
    """A lattice, or random points: mostly uniform, some near faces, some near the centre."""
    if K <= LATTICE:
        return lattice(K, LATTICE_POINTS)
    count = NUMBERS // (10 * K) * 3
    uniform = rng.standard_exponential((count, K))
    faces, centre = (rng.standard_gamma(c, (count // 4, K)) for c in (0.3, 4.0))
    draws = np.concatenate([uniform, faces + 1e-300, centre])
    return draws / draws.sum(axis=1, keepdims=True)


def lattice(K: int, count: int) -> Float[np.ndarray, "n {K}"]:
    """About `count` points whose entries are multiples of 1/n, for K from 2 to 4."""
    steps = {2: count - 1, 3: int((2 * count) ** 0.5) - 2, 4: int((6 * count) ** (1 / 3)) - 2}[K]
    axes = np.meshgrid(*[np.arange(steps + 1)] * (K - 1), indexing="ij")
    first = np.stack([axis.ravel() for axis in axes], axis=1)
    first = first[first.sum(axis=1) <= steps]
    return np.column_stack([first, steps - first.sum(axis=1)]) / steps


def spacing(points: Float[np.ndarray, "n K"], rng: np.random.Generator) -> float:
    """The distance within which 95% of the simplex has a neighbour among the points."""
    K = points.shape[1]
    probes = rng.standard_exponential((128, K))
    probes /= probes.sum(axis=1, keepdims=True)
    squares = np.sum(points**2, axis=1)[None] - 2 * probes @ points.T
    nearest = np.sum(probes**2, axis=1) + squares.min(axis=1)
    return float(np.quantile(np.sqrt(np.maximum(nearest, 0)), 0.95))
