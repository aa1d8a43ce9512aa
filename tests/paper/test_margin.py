"""The smoothed margin, its penalty, their exact ranges, and annealing."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.paper import margin

CONSTANTS = {"tau": 0.15, "kappa": 0.2, "nu": 0.3}
POINTS = np.random.default_rng(3).dirichlet(np.full(4, 0.7), size=20)


def direct_margin(p, y, tau):
    return p[y] - tau * np.log(np.sum(np.exp(np.delete(p, y) / tau)))


def softplus(x):
    return np.log1p(np.exp(-abs(x))) + max(x, 0.0)


def test_margin_and_penalty_are_their_formulas(x64):
    points, labels = POINTS, np.arange(20) % 4
    actual = jax.jit(lambda p, y: margin.smooth_margin(p, y, tau=0.15))(points, labels)
    expected = np.array([direct_margin(p, y, 0.15) for p, y in zip(points, labels, strict=True)])
    np.testing.assert_allclose(actual, expected, rtol=1e-12)
    actual = jax.jit(lambda p, y: margin.penalty(p, y, **CONSTANTS))(points, labels)
    np.testing.assert_allclose(
        actual, [0.3 * softplus((0.2 - m) / 0.3) for m in expected], rtol=1e-12
    )


@pytest.mark.parametrize("K", [2, 3, 10])
def test_ranges_are_attained_at_vertices_and_never_crossed(K, x64):
    low, high = margin.margin_range(K, tau=0.15)
    draws = np.random.default_rng(0).dirichlet(np.full(K, 0.3), size=500)
    both = jax.jit(
        lambda p, y: (margin.smooth_margin(p, y, tau=0.15), margin.penalty(p, y, **CONSTANTS))
    )
    margins, penalties = both(np.concatenate([np.eye(K), draws]), np.zeros(K + 500, int))
    vertex_margins, inside, penalties = margins[:K], margins[K:], penalties[:K]
    np.testing.assert_allclose(vertex_margins[0], high, rtol=1e-12)
    np.testing.assert_allclose(vertex_margins[1:], low, rtol=1e-12)
    least, most = margin.penalty_range(K, **CONSTANTS)
    np.testing.assert_allclose(penalties[0], least, rtol=1e-12)
    np.testing.assert_allclose(penalties[1:], most, rtol=1e-12)
    # as the paper writes them
    naive = -0.15 * np.log(np.exp(1 / 0.15) + K - 2)
    np.testing.assert_allclose([low, high], [naive, 1 - 0.15 * np.log(K - 1)], rtol=1e-12)
    np.testing.assert_allclose(most, 0.3 * softplus((0.2 - naive) / 0.3), rtol=1e-12)
    assert np.all(inside >= low - 1e-12) and np.all(inside <= high + 1e-12)


def test_a_small_tau_is_finite_in_float32():
    """e^{1/τ} overflows float32 below τ = 0.0113."""
    low, high = margin.margin_range(10, tau=0.005)
    np.testing.assert_allclose([low, high], [-1.0, 1 - 0.005 * np.log(9)], rtol=1e-6)
    both = jax.jit(jax.value_and_grad(lambda p, y: margin.smooth_margin(p, y, tau=0.005)))
    for y in (0, 1):
        value, slope = both(jnp.array([1.0, 0.0, 0.0]), y)
        chex.assert_tree_all_finite((value, slope))


def test_the_expected_penalty_of_a_small_tau_is_that_of_the_labels():
    constants = {"tau": 0.005, "kappa": 0.2, "nu": 0.3}
    p, eta = jnp.array([0.9, 0.1, 0.0]), jnp.array([0.2, 0.5, 0.3])
    by_label = margin.penalty(jnp.tile(p, (3, 1)), jnp.arange(3), **constants)
    expected = margin.expected_penalty(p, eta, **constants)
    np.testing.assert_allclose(expected, jnp.sum(eta * by_label), rtol=1e-6)


def test_the_penalty_is_convex(x64):
    """The paper does not use it, the sharper displacement bound does."""
    hessian = jax.jit(jax.vmap(jax.hessian(lambda p: margin.penalty(p, 1, **CONSTANTS))))
    assert np.min(np.linalg.eigvalsh(hessian(jnp.asarray(POINTS)))) > -1e-12


def test_a_margin_that_cannot_be_positive_is_told():
    too_large = 1.01 / np.log(9)
    for call in (
        lambda: margin.margin_range(10, tau=too_large),
        lambda: margin.smooth_margin(jnp.full(10, 0.1), 0, tau=too_large),
        lambda: margin.penalty_range(10, tau=too_large, kappa=0.0, nu=1.0),
    ):
        with pytest.warns(UserWarning, match=r"tau = 0\.45\d+ exceeds 1/log\(K − 1\) for K = 10"):
            call()
    margin.margin_range(10, tau=0.99 / np.log(9))  # a warning would be an error here


def test_annealing_falls_to_zero_and_stays():
    steps = jnp.array([0, 25, 50, 100, 150])
    linear = margin.anneal(steps, beta0=0.4, horizon=100)
    np.testing.assert_allclose(linear, [0.4, 0.3, 0.2, 0.0, 0.0], rtol=1e-6)
    curved = margin.anneal(steps, beta0=0.4, horizon=100, power=2.0)
    np.testing.assert_allclose(curved, 0.4 * np.array([1, 0.75**2, 0.25, 0, 0]), rtol=1e-6)
    each = jax.vmap(lambda b: margin.anneal(jnp.int32(50), beta0=b, horizon=100))(jnp.arange(3.0))
    np.testing.assert_allclose(each, [0.0, 0.5, 1.0])


def test_a_pair_of_other_shapes_is_refused(unchecked_annotations):
    p = jnp.full((2, 3), 1 / 3)
    with pytest.raises(
        ValueError, match=r"p and eta must have one shape, got \(2, 3\) and \(1, 3\)"
    ):
        margin.expected_penalty(p, p[:1], tau=0.1, kappa=0.2, nu=0.1)
