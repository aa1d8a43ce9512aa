"""Points of the simplex where a claim is most likely to fail, and ascents from them.

>>> points(3, count=4).shape
(22, 3)
"""

from collections.abc import Callable

import jax
import numpy as np

from proofs_numeric.search import Optimum, maximise

CONCENTRATIONS = (0.1, 1.0, 10.0)
INSIDE = 1e-9  # how far ascents keep from the boundary, where a score has no gradient


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
    return (1 - INSIDE) * p + INSIDE / p.shape[-1]


def maximise_inside(objective: Callable[[jax.Array], jax.Array], starts: jax.Array) -> Optimum:
    """The largest `objective(p[K])` that projected ascents from the starts `[n, K]` reach."""
    return maximise(lambda p: objective(move_inside(p)), starts)
