"""Softmax, its logarithm, odds and cross-entropy: exact at both ends."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom.simplex import log_odds_against, log_softmax, softmax, softmax_cross_entropy


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
    both = jax.jit(jax.value_and_grad(softmax_cross_entropy))
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
        expected = [softmax_cross_entropy(jnp.asarray(z), label) for label in range(3)]
        for shift in (512.0, -1e4, 2.0**40):
            shifted = z + shift
            assert np.array_equal(shifted - shift, z)  # the logits themselves lose nothing
            actual = [softmax_cross_entropy(jnp.asarray(shifted), label) for label in range(3)]
            np.testing.assert_allclose(actual, expected, rtol=1e-15)


def product(loss, label, v):
    """The Hessian at (0, −16, −16.3) times v, in float32."""
    z, v = jnp.array([0.0, -16.0, -16.3]), jnp.asarray(v, jnp.float32)
    return jax.jit(lambda z, v: jax.jvp(jax.grad(lambda z: loss(z, label)), (z,), (v,))[1])(z, v)


def likelihoods():
    L, counts = pgeom.losses, np.full(3, 9)
    return {
        "cross-entropy": L.cross_entropy,
        "label smoothing": L.label_smoothing,
        "shannon": pgeom.on_logits(pgeom.bregman_score(pgeom.generators.shannon)),
        "balanced softmax": lambda z, y: L.balanced_softmax(z, y, class_counts=counts),
        "ldam": lambda z, y: L.ldam(z, y, class_counts=counts, max_margin=0.0, scale=1.0),
    }


@pytest.mark.parametrize("name", likelihoods())
@pytest.mark.parametrize("label", [0, 1, 2])
@pytest.mark.parametrize("v", [(1, 2, -1), (1, 1, -1), (5, 0, 5), (0, 0, 1)])
def test_second_derivatives_keep_their_digits_next_to_a_vertex(name, label, v):
    """Of −log p_y it is p_k Σ_j p_j (v_k − v_j), far below the rounding of v itself."""
    with jax.enable_x64(True):
        p = np.asarray(jax.nn.softmax(np.array(np.float32([0, -16, -16.3]), np.float64)))
    v64 = np.array(v, np.float64)
    expected = p * np.sum(p * (v64[:, None] - v64), axis=1)
    actual = product(likelihoods()[name], label, v)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


@pytest.mark.parametrize("K", [2, 100, 10_000])
@pytest.mark.parametrize("scale", [1, 8, 40])
def test_the_gradient_of_the_spherical_score_is_right_in_every_entry(K, scale):
    """√r_y (r − e_y) with r = softmax(2z), in float32."""
    z = scale * np.random.default_rng(K).normal(size=K).astype(np.float32)
    loss = pgeom.on_logits(pgeom.bregman_score(pgeom.generators.spherical))
    gradient = jax.jit(jax.grad(loss))
    r = np.exp(2 * (z.astype(np.float64) - z.max()))
    r = r / r.sum()
    for label in (0, int(np.argmax(z)), K - 1):
        expected = np.sqrt(r[label]) * r
        expected[label] = -np.sqrt(r[label]) * (np.sum(r[:label]) + np.sum(r[label + 1 :]))
        normal = np.abs(expected) > 1e-33
        actual = gradient(jnp.asarray(z), label)
        np.testing.assert_allclose(actual[normal], expected[normal], rtol=2e-5)
        norm = np.linalg.norm(expected)
        if norm > 1e-33:
            assert np.linalg.norm(actual - expected) <= 2e-6 * norm  # exp of gaps that round


@pytest.mark.parametrize("gap", [4.0, 16.0, 30.0])
def test_the_gradient_of_active_passive_where_the_normalised_term_is_flat(gap):
    """(d/du)[a/(a + b) + σ(u)], a = softplus(u), b = softplus(−u), with the wrong label."""
    with jax.enable_x64(True):
        a, b = np.log1p(np.exp(-gap)) + gap, np.log1p(np.exp(-gap))
        p = 1 / (1 + np.exp(gap))
        expected = ((1 - p) * b + p * a) / (a + b) ** 2 + p * (1 - p)
    actual = jax.jit(jax.grad(pgeom.losses.active_passive))(jnp.array([gap, 0.0]), 1)
    np.testing.assert_allclose(actual, [expected, -expected], rtol=1e-5)
