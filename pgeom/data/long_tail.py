"""Exponential long tails: a balanced training pool thinned class by class.

Class 0 stays the largest and class K−1 becomes the rarest. Only the training pool is thinned;
validation and test stay as they are.

>>> import numpy as np
>>> from pgeom.data import long_tail
>>> long_tail.keep_counts(360, 10, 30).tolist()
[360, 247, 169, 116, 79, 54, 37, 26, 18, 12]
>>> balanced = np.repeat(np.arange(3), 8)
>>> kept = long_tail.subsample(balanced, 3, 4, np.random.default_rng(0))
>>> np.bincount(balanced[kept]).tolist()
[8, 4, 2]
"""

import math

import numpy as np
from jaxtyping import Int64
from numpy.typing import ArrayLike

from pgeom.deferred import Deferred

edge = Deferred("pgeom.edge")  # it needs JAX, without which regimes are parsed


def keep_counts(n_max: int, K: int, ratio: float | int) -> Int64[np.ndarray, " K"]:
    """The number of examples that each class keeps.

    n_c = n_max · ratio^(−c / (K − 1)), rounded to the nearest integer.

    Args:
      n_max: the size of class 0.
      K: the number of classes.
      ratio: n_max over the size of class K−1; at least 1, and below 2 n_max so that class K−1
        keeps an example.

    Returns:
      Counts `[K]`, never increasing.
    """
    edge.check_num_classes(K)
    edge.require(1 <= ratio < 2 * n_max, "ratio", f"in [1, 2 n_max = {2 * n_max})", ratio)
    exponents = np.arange(K) / (K - 1)
    return np.rint(n_max * float(ratio) ** -exponents).astype(np.int64)


def subsample(
    labels: ArrayLike, K: int, ratio: float | int, rng: np.random.Generator
) -> Int64[np.ndarray, " m"]:
    """Draw a long-tailed subset of a training pool, without replacement.

    n_max is the largest multiple of the ratio that the smallest class of the pool can supply, so
    an integer ratio is met exactly whatever the pool. The long-tail dataset has 600 examples per
    class, hence 360 per class in the training pool of every seed: it keeps 360 … 12.

    Args:
      labels: integer labels of the pool, `[n]`.
      K: the number of classes.
      ratio: the size of the largest class over that of the smallest, at least 1.
      rng: the source of randomness.

    Returns:
      Sorted indices into the pool, `[m]`: `keep_counts(n_max, K, ratio)` of each class.
    """
    labels = np.asarray(labels)
    counts = np.bincount(labels, minlength=K)
    edge.require(len(counts) <= K, "labels", f"in 0 … {K - 1}", len(counts) - 1)
    smallest = counts.min()
    attainable = f"in [1, {smallest}] (up to the smallest class count)"
    edge.require(1 <= ratio <= smallest, "ratio", attainable, ratio)
    n_max = round(ratio * math.floor(smallest / ratio))
    kept = [
        rng.choice(np.flatnonzero(labels == c), size=size, replace=False)
        for c, size in enumerate(keep_counts(n_max, K, ratio))
    ]
    return np.sort(np.concatenate(kept))
