"""CAPM's matrix on the training part of each dataset, regime and seed of the experiments.

>>> experiment_matrix("breast-cancer", "clean", 0).shape
(2, 2)
"""

from functools import cache

import jax
import numpy as np

from pgeom.data import regimes, sources
from pgeom.losses import catalogue
from pgeom.types import ClassStats

REGIMES = {
    "breast-cancer": ("clean", "symmetric-20", "symmetric-40"),
    "digits": ("clean", "symmetric-20", "symmetric-40", "pair-flip-40"),
    "confusion": ("clean", "symmetric-20", "pair-flip-40"),
    "long-tail": ("long-tail-30",),
}
SEEDS = range(5)


def dataset_classes() -> dict[str, int]:
    """The number of classes of each dataset."""
    return {dataset: _load(dataset).num_classes for dataset in REGIMES}


def experiment_matrices(K: int) -> dict[str, np.ndarray]:
    """The matrices `[K, K]` of all datasets with K classes, by name."""
    return {
        f"CAPM {dataset} {regime} seed {seed}": experiment_matrix(dataset, regime, seed)
        for dataset, classes in dataset_classes().items()
        if classes == K
        for regime in REGIMES[dataset]
        for seed in SEEDS
    }


@cache
def experiment_matrix(dataset: str, regime: str, seed: int) -> np.ndarray:
    """The matrix A `[K, K]` of one training part, the very one that the experiments train with."""
    source = _load(dataset)
    split, noise = regimes.partition(source, regime, seed)
    # float32, as in the experiments, whatever the precision of the checks
    members = np.eye(source.num_classes, dtype=np.float32)[noise.labels]
    counts = members.sum(axis=0)
    centroids = members.T @ split.train.features / counts[:, None]
    with jax.enable_x64(False):
        A = np.asarray(_matrix(ClassStats(counts, centroids)), np.float64)
    return 0.5 * (A + A.T)  # a quadratic form sees no more; float32 leaves 1e-9 of asymmetry


@cache
def _load(dataset: str) -> sources.Source:
    return sources.load(dataset)


@jax.jit
def _matrix(stats: ClassStats) -> jax.Array:
    """A with the catalogue's constants."""
    return catalogue.capm_generator(stats).A
