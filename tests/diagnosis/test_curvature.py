"""Envelopes, mean curvature and matching it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom import simplex
from pgeom.diagnosis import curvature
from pgeom.diagnosis.curvature import envelope, match_curvature, mean_curvature
from pgeom.generators import hyperbolic, quadratic
from tests.diagnosis import ridges

pytestmark = pytest.mark.usefixtures("unchecked_module")

KEY = jax.random.key(0)


def tangent_eigenvalues(H):
    K = len(H)
    centred = np.eye(K) - 1 / K
    return np.sort(np.linalg.eigvalsh(centred @ H @ centred + 1e6 * np.ones((K, K)) / K))[:-1]


def test_the_hessian_of_any_function():
    points = jnp.asarray(ridges.POINTS, jnp.float32).reshape(4, 5, 4)
    actual = jax.jit(curvature.hessian(ridges.F))(points)
    expected = np.stack([ridges.hessian(p) for p in ridges.POINTS]).reshape(4, 5, 4, 4)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_a_quadratic_is_exact():
    root = np.random.default_rng(0).normal(size=(5, 5))
    A = (np.eye(5) + root @ root.T).astype(np.float32)
    actual = envelope(quadratic(A), 5)
    whole, tangent = np.linalg.eigvalsh(A.astype(np.float64)), tangent_eigenvalues(A)
    np.testing.assert_allclose(actual[:4], [*whole[[0, -1]], *tangent[[0, -1]]], rtol=1e-6)
    assert actual.how == "exact"


def test_the_hyperbolic_closed_form_holds_every_hessian():
    actual = envelope(ridges.F, 4)
    given = ridges.PARAMETERS
    assert actual.how == "closed form"
    np.testing.assert_allclose(actual.m, given["scale"] * given["lam"], rtol=1e-6)
    norms = np.sum(given["w"] ** 2, axis=1)
    largest = given["scale"] * (given["lam"] + np.sum(given["a"] * norms))
    np.testing.assert_allclose(actual.M, largest, rtol=1e-6)
    assert actual.m <= actual.m_tangent <= actual.M_tangent <= actual.M
    for p in [*ridges.POINTS, *np.eye(4)]:
        H = ridges.hessian(p)
        whole, tangent = np.linalg.eigvalsh(H), tangent_eigenvalues(H)
        assert actual.m - 1e-6 <= whole[0] and whole[-1] <= actual.M + 1e-6
        assert actual.m_tangent - 1e-5 <= tangent[0] and tangent[-1] <= actual.M_tangent + 1e-5


def test_attained_tangent_envelopes():
    """theory.md, section 5: one centred ridge attains M; fewer ridges than K − 1 leave sλ."""
    w = np.array([[1.0, -1.0, 0.0]]) / np.sqrt(2)
    ridge = {"lam": 0.5, "a": 0.8, "rho": 0.3, "w": w, "scale": 1.5}
    actual = envelope(hyperbolic(b=0.0, **ridge), 3)
    np.testing.assert_allclose(actual.M_tangent, actual.M, rtol=1e-6)
    np.testing.assert_allclose(actual.M, 1.5 * (0.5 + 0.8), rtol=1e-6)
    np.testing.assert_allclose(actual.m_tangent, 1.5 * 0.5, rtol=1e-6)
    # beyond the range of wᵀp the ridge never turns: sech² at the nearest and the farthest vertex
    away = envelope(hyperbolic(b=1.0, **ridge), 3)
    v = (1 / np.sqrt(2) - 1.0) / 0.3
    expected = 1.5 * (0.5 + 0.8 / np.cosh(v) ** 2)
    np.testing.assert_allclose(away.M_tangent, expected, rtol=1e-6)
    two = envelope(hyperbolic(b=1.0, **(ridge | {"w": w[:, :2]})), 2)
    v = (-1 / np.sqrt(2) - 1.0) / 0.3
    np.testing.assert_allclose(two.m_tangent, 1.5 * (0.5 + 0.8 / np.cosh(v) ** 2), rtol=1e-6)


def test_other_functions_are_searched_and_said_to_be():
    actual = envelope(lambda p: jnp.sum(p**3), 3)
    assert actual.how == "searched"
    np.testing.assert_allclose(actual[:2], [0.0, 6.0], atol=1e-4)  # 6p_k at the vertices
    # on the tangent space: 0 next to a vertex, (6 + 0)/2 along e_1 − e_2 … 4 across e_1
    np.testing.assert_allclose(actual.m_tangent, 0.0, atol=1e-3)
    np.testing.assert_allclose(actual.M_tangent, 4.0, rtol=1e-4)


def test_mean_curvature_agrees_with_autodiff_over_the_same_draws():
    A = np.diag([1.0, 2.0, 3.0, 6.0]).astype(np.float32)
    assert mean_curvature(quadratic(A), 4, key=KEY) == 3.0
    F = ridges.F
    special = mean_curvature(F, 4, key=KEY)
    generic = jax.jit(lambda: mean_curvature(lambda p: F(p), 4, key=KEY))()
    np.testing.assert_allclose(special, generic, rtol=1e-5)
    draws = np.asarray(simplex.uniform(KEY, 4, curvature.DRAWS), np.float64)
    expected = np.mean([np.trace(ridges.hessian(p)) / 4 for p in draws])
    np.testing.assert_allclose(special, expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["quadratic", "hyperbolic", "user"])
def test_matched_curvature_is_the_target(name):
    made = {
        "quadratic": lambda: quadratic(jnp.diag(jnp.array([1.0, 2.0, 3.0, 6.0]))),
        "hyperbolic": lambda: ridges.F,
        "user": lambda: lambda p: jnp.sum(p**3),
    }
    F = made[name]()
    match = jax.jit(lambda: match_curvature(F, 4, target=2.0, key=KEY))
    matched = match_curvature(F, 4, target=2.0, key=KEY) if name != "user" else match()
    actual = jax.jit(lambda: mean_curvature(matched, 4, key=KEY))()
    np.testing.assert_allclose(actual, 2.0, rtol=1e-5)
    p = jnp.array([0.1, 0.2, 0.3, 0.4])
    ratio = matched(p) / F(p)
    np.testing.assert_allclose(ratio, matched(p[::-1]) / F(p[::-1]), rtol=1e-5)
