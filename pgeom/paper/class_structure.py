"""Class statistics of a training partition, and the CAPM matrix A built from them.

Everything is a pure function of arrays, so a batch of partitions is a vmap.

>>> import jax.numpy as jnp
>>> x = jnp.array([[0.0], [2.0], [4.0]])
>>> class_stats(x, jnp.array([0, 0, 1]), 2)
ClassStats(counts=Array([2., 1.], dtype=float32), centroids=Array([[1.],
       [4.]], dtype=float32))
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Num

from pgeom import checks
from pgeom.types import AnyArray, ClassStats, Numbers, Row


def class_stats(
    features: Numbers, labels: Numbers, K: int, *, weights: Numbers | None = None
) -> ClassStats:
    """Counts and centroids of the observed labels; NumPy arrays if the features are one.

    Args:
      features: `[n, d]`, standardised.
      labels: `[n]`, observed integers.
      K: the number of classes.
      weights: `[n]`, how much each example counts; one by default.
    """
    checks.check_num_classes(K)
    host = isinstance(features, np.ndarray) and np.issubdtype(features.dtype, np.floating)
    xp = np if host else jnp  # on the host, nothing is compiled
    x: Any = features if host else checks.real(features)
    y = xp.asarray(labels)
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise ValueError(
            f"features and labels must have shapes [n, d] and [n], got {x.shape} and {y.shape}"
        )
    checks.integer_labels(y, (len(y), K), "one-hot rows")
    one_hot = xp.eye(K, dtype=x.dtype)[y]
    if weights is not None:
        one_hot = one_hot * xp.asarray(weights, x.dtype)[:, None]
    counts = one_hot.sum(axis=0)
    checks.check_positive("the count of each class in labels", counts)
    return ClassStats(counts, xp.dot(one_hot.T, x) / counts[:, None])


def centroid_graph(centroids: Float[AnyArray, "K d"]) -> Float[Array, "K K"]:
    """Symmetric nonnegative weights between classes, exp(−d²/median d²), normalised.

    d is the distance between two centroids, the median is over pairs of classes, the diagonal is
    zero, and the largest row sum is one. A kernel rather than a cosine, because cosines of
    standardised centroids are negative for some pairs, and the Laplacian would be indefinite.
    """
    K = centroids.shape[0]
    square = jnp.sum((centroids[:, None] - centroids[None]) ** 2, axis=-1)
    median = jnp.median(square[np.triu_indices(K, 1)])
    checks.check_positive("the median squared distance of centroids", median)
    weights = jnp.where(np.eye(K, dtype=bool), 0.0, jnp.exp(-square / median))
    return weights / jnp.max(jnp.sum(weights, axis=1))


def laplacian(weights: Numbers) -> Num[Array, "K K"]:
    """L_G = Diag(W1) − W, positive semidefinite, for symmetric nonnegative weights `[K, K]`."""
    weights = jnp.asarray(weights)
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ValueError(f"graph weights must have shape [K, K], got {weights.shape}")
    checks.check_nonnegative("graph weights", weights)
    if (known := checks.concrete(weights)) is not None:
        symmetric = np.allclose(known, known.T, rtol=0, atol=1e-6 * np.max(known))
        checks.require(symmetric, "graph weights", "symmetric", weights)
    return jnp.diag(jnp.sum(weights, axis=1)) - weights


def tail_diagonal(counts: Numbers) -> Row:
    """√(n_max/n_k) divided by its mean over k: the rarer the class, the larger."""
    counts = checks.class_counts(counts)
    tail = jnp.sqrt(jnp.max(counts) / counts)
    return tail / jnp.mean(tail)


def capm_matrix(
    stats: ClassStats,
    *,
    lam: ArrayLike,
    gamma: ArrayLike,
    delta: ArrayLike,
    low_rank: Numbers,
    mean_curvature: ArrayLike | None = None,
) -> Float[Array, "K K"]:
    """A = λI + BBᵀ + γL_G + δD_tail, Eq. (capm-matrix).

    Args:
      stats: the statistics of the training partition.
      lam: λ > 0.
      gamma: γ ≥ 0, the weight of the centroid graph.
      delta: δ ≥ 0, the weight of the tail diagonal.
      low_rank: B, `[K, r]`; r may be zero.
      mean_curvature: the trace(A)/K to rescale to, or None not to rescale.

    Returns:
      A, symmetric and positive definite.
    """
    checks.check_positive("lam", lam)
    checks.check_nonnegative("gamma", gamma)
    checks.check_nonnegative("delta", delta)
    centroids = jnp.asarray(stats.centroids)
    K, low_rank = centroids.shape[0], checks.real(low_rank)
    if low_rank.ndim != 2 or low_rank.shape[0] != K:
        raise ValueError(f"low_rank must have shape [{K}, r], got {low_rank.shape}")
    A = jnp.eye(K, dtype=centroids.dtype) * lam + jnp.dot(low_rank, low_rank.T)
    A = A + laplacian(centroid_graph(centroids)) * gamma
    A = A + jnp.diag(tail_diagonal(stats.counts)) * delta
    if mean_curvature is None:
        return A
    checks.check_positive("mean_curvature", mean_curvature)
    return A * (mean_curvature * K / jnp.trace(A))
