"""Bounds of hyperbolic generators at K = 3, ridge by ridge, against dense grids in NumPy."""

import numpy as np
import pytest

from pgeom.diagnosis import bounds
from pgeom.generators import combine, hyperbolic, quadratic

W = np.array([[0.6, -0.5, 0.2], [-0.3, 0.8, 0.1]])
RIDGES = {"lam": 0.4, "a": np.array([0.7, 1.1]), "rho": np.array([0.25, 0.5]), "scale": 1.5}
# the ridge turns on one side of the range of wᵀp, on the other, on both, on neither
OFFSETS = [np.array(b) for b in ([0.55, 0.75], [-0.4, -0.25], [0.05, 0.2], [2.0, -3.0])]


def ridge_values(b, points):
    """v_r = (w_rᵀp − b_r)/ρ_r at each point, `[points, R]`."""
    return (points @ W.T - b) / RIDGES["rho"]


def steepest(v):
    """|2 tanh v sech² v|."""
    return np.abs(2 * np.tanh(v) / np.cosh(v) ** 2)


@pytest.mark.parametrize("b", OFFSETS, ids=["high", "low", "inside", "away"])
def test_the_tangent_lipschitz_bound_uses_the_peak_that_is_reached(b):
    """Of each ridge, the largest |2 tanh v sech² v| between its lowest and its highest vertex."""
    ends = ridge_values(b, np.eye(3))
    between = np.linspace(ends.min(axis=0), ends.max(axis=0), 20_001)
    tangent = W - W.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(tangent, axis=1)
    weights = RIDGES["a"] / RIDGES["rho"] * steepest(between).max(axis=0) * norms
    expected = 1.5 * np.linalg.eigvalsh(tangent.T @ (weights[:, None] * tangent))[-1]
    actual = bounds.hessian_lipschitz(hyperbolic(w=W, b=b, **RIDGES), 3)
    np.testing.assert_allclose(actual.sharp, expected, rtol=2e-6)
    paper = 4 / (3 * np.sqrt(3)) * RIDGES["a"] / RIDGES["rho"] * np.linalg.norm(W, axis=1) ** 3
    np.testing.assert_allclose(actual.paper, 1.5 * paper.sum(), rtol=1e-6)


@pytest.mark.parametrize("b", [-0.5, 0.9], ids=["low", "high"])
def test_one_ridge_attains_its_tangent_lipschitz_bound(b):
    """Along a tangent w the Hessian is a multiple of wwᵀ; its slope is the bound at the peak."""
    w = np.array([[2.0, -1.0, -1.0]]) / np.sqrt(6)
    # wᵀp is between −1/√6 and 2/√6, which holds only one of the two peaks
    F = hyperbolic(lam=0.3, a=0.9, rho=0.2, w=w, b=b, scale=1.5)
    p = np.linspace([0, 0.5, 0.5], [1, 0, 0], 20_001)
    weight = 1.5 * 0.9 / np.cosh((p @ w[0] - b) / 0.2) ** 2  # H = 1.5·0.3·I + weight·wwᵀ
    observed = np.max(np.abs(np.diff(weight)) / np.linalg.norm(np.diff(p, axis=0), axis=1))
    actual = bounds.hessian_lipschitz(F, 3)
    np.testing.assert_allclose(actual.sharp, observed, rtol=1e-5)
    np.testing.assert_allclose(actual.paper, 1.5 * 0.9 / 0.2 * 4 / (3 * np.sqrt(3)), rtol=1e-6)


