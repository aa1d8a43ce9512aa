"""CAPM's matrix on the training part of each dataset, regime and seed of the experiments.

>>> from pgeom.data.regimes import Regime
>>> experiment_matrix("breast-cancer", Regime("clean"), 0).shape
(2, 2)
"""

from functools import cache

import jax
import numpy as np

from pgeom.data import sources
from pgeom.data.regimes import Regime
from pgeom.data.splits import partition
from pgeom.losses.structured import capm_generator
from pgeom.paper.class_structure import class_stats
from pgeom.types import ClassStats

SEEDS = range(5)


def dataset_classes() -> dict[str, int]:
    """The number of classes of each dataset of the paper."""
    return {name: sources.load(name).num_classes for name in sources.PAPER}


def experiment_matrices(K: int) -> dict[str, np.ndarray]:
    """The matrices `[K, K]` of all datasets with K classes, by name."""
    return {
        f"CAPM {name} {regime} seed {seed}": experiment_matrix(name, regime, seed)
        for name, classes in dataset_classes().items()
        if classes == K
        for regime in sources.load(name).regimes
        for seed in SEEDS
    }


@cache
def experiment_matrix(name: str, regime: Regime, seed: int) -> np.ndarray:
    """The matrix A `[K, K]` of one training part, the very one that the experiments train with."""
    dataset = sources.load(name)
    split, noise = partition(dataset, regime, seed)
    stats = class_stats(split.train.features, noise.labels, dataset.num_classes)
    with jax.enable_x64(False):  # float32, as in the experiments
        A = np.asarray(_matrix(stats), np.float64)
    return 0.5 * (A + A.T)  # a quadratic form sees no more; float32 leaves 1e-9 of asymmetry


@jax.jit
def _matrix(stats: ClassStats) -> jax.Array:
    """A with the constants of the experiments."""
    return capm_generator(stats).A
