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


def keep_counts(n_max, num_classes, ratio):
    """Number of examples that each class keeps.

    n_c = n_max · ratio^(−c / (K − 1)), rounded to the nearest integer.

    Args:
      n_max: size of class 0.
      num_classes: K ≥ 2.
      ratio: n_max over the size of class K−1; 1 or more, and below 2 n_max to leave that class one.

    Returns:
      [K] int64 counts, never increasing.
    """
    if num_classes < 2:
        raise ValueError(f"num_classes must be at least 2, but is {num_classes}")
    if not 1 <= ratio < 2 * n_max:
        raise ValueError(f"ratio must be in [1, 2 n_max = {2 * n_max}), but is {ratio}")
    exponents = np.arange(num_classes) / (num_classes - 1)
    return np.rint(n_max * float(ratio) ** -exponents).astype(np.int64)


def subsample(labels, num_classes, ratio, rng):
    """Draws a long-tailed subset of a training pool, without replacement.

    n_max is the largest multiple of the ratio that the smallest class of the pool can supply, so
    an integer ratio is met exactly whatever the pool. The long-tail source has 600 of each class
    and therefore 360 of each in the training pool of every seed: it keeps 360 … 12.

    Args:
      labels: [n] integer labels of the pool.
      num_classes: K ≥ 2.
      ratio: largest class over smallest, at least 1.
      rng: `numpy.random.Generator`.

    Returns:
      Sorted [m] int64 indices into the pool, `keep_counts(n_max, K, ratio)` of each class.
    """
    labels = np.asarray(labels)
    counts = np.bincount(labels, minlength=num_classes)
    if len(counts) > num_classes:
        raise ValueError(f"labels must be in 0..{num_classes - 1}, but reach {labels.max()}")
    if not 1 <= ratio <= counts.min():
        raise ValueError(
            f"ratio must be in [1, {counts.min()}], the smallest class count, but is {ratio}"
        )
    n_max = round(ratio * math.floor(counts.min() / ratio))
    kept = [
        rng.choice(np.flatnonzero(labels == c), size=size, replace=False)
        for c, size in enumerate(keep_counts(n_max, num_classes, ratio))
    ]
    return np.sort(np.concatenate(kept))
