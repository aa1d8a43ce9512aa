"""Class statistics of a training partition, and the matrix A that CAPM makes of them.

Everything is a pure function of arrays: a batch of partitions is a vmap.

>>> import jax.numpy as jnp
>>> x = jnp.array([[0.0], [2.0], [4.0]])
>>> class_stats(x, jnp.array([0, 0, 1]), 2)
ClassStats(counts=Array([2., 1.], dtype=float32), centroids=Array([[1.],
       [4.]], dtype=float32))
"""

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import edge
from pgeom.types import ClassStats


def class_stats(
    features: jax.Array | np.ndarray, labels: jax.Array | np.ndarray, K: int
) -> ClassStats:
    """Counts `[K]` and centroids `[K, d]` of the observed labels.

    Args:
      features: `[n, d]`, standardised.
      labels: `[n]`, observed.
      K: the number of classes.
    """
    edge.check_num_classes(K)
    xp = np if isinstance(features, np.ndarray) else jnp  # on the host nothing is compiled
    features, labels = (features if xp is np else edge.real(features)), xp.asarray(labels)
    if features.ndim != 2 or labels.shape != features.shape[:1]:
        raise ValueError(
            f"features and labels must have shapes [n, d] and [n], got {features.shape} and "
            f"{labels.shape}"
        )
    edge.integer_labels(labels, (len(labels), K), "one-hot rows")
    members = xp.eye(K, dtype=features.dtype)[labels]
    counts = members.sum(axis=0)
    edge.check_positive("the count of each class in labels", counts)
    return ClassStats(counts, xp.dot(members.T, features) / counts[:, None])


def centroid_graph(centroids: jax.Array | np.ndarray) -> jax.Array:
    """Symmetric nonnegative weights between classes, exp(−d²/median d²), `[K, K]`.

    d is the distance of two centroids, the median is over pairs of classes, the diagonal is
    zero, and the largest row sum is one. A kernel and not a cosine: cosines of standardised
    centroids are negative for some pairs, and the Laplacian then loses its sign.

    Args:
      centroids: `[K, d]`.
    """
    K = centroids.shape[0]
    square = jnp.sum((centroids[:, None] - centroids[None]) ** 2, axis=-1)
    median = jnp.median(square[np.triu_indices(K, 1)])
    edge.check_positive("the median squared distance of centroids", median)
    weights = jnp.where(np.eye(K, dtype=bool), 0.0, jnp.exp(-square / median))
    return weights / jnp.max(jnp.sum(weights, axis=1))


def laplacian(weights: jax.Array | np.ndarray) -> jax.Array:
    """L_G = Diag(W1) − W, positive semidefinite, of symmetric nonnegative weights `[K, K]`."""
    weights = jnp.asarray(weights)
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ValueError(f"graph weights must have shape [K, K], got {weights.shape}")
    edge.check_nonnegative("graph weights", weights)
    if (known := edge.concrete(weights)) is not None:
        symmetric = np.abs(known - known.T) <= 1e-6 * np.abs(known).max()
        edge.require(symmetric, "graph weights", "symmetric", weights)
    return jnp.diag(jnp.sum(weights, axis=1)) - weights


def tail_diagonal(counts: jax.Array | np.ndarray) -> jax.Array:
    """√(n_max/n_k) over its mean, `[K]`: the rarer the class, the larger."""
    counts = edge.class_counts(counts)
    tail = jnp.sqrt(jnp.max(counts) / counts)
    return tail / jnp.mean(tail)


def capm_matrix(
    stats: ClassStats, *, lam, gamma, delta, low_rank: jax.Array | np.ndarray, mean_curvature=None
) -> jax.Array:
    """A = λI + BBᵀ + γL_G + δD_tail, Eq. (capm-matrix).

    Args:
      stats: of the training partition.
      lam: λ > 0.
      gamma: γ ≥ 0, the weight of the centroid graph.
      delta: δ ≥ 0, the weight of the tail diagonal.
      low_rank: B, `[K, r]`; r may be zero.
      mean_curvature: the trace(A)/K to rescale to, or None to leave A as it is.

    Returns:
      `[K, K]`, symmetric and positive definite.
    """
    edge.check_positive("lam", lam)
    edge.check_nonnegative("gamma", gamma)
    edge.check_nonnegative("delta", delta)
    K, low_rank = stats.counts.shape[0], edge.real(low_rank)
    if low_rank.ndim != 2 or low_rank.shape[0] != K:
        raise ValueError(f"low_rank must have shape [{K}, r], got {low_rank.shape}")
    A = lam * jnp.eye(K, dtype=stats.centroids.dtype) + jnp.dot(low_rank, low_rank.T)
    A = A + gamma * laplacian(centroid_graph(stats.centroids))
    A = A + delta * jnp.diag(tail_diagonal(stats.counts))
    if mean_curvature is None:
        return A
    edge.check_positive("mean_curvature", mean_curvature)
    return A * (mean_curvature * K / jnp.trace(A))
