"""CAPM's matrix on the training part of each dataset, regime and seed of the experiments.

>>> experiment_matrix("breast-cancer", "clean", 0).shape
(2, 2)
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.data import label_noise, long_tail, sources, splits
from pgeom.losses import catalogue
from pgeom.types import ClassStats

CLASSES = {"breast-cancer": 2, "digits": 10, "confusion": 6, "long-tail": 10}
REGIMES = {
    "breast-cancer": ("clean", "symmetric-20", "symmetric-40"),
    "digits": ("clean", "symmetric-20", "symmetric-40", "pair-flip-40"),
    "confusion": ("clean", "symmetric-20", "pair-flip-40"),
    "long-tail": ("long-tail-30",),
}
SEEDS = range(5)


def experiment_matrices(K: int) -> dict[str, np.ndarray]:
    """The matrices `[K, K]` of all datasets with K classes, by name."""
    return {
        f"CAPM {dataset} {regime} seed {seed}": experiment_matrix(dataset, regime, seed)
        for dataset, classes in CLASSES.items()
        if classes == K
        for regime in REGIMES[dataset]
        for seed in SEEDS
    }


@cache
def experiment_matrix(dataset: str, regime: str, seed: int) -> np.ndarray:
    """The matrix A `[K, K]` of one training part.

    The split is the experiments'; label noise and thinning are draws of the same law.
    """
    source, rng = _source(dataset), np.random.default_rng([seed, len(regime)])
    raw, K = splits.split(source, seed), source.num_classes
    kind, _, amount = regime.rpartition("-")
    if kind == "long-tail":
        kept = long_tail.subsample(raw.train.labels, K, int(amount), rng)
        raw = raw._replace(train=splits.take(raw.train, kept))
    features, labels = splits.standardise(raw).train
    if kind in ("symmetric", "pair-flip"):
        corrupt = label_noise.symmetric if kind == "symmetric" else label_noise.pair_flip
        labels = corrupt(labels, int(amount) / 100, K, rng).labels
    # float32, as in the experiments, whatever the precision of the checks
    members = np.eye(K, dtype=np.float32)[labels]
    counts = members.sum(axis=0)
    with jax.enable_x64(False):
        stats = ClassStats(jnp.asarray(counts), jnp.asarray(members.T @ features / counts[:, None]))
        A = np.asarray(_matrix(stats), np.float64)
    return 0.5 * (A + A.T)  # a quadratic form sees no more; float32 leaves 1e-9 of asymmetry


@cache
def _source(dataset: str) -> sources.Source:
    return sources.load(dataset)


@jax.jit
def _matrix(stats: ClassStats) -> jax.Array:
    """A with the catalogue's constants."""
    return catalogue.capm_generator(stats).A
