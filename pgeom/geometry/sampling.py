"""Points of the simplex to look at a function in, and looking at it in many of them.

>>> lattice(3, 10)
array([[0. , 0. , 1. ],
       [0. , 0.5, 0.5],
       [0. , 1. , 0. ],
       [0.5, 0. , 0.5],
       [0.5, 0.5, 0. ],
       [1. , 0. , 0. ]])
"""

import jax
import numpy as np

from pgeom.compilation import quick_jit
from pgeom.types import Generator

INSIDE = 1e-6  # how far from the boundary derivatives are taken where they diverge on it
LATTICE = 4  # classes up to which points are a lattice: beyond, random ones cover as well
LATTICE_POINTS = 8_000
NUMBERS = 2_000_000  # about the numbers that one batch of a program holds


def inward(points, margin=INSIDE):
    """Points `[..., K]` moved towards the centre by a share of their distance from it."""
    return (1 - margin) * points + margin / points.shape[-1]


def map_points(function, F: Generator, *columns: np.ndarray):
    """`function(F, *row)` of every row of the columns, in one program of bounded memory."""
    sizes = columns[0].shape
    batch = max(1, min(len(columns[0]), NUMBERS // (4 * sizes[1] * min(sizes[1], 32))))
    return jax.tree.map(np.asarray, _mapped(function, batch, F, *columns))


def _map(function, batch, F, *columns):
    return jax.lax.map(lambda row: function(F, *row), columns, batch_size=batch)


_mapped = quick_jit(_map, static_argnums=(0, 1))


def landmarks(K: int) -> np.ndarray:
    """The centre, the vertices, points next to them, and edge midpoints of consecutive classes."""
    eye, few = np.eye(K), slice(None, 128)
    midpoints = 0.5 * (eye + np.roll(eye, 1, axis=0))
    near = 0.99 * eye + 0.01 / K
    return np.concatenate([np.full((1, K), 1 / K), eye[few], near[few], midpoints[few]])


def many_points(K: int, rng: np.random.Generator) -> np.ndarray:
    """A lattice, or random points: most of them uniform, some near faces, some near the centre."""
    if K <= LATTICE:
        return lattice(K, LATTICE_POINTS)
    count = NUMBERS // (10 * K) * 3
    uniform = rng.standard_exponential((count, K))
    faces, centre = (rng.standard_gamma(c, (count // 4, K)) for c in (0.3, 4.0))
    draws = np.concatenate([uniform, faces + 1e-300, centre])
    return draws / draws.sum(axis=1, keepdims=True)


def lattice(K: int, count: int) -> np.ndarray:
    """The points with multiples of 1/n for entries, about `count` of them."""
    steps = {2: count - 1, 3: int((2 * count) ** 0.5) - 2, 4: int((6 * count) ** (1 / 3)) - 2}[K]
    axes = np.meshgrid(*[np.arange(steps + 1)] * (K - 1), indexing="ij")
    first = np.stack([axis.ravel() for axis in axes], axis=1)
    first = first[first.sum(axis=1) <= steps]
    return np.column_stack([first, steps - first.sum(axis=1)]) / steps


def spacing(points: np.ndarray, rng: np.random.Generator) -> float:
    """The distance within which 95% of the simplex has one of the points."""
    K = points.shape[1]
    probes = rng.standard_exponential((128, K))
    probes /= probes.sum(axis=1, keepdims=True)
    squares = np.sum(points**2, axis=1)[None] - 2 * probes @ points.T
    nearest = np.sum(probes**2, axis=1) + squares.min(axis=1)
    return float(np.quantile(np.sqrt(np.maximum(nearest, 0)), 0.95))