@pytest.mark.parametrize("b", OFFSETS, ids=["high", "low", "inside", "away"])
def test_the_range_adds_every_ridge_at_its_worst_vertex(b):
    """s[λ + Σ_r a_r ρ_r² max_k D(v_y, v_k)], the worst label y; λ is that of two vertices."""
    v = ridge_values(b, np.eye(3))
    value, slope = np.log(np.cosh(v)), np.tanh(v)
    # D(v_y, v_k) by its definition, [y, k, R]
    apart = value[:, None] - value[None] - slope[None] * (v[:, None] - v[None])
    ridges = RIDGES["a"] * RIDGES["rho"] ** 2 * apart.max(axis=1)
    expected = np.max(1.5 * (0.4 + ridges.sum(axis=1)))
    F = hyperbolic(w=W, b=b, **RIDGES)
    actual = bounds.loss_range(F, 3)
    np.testing.assert_allclose(actual.sharp, expected, rtol=1e-5)
    M = 1.5 * (0.4 + np.sum(RIDGES["a"] * np.sum(W**2, axis=1)))
    np.testing.assert_allclose(actual.paper, M, rtol=1e-6)


THREE = {  # W, b, ρ and a: the worst vertices give the range, or the curvature does
    "vertices": (
        [[0.6, -0.6, -0.1], [0.1, -0.4, 0.9], [-0.3, -0.2, 0.3]],
        *([-0.3, -0.1, 0.3], [0.5, 0.3, 0.5], [1.1, 1.2, 0.4]),
    ),
    "curvature": (
        [[0.0, -0.9, -0.4], [0.7, 0.0, -0.4], [0.0, -0.7, 0.4]],
        *([-0.4, -0.1, -0.7], [1.0, 5.0, 5.0], [0.5, 1.2, 1.0]),
    ),
}


@pytest.mark.parametrize("which", THREE)
def test_the_range_of_three_ridges_is_the_smaller_of_two_bounds(which):
    """Each ridge at its own worst vertex of one label, or M_T, both by their definitions."""
    w, b, rho, a = map(np.array, THREE[which])
    v = (w.T - b) / rho
    value, slope = np.log(np.cosh(v)), np.tanh(v)
    apart = value[:, None] - value[None] - slope[None] * (v[:, None] - v[None])  # [y, k, R]
    by_vertices = 1.5 * (0.4 + np.max(np.sum(a * rho**2 * apart.max(axis=1), axis=1)))
    # sech² is largest where |v| is least between the lowest and the highest vertex
    sech2 = 1 / np.cosh(np.linspace(v.min(axis=0), v.max(axis=0), 20_001)) ** 2
    tangent = w - w.mean(axis=1, keepdims=True)
    H = 0.4 * (np.eye(3) - 1 / 3) + tangent.T @ ((a * sech2.max(axis=0))[:, None] * tangent)
    by_curvature = 1.5 * np.linalg.eigvalsh(H)[-1]
    assert (by_vertices < 0.9 * by_curvature) == (which == "vertices")
    assert (by_curvature < 0.9 * by_vertices) == (which == "curvature")
    F = hyperbolic(lam=0.4, a=a, rho=rho, w=w, b=b, scale=1.5)
    actual = bounds.loss_range(F, 3).sharp
    np.testing.assert_allclose(actual, min(by_vertices, by_curvature), rtol=1e-5)


def test_the_range_of_a_sum_is_the_sum_of_the_ranges_up_to_the_largest_curvature():
    A = np.diag([1.0, 2.0, 4.0])
    F = hyperbolic(w=W, b=OFFSETS[2], **RIDGES)
    total = combine((2.0, quadratic(A)), (0.5, F))
    # of a quadratic: ½(A_ii + A_jj), at most ½(2 + 4)
    parts = 2.0 * 3.0 + 0.5 * bounds.loss_range(F, 3).sharp
    actual = bounds.loss_range(total, 3)
    largest = bounds.logit_gradient(total, 3).sharp / bounds.SHARP_GRADIENT  # M_T
    assert parts < largest
    np.testing.assert_allclose(actual.sharp, parts, rtol=1e-6)
    lipschitz = bounds.hessian_lipschitz(total, 3)
    alone = bounds.hessian_lipschitz(F, 3)
    np.testing.assert_allclose(lipschitz[:2], np.multiply(0.5, alone[:2]), rtol=1e-6)
