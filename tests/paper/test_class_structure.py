"""Class statistics and CAPM's matrix, against plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.paper import class_structure as cs

CONSTANTS = {"lam": 1.0, "gamma": 0.7, "delta": 0.2, "mean_curvature": 2.0}


def partition(seed, n=60, K=4, d=3):
    draws = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(K), draws.integers(0, K, size=n - K)])
    features = draws.normal(size=(n, d)) + labels[:, None]
    return features.astype(np.float32), labels


def by_loops(features, labels, K, B):
    """A = λI + BBᵀ + γL_G + δD_tail, rescaled to trace 2K."""
    counts = [sum(1 for y in labels if y == k) for k in range(K)]
    centroids = [
        np.mean([x for x, y in zip(features, labels, strict=True) if y == k], 0) for k in range(K)
    ]
    square = np.array([[np.sum((a - b) ** 2) for b in centroids] for a in centroids])
    median = np.median([square[i, j] for i in range(K) for j in range(i)])
    graph = np.array(
        [[0 if i == j else np.exp(-square[i, j] / median) for j in range(K)] for i in range(K)]
    )
    graph = graph / max(sum(row) for row in graph)
    L = np.diag([sum(row) for row in graph]) - graph
    tail = np.array([np.sqrt(max(counts) / n) for n in counts])
    A = np.eye(K) + B @ B.T + 0.7 * L + 0.2 * np.diag(tail / np.mean(tail))
    return counts, np.array(centroids), graph, A * 2 * K / np.trace(A)


def test_statistics_graph_and_matrix_agree_with_loops():
    features, labels = partition(0)
    B = np.random.default_rng(9).normal(size=(4, 2)).astype(np.float32)
    counts, centroids, graph, A = by_loops(features.astype(np.float64), labels, 4, B)
    stats = cs.class_stats(features, labels, 4)
    np.testing.assert_array_equal(stats.counts, counts)
    np.testing.assert_allclose(stats.centroids, centroids, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(cs.centroid_graph(stats.centroids), graph, rtol=1e-4)
    actual = cs.capm_matrix(stats, low_rank=jnp.asarray(B), **CONSTANTS)
    np.testing.assert_allclose(actual, A, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(jnp.trace(actual) / 4, 2.0, rtol=1e-6)
    unscaled = cs.capm_matrix(stats, low_rank=B, **(CONSTANTS | {"mean_curvature": None}))
    np.testing.assert_allclose(
        actual / actual[0, 0], unscaled / unscaled[0, 0], rtol=1e-4, atol=1e-6
    )


def test_the_graph_is_a_graph_and_its_laplacian_is_semidefinite():
    for K in (2, 3, 10):
        centroids = np.random.default_rng(K).normal(size=(K, 6)).astype(np.float32)
        graph = np.asarray(jax.jit(cs.centroid_graph)(jnp.asarray(centroids)))
        assert np.all(graph >= 0) and np.array_equal(graph, graph.T)
        assert np.all(np.diag(graph) == 0)
        np.testing.assert_allclose(np.max(np.sum(graph, axis=1)), 1, rtol=1e-6)
        L = np.asarray(jax.jit(cs.laplacian)(jnp.asarray(graph)), np.float64)
        np.testing.assert_allclose(np.sum(L, axis=1), 0, atol=1e-6)
        assert np.min(np.linalg.eigvalsh(L)) > -1e-6
        x = np.random.default_rng(0).normal(size=K)
        energy = sum(graph[i, j] * (x[i] - x[j]) ** 2 for i in range(K) for j in range(K)) / 2
        np.testing.assert_allclose(x @ L @ x, energy, rtol=1e-4)


def test_the_tail_is_heaviest_for_the_rarest():
    tail = cs.tail_diagonal(jnp.array([100.0, 25.0, 4.0]))
    np.testing.assert_allclose(tail, np.array([1, 2, 5]) / (8 / 3), rtol=1e-6)


def test_a_vmap_over_partitions_is_one_by_one():
    B = jnp.asarray(np.random.default_rng(9).normal(size=(4, 2)), jnp.float32)

    def matrix(features, labels):
        return cs.capm_matrix(cs.class_stats(features, labels, 4), low_rank=B, **CONSTANTS)

    pairs = [partition(seed) for seed in range(3)]
    features, labels = (jnp.asarray(np.stack(part)) for part in zip(*pairs, strict=True))
    together = jax.jit(jax.vmap(matrix))(features, labels)
    alone = np.stack([matrix(*pair) for pair in pairs])
    np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-6)
    assert np.max(np.abs(alone[0] - alone[1])) > 1e-3


def test_the_matrix_is_definite_also_without_its_parts():
    stats = cs.class_stats(*partition(1), 4)
    for removed in ("gamma", "delta"):
        A = cs.capm_matrix(stats, low_rank=jnp.zeros((4, 0)), **(CONSTANTS | {removed: 0.0}))
        assert np.array_equal(A, A.T)
        assert np.min(np.linalg.eigvalsh(A)) > 0.5
    bare = cs.capm_matrix(
        stats, lam=3.0, gamma=0.0, delta=0.0, low_rank=jnp.zeros((4, 0)), mean_curvature=2.0
    )
    np.testing.assert_allclose(bare, 2 * np.eye(4), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cs.class_stats(jnp.ones((3, 2)), jnp.array([0, 1]), 2), "features and labels"),
        (lambda: cs.class_stats(jnp.ones((3, 2)), jnp.array([0, 1, 2]), 2), "labels must be in"),
        (lambda: cs.class_stats(jnp.ones((2, 2)), jnp.array([0, 0]), 2), "count of each class"),
        (lambda: cs.centroid_graph(jnp.zeros((2, 3))), "median squared distance .* got 0"),
        (lambda: cs.laplacian(-jnp.ones((2, 2))), "graph weights must be nonnegative"),
        (lambda: cs.laplacian(jnp.array([[0.0, 1.0], [0.5, 0.0]])), "graph weights .* symmetric"),
        (lambda: cs.laplacian(jnp.ones((2, 3))), r"graph weights .* got \(2, 3\)"),
        (lambda: cs.tail_diagonal(jnp.array([3, 0])), r"class_counts must be positive .* \[3, 0\]"),
    ],
)
def test_bad_structure_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("lam", 0.0, "lam must be positive"),
        ("gamma", -0.1, "gamma must be nonnegative"),
        ("delta", -0.1, "delta must be nonnegative"),
        ("mean_curvature", 0.0, "mean_curvature must be positive"),
        ("mean_curvature", -2.0, "mean_curvature must be positive"),
        ("low_rank", jnp.zeros((3, 1)), r"low_rank must have shape \[4, r\], got \(3, 1\)"),
        ("low_rank", jnp.zeros(4), r"low_rank must have shape \[4, r\]"),
    ],
)
def test_bad_constants_of_the_matrix_are_refused(name, value, message):
    stats = cs.class_stats(*partition(1), 4)
    with pytest.raises(ValueError, match=message):
        cs.capm_matrix(stats, **({"low_rank": jnp.zeros((4, 0)), **CONSTANTS} | {name: value}))
