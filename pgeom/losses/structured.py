"""The structured losses of the paper, CAPM, HPG and APMS, with the constants of its experiments.

The paper states none of the constants marked ◇; they were fitted to its published tables.

>>> hpg_generator(3).w.shape
(4, 3)
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from pgeom import generators
from pgeom.diagnosis.curvature import measure_curvature
from pgeom.generators import Hyperbolic, Quadratic, SquaredNorm, hyperbolic, rescale
from pgeom.losses.catalogue import CAPM, HPG, MEAN_CURVATURE
from pgeom.paper import objectives
from pgeom.paper.class_structure import capm_matrix
from pgeom.types import ClassStats, Loss

GEOMETRY_SEED = 2025  # fixed, and independent of every data and model seed


def apms(
    stats: ClassStats,
    *,
    progress: ArrayLike,
    ridges: int,
    mean_curvature: float,
    **constants: float,
) -> Loss:
    """APMS on the HPG core, where so much of its schedule is over."""
    F = hpg_generator(stats.counts.shape[0], ridges=ridges, mean_curvature=mean_curvature)
    loss = objectives.apms(F, horizon=1.0, **constants)
    return lambda logits, labels: loss(logits, labels, progress)


def brier_generator(stats: ClassStats) -> SquaredNorm:
    """‖p‖², of which Brier is the score."""
    return generators.squared_norm


def capm_generator(stats: ClassStats, **changes: Any) -> Quadratic:
    """CAPM's generator, with the matrix of this training partition.

    Args:
      stats: of the partition.
      **changes: of the constants in `catalogue.CAPM`.
    """
    constants = CAPM | changes
    factor = low_rank_factor(stats.counts.shape[0])
    kept = jnp.asarray(factor if constants["low_rank"] else factor[:, :0], stats.centroids.dtype)
    # definite by construction: no need to look at A, which is traced in the trainer
    return Quadratic(capm_matrix(stats, **constants | {"low_rank": kept}))


def low_rank_factor(K: int) -> np.ndarray:
    """CAPM's B `[K, r]` = 0.2·N(0, 1)/√r with r = min(4, K) ◇."""
    rank = min(4, K)
    draws = np.random.default_rng([GEOMETRY_SEED, 0, K]).standard_normal((K, rank))
    return 0.2 * draws / np.sqrt(rank)


@cache
def hpg_generator(
    K: int, *, ridges: int = HPG["ridges"], mean_curvature: float = MEAN_CURVATURE
) -> Hyperbolic:
    """HPG's generator: ◇ λ = 1, a = ρ = 0.25, random unit w, ridges through the centre."""
    w = np.random.default_rng([GEOMETRY_SEED, 1, K]).standard_normal((ridges, K))
    w = w / np.linalg.norm(w, axis=1, keepdims=True)
    make = partial(hyperbolic, lam=1.0, a=0.25, rho=0.25, w=w, b=w.mean(axis=1))
    return matched(make, K, mean_curvature)


def matched(make: Callable, K: int, target: float) -> Any:
    """A generator with this mean curvature: a constant, also where a builder is being traced.

    Args:
      make: gives it at another scale.
      K: the number of classes.
      target: for `curvature.mean_curvature`.
    """
    with jax.ensure_compile_time_eval(), jax.enable_x64(False):  # the same one in either precision
        F, key = make(), jax.random.key(GEOMETRY_SEED)
        F = rescale(F, target / measure_curvature(F, K, key=key))
        return jax.tree.map(np.asarray, F)  # an array of JAX would remember the mesh it met first
