"""Softmax, its logarithm, odds and cross-entropy: exact at both ends."""

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.geometry.softmax import cross_entropy, log_odds_against, log_softmax, softmax


def test_softmax_and_its_logarithm_keep_their_digits_next_to_a_vertex():
    """∂p_j/∂z_k and ∂log p_j/∂z_k at 1 − p_0 = 4e-9, where 1 − p_0 itself rounds to zero."""
    z = jnp.array([0.0, np.log(3e-9), np.log(1e-9)], jnp.float32)
    p = np.exp(np.asarray(z, np.float64))
    p = p / p.sum()
    rest = np.array([p[1] + p[2], 1 - p[1], 1 - p[2]])  # 1 − p
    expected = np.diag(p * rest) - np.outer(p, p) * (1 - np.eye(3))
    for floored in (False, True):
        actual = jax.jit(jax.jacobian(softmax), static_argnums=1)(z, floored)
        np.testing.assert_allclose(actual, expected, rtol=1e-5)
    actual = jax.jit(jax.jacobian(log_softmax))(z)
    np.testing.assert_allclose(actual, expected / p[:, None], rtol=1e-5)


def test_a_logit_of_minus_infinity_rules_its_class_out():
    z = jnp.array([0.5, -jnp.inf, -1.0])
    both = jax.jit(jax.value_and_grad(cross_entropy))
    value, slope = both(z, 0)
    allowed = jnp.array([0.5, -1.0])
    np.testing.assert_allclose(value, jax.nn.logsumexp(allowed) - 0.5, rtol=1e-6)
    assert slope[1] == 0 and np.all(np.isfinite(slope))
    value, slope = both(jnp.array([0.5, -jnp.inf, -jnp.inf]), 0)  # one class is left
    assert value == 0 and not np.any(slope)


def test_log_odds_are_exact_at_both_ends():
    for u in (-80.0, -20.0, 0.0, 20.0, 80.0):
        z = jnp.array([0.0, u - np.log(2), u - np.log(2)])
        np.testing.assert_allclose(log_odds_against(z, 0), u, rtol=1e-6, atol=1e-6)


def test_what_all_logits_have_in_common_costs_no_digits(x64):
    for z in ([-1.0, 0.0, 0.0], [0.25, -3.0, 2.0], [1.5, -40.0, -41.0]):
        z = np.array(z)
        expected = [cross_entropy(jnp.asarray(z), label) for label in range(3)]
        for shift in (512.0, -1e4, 2.0**40):
            shifted = z + shift
            assert np.array_equal(shifted - shift, z)  # the logits themselves lose nothing
            actual = [cross_entropy(jnp.asarray(shifted), label) for label in range(3)]
            np.testing.assert_allclose(actual, expected, rtol=1e-15)
