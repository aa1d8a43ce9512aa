"""Points and directions of the simplex."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom import simplex


def test_vertices_and_displacements_are_exact_next_to_a_vertex():
    p = jnp.array([1.0, 3e-9, 1e-9])  # 1 − p_y has rounded to zero
    e_y = simplex.vertex(0, 3)
    assert e_y.tolist() == [1, 0, 0]
    d = simplex.displacement(e_y, p, e_y)
    np.testing.assert_allclose(d, np.array([4e-9, -3e-9, -1e-9]), rtol=1e-6)


@pytest.mark.parametrize("K", [2, 3, 7])
def test_the_tangent_basis_is_orthonormal_and_sums_to_zero(K):
    Q = simplex.tangent_basis(K)
    np.testing.assert_allclose(Q.T @ Q, np.eye(K - 1), atol=1e-14)
    np.testing.assert_allclose(np.sum(Q, axis=0), 0, atol=1e-14)


def test_projection_is_the_nearest_point(x64):
    draws = np.random.default_rng(0)
    x, others = draws.normal(size=(50, 5)), draws.dirichlet(np.ones(5), size=50)
    p = np.asarray(jax.jit(simplex.project)(jnp.asarray(x)))
    assert np.all(p >= 0)
    np.testing.assert_allclose(np.sum(p, axis=1), 1, atol=1e-14)
    # the variational inequality ⟨x − p, q − p⟩ ≤ 0 for every q of the simplex
    assert np.max(np.einsum("ik,jik->ji", x - p, others[:, None] - p[None])) < 1e-12
    assert np.array_equal(simplex.project(jnp.asarray(x).T, axis=0).T, p)
    inside = simplex.project(jnp.asarray(others))
    np.testing.assert_allclose(inside, others, atol=1e-14)
    np.testing.assert_array_equal(simplex.project(jnp.asarray(x).T, axis=0), p.T)


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_the_interior_changes_nothing_but_zeros_and_has_derivative_one(power):
    p = jnp.array([0.0, 1e-39, 1e-7, 1 - 1e-7])
    floored = simplex.interior(p, power)
    np.testing.assert_allclose(floored[:2], float(np.finfo(np.float32).tiny) ** power, rtol=1e-6)
    assert np.array_equal(floored[2:], p[2:])
    assert jax.jacobian(lambda p: simplex.interior(p, power))(p).tolist() == np.eye(4).tolist()


def test_draws_lie_on_the_simplex_and_have_its_moments():
    points = np.asarray(simplex.uniform(jax.random.key(0), 4, 20000), np.float64)
    np.testing.assert_allclose(np.sum(points, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(np.mean(points, axis=0), 0.25, atol=0.01)
    np.testing.assert_allclose(np.var(points, axis=0), 0.25 * 0.75 / 5, rtol=0.05)
