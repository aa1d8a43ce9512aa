"""Points and directions of the simplex, and softmax, log-odds and cross-entropy at both ends."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom import simplex


def test_vertices_and_displacements_are_exact_next_to_a_vertex():
    p = jnp.array([1.0, 3e-9, 1e-9])  # 1 − p_y has rounded to zero
    e_y = simplex.vertex(0, 3)
    assert e_y.tolist() == [1, 0, 0]
    expected = np.array([4e-9, -3e-9, -1e-9])
    np.testing.assert_allclose(simplex.displacement(e_y, p, e_y), expected, rtol=1e-6)
    np.testing.assert_allclose(simplex.displacement(e_y, p), expected, rtol=1e-6)
    slopes = jax.jacobian(simplex.displacement, (0, 1))(e_y, p)
    np.testing.assert_array_equal(slopes, [np.eye(3), -np.eye(3)])


def test_one_entry_is_picked_and_one_largest_is_marked():
    values = jnp.array([3.0, 7.0, 7.0, 1.0])
    assert [simplex.pick(values, label) for label in range(4)] == [3, 7, 7, 1]
    assert simplex.argmax_mask(values).tolist() == [False, True, False, False]


@pytest.mark.parametrize("K", [2, 3, 7])
def test_the_tangent_basis_is_orthonormal_and_sums_to_zero(K):
    Q = simplex.tangent_basis(K)
    assert Q.shape == (K, K - 1)
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
    np.testing.assert_allclose(simplex.project(jnp.asarray(others)), others, atol=1e-14)


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_the_interior_changes_nothing_but_zeros_and_has_derivative_one(power):
    p = jnp.array([0.0, 1e-39, 1e-7, 1 - 1e-7])
    floored = simplex.interior(p, power)
    np.testing.assert_allclose(floored[:2], float(np.finfo(np.float32).tiny) ** power, rtol=1e-6)
    assert np.array_equal(floored[2:], p[2:])
    assert jax.jacobian(lambda p: simplex.interior(p, power))(p).tolist() == np.eye(4).tolist()


def test_log_entries_are_infinite_at_zero_with_the_slope_next_to_it():
    value, slope = jax.vmap(jax.value_and_grad(simplex.log_entries))(jnp.array([0.0, 0.25]))
    np.testing.assert_allclose(value, [-np.inf, np.log(0.25)], rtol=1e-6)
    assert slope[0] > 1e37 and np.isfinite(slope[0]) and slope[1] == 4


def test_draws_lie_on_the_simplex_and_have_its_moments():
    points = np.asarray(simplex.uniform(jax.random.key(0), 4, 20000), np.float64)
    np.testing.assert_allclose(np.sum(points, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(np.mean(points, axis=0), 0.25, atol=0.01)
    np.testing.assert_allclose(np.var(points, axis=0), 0.25 * 0.75 / 5, rtol=0.05)


# softmax ------------------------------------------------------------------------------------------


def test_softmax_and_its_logarithm_keep_their_digits_next_to_a_vertex():
    """∂p_j/∂z_k and ∂log p_j/∂z_k at 1 − p_0 = 4e-9, where 1 − p_0 itself rounds to zero."""
    z = jnp.array([0.0, np.log(3e-9), np.log(1e-9)], jnp.float32)
    p = np.exp(np.asarray(z, np.float64))
    p = p / p.sum()
    rest = np.array([p[1] + p[2], 1 - p[1], 1 - p[2]])  # 1 − p
    expected = np.diag(p * rest) - np.outer(p, p) * (1 - np.eye(3))
    for floored in (False, True):
        actual = jax.jit(jax.jacobian(simplex.softmax), static_argnums=1)(z, floored)
        np.testing.assert_allclose(actual, expected, rtol=1e-5)
    actual = jax.jit(jax.jacobian(simplex.log_softmax))(z)
    np.testing.assert_allclose(actual, expected / p[:, None], rtol=1e-5)
    np.testing.assert_allclose(simplex.log_softmax(z)[0], -4e-9, rtol=1e-5)


@pytest.mark.parametrize("function", [simplex.softmax, simplex.log_softmax])
def test_second_derivatives_are_those_of_jax(function, x64):
    """Far from a vertex and close to one, where tangents are reduced to gaps."""
    plain = getattr(jax.nn, function.__name__)
    for z in ([0.3, -0.2, 0.5], [4.0, 0.0, 1.0]):
        actual, expected = (jax.jacfwd(jax.jacfwd(f))(jnp.array(z)) for f in (function, plain))
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


def test_a_logit_of_minus_infinity_rules_its_class_out():
    both = jax.jit(jax.value_and_grad(simplex.softmax_cross_entropy))
    value, slope = both(jnp.array([0.5, -jnp.inf, -1.0]), 0)
    np.testing.assert_allclose(value, np.log1p(np.exp(-1.5)), rtol=1e-6)
    assert slope[1] == 0 and np.all(np.isfinite(slope))
    value, slope = both(jnp.array([0.5, -jnp.inf, -jnp.inf]), 0)  # one class is left
    assert value == 0 and not np.any(slope)


def test_log_odds_are_exact_at_both_ends():
    for u in (-80.0, -20.0, 0.0, 20.0, 80.0):
        z = jnp.array([0.0, u - np.log(2), u - np.log(2)])
        np.testing.assert_allclose(simplex.log_odds_against(z, 0), u, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("label", [0, 1, 2])
def test_offsets_are_added_to_the_logits(label, x64):
    z, offsets = jnp.array([0.3, -1.0, 0.8]), jnp.array([-2.0, 0.5, 0.25])

    def expected(z, offsets):
        return -jax.nn.log_softmax(z + offsets)[label]

    def actual(z, offsets):
        return simplex.softmax_cross_entropy(z, label, offsets)

    for derivative in (lambda f: f, jax.grad, jax.hessian, lambda f: jax.grad(f, 1)):
        one, other = (derivative(f)(z, offsets) for f in (actual, expected))
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


def test_expected_cross_entropy_of_any_weights(x64):
    z, eta = jnp.array([0.3, -1.0, 0.8]), jnp.array([0.5, 0.0, 1.25])

    def expected(z, eta):
        return -jnp.sum(eta * jax.nn.log_softmax(z))

    for derivative in (lambda f: f, jax.grad, jax.hessian, lambda f: jax.grad(f, 1)):
        one, other = (derivative(f)(z, eta) for f in (simplex.expected_cross_entropy, expected))
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


def test_what_all_logits_have_in_common_costs_no_digits(x64):
    for z in ([-1.0, 0.0, 0.0], [1.5, -40.0, -41.0]):
        z = np.array(z)
        expected = [simplex.softmax_cross_entropy(jnp.asarray(z), label) for label in range(3)]
        for shift in (512.0, -1e4, 2.0**40):
            shifted = z + shift
            assert np.array_equal(shifted - shift, z)  # the logits themselves lose nothing
            logits = jnp.asarray(shifted)
            actual = [simplex.softmax_cross_entropy(logits, label) for label in range(3)]
            np.testing.assert_allclose(actual, expected, rtol=1e-15)
        np.testing.assert_array_equal(simplex.centred(logits), z - z.max())
