"""Tempered logarithm and exponential, and log cosh: exact where the formula as written is not."""

from decimal import Decimal, getcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom import special

getcontext().prec = 120


def exact_log_cosh(v):
    v = Decimal(float(v))
    return ((v.exp() + (-v).exp()) / 2).ln()


def exact_divergence(v, h):
    """log cosh(v + h) − log cosh v − h tanh v, in 120 digits."""
    V, H = Decimal(float(v)), Decimal(float(h))
    tanh = (V.exp() - (-V).exp()) / (V.exp() + (-V).exp())
    ahead = (((V + H).exp() + (-V - H).exp()) / 2).ln()
    return float(ahead - exact_log_cosh(v) - H * tanh)


def test_log_cosh_has_every_derivative_and_no_overflow():
    v = np.array([-200.0, -20.0, -3.0, -0.4, 0.0, 1e-3, 2.0, 12.0, 60.0], np.float32)
    expected = [float(exact_log_cosh(x)) for x in v]
    np.testing.assert_allclose(jax.jit(special.log_cosh)(v), expected, rtol=1e-5, atol=1e-7)
    slope = jax.jit(jax.vmap(jax.grad(special.log_cosh)))(v)
    np.testing.assert_allclose(slope, np.tanh(v), rtol=1e-6)
    second = jax.jit(jax.vmap(jax.grad(jax.grad(special.log_cosh))))(v)
    sech2 = 1 / np.cosh(v.astype(np.float64)) ** 2  # 1.5e-10 at 12, where tanh rounds to 1
    np.testing.assert_allclose(second, sech2, rtol=1e-5, atol=1e-37)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 3e-6), (np.float64, 1e-13)])
def test_the_divergence_of_log_cosh_at_every_scale(dtype, tolerance):
    sizes = np.array([1e-6, 1e-3, 0.1, 0.24, 0.26, 1.0, 4.0, 20.0, 45.0])
    h = np.concatenate([-sizes, sizes])
    v = np.array([-40.0, -5.0, -0.7, 0.0, 1e-3, 0.3, 2.0, 9.0])
    v, h = (part.ravel().astype(dtype) for part in np.meshgrid(v, h))
    expected = np.array([exact_divergence(a, b) for a, b in zip(v, h, strict=True)])
    with jax.enable_x64(dtype == np.float64):
        actual = np.asarray(jax.jit(special.log_cosh_divergence)(v, h))
    assert actual.dtype == dtype and np.all(actual >= 0)
    normal = expected > np.finfo(dtype).tiny
    np.testing.assert_allclose(actual[normal], expected[normal], rtol=tolerance)


def test_the_divergence_to_a_point_has_exact_slopes(x64):
    targets, steps = [-30.0, -2.0, 0.0, 0.3, 7.0], [-3.0, -1e-4, 0.2, 0.3, 40.0]
    m, h = (part.ravel() for part in np.meshgrid(targets, steps))
    both = jax.value_and_grad(special.log_cosh_divergence_to, (0, 1))
    value, (by_m, by_h) = jax.jit(jax.vmap(both))(m, h)
    v = m - h
    expected = [exact_divergence(a, b) for a, b in zip(v, h, strict=True)]
    np.testing.assert_allclose(value, expected, rtol=1e-11, atol=1e-300)
    sech2 = 4 * np.exp(-2 * np.abs(v)) / (1 + np.exp(-2 * np.abs(v))) ** 2
    np.testing.assert_allclose(by_h, h * sech2, rtol=1e-12)
    np.testing.assert_allclose(by_m, np.tanh(m) - np.tanh(v) - h * sech2, rtol=1e-6, atol=1e-12)
    second = jax.jit(jax.vmap(jax.grad(jax.grad(special.log_cosh_divergence_to, 1), 1)))(m, h)
    np.testing.assert_allclose(second, sech2 * (1 + 2 * h * np.tanh(v)), rtol=1e-11, atol=1e-300)


def test_second_derivatives_do_not_overflow_on_a_steep_ridge():
    v, h = np.float32(-20.0), np.array([21.0, 24.0, 28.0, 35.0], np.float32)  # κ = 42 to 70
    second = jax.jit(jax.vmap(jax.grad(jax.grad(special.log_cosh_divergence)), (None, 0)))(v, h)
    expected = 1 / np.cosh(np.float64(v) + h) ** 2
    np.testing.assert_allclose(second, expected, rtol=2e-5, atol=1e-14)


def test_tempered_functions_are_inverse_and_pass_through_one(x64):
    x = jnp.array([1e-6, 0.01, 0.3, 1.0, 2.5])
    log_t = jax.jit(special.tempered_log)
    for t in (0.3, 0.9999, 1.0, 1.0001, 1.7):
        actual = log_t(x, jnp.full(5, t))
        expected = np.log(x) if t == 1 else (x ** (1 - t) - 1) / (1 - t)
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)
        back = jnp.exp(jax.jit(special.log_tempered_exp, static_argnums=1)(actual, t))
        np.testing.assert_allclose(back, x, rtol=1e-9)
    outside = special.log_tempered_exp(jnp.array([-2.5]), 0.5)  # 1 + x/2 < 0
    assert outside[0] == -jnp.inf
    slope = jax.grad(lambda x: jnp.exp(special.log_tempered_exp(x, 0.5)))(-2.5)
    assert slope == 0


def test_derivatives_of_the_tempered_log(x64):
    """1/x^t in x, and through t = 1 in t, where it is −½ log² x."""
    x = jnp.array([1e-6, 0.01, 0.3, 2.5])
    log_t = jax.jit(special.tempered_log)
    slopes = jax.jit(jax.vmap(jax.grad(special.tempered_log, (0, 1)), (0, None)))
    for t in (0.3, 0.995, 1.0, 1.7):
        slope_in_x, slope_in_t = slopes(x, t)
        np.testing.assert_allclose(slope_in_x, x**-t, rtol=1e-12)
        ahead, behind = (log_t(x, jnp.full(4, t + s)) for s in (1e-6, -1e-6))
        np.testing.assert_allclose(slope_in_t, (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(slopes(x, 1.0)[1], -0.5 * np.log(x) ** 2, rtol=1e-10)


def test_the_ratio_is_smooth_through_zero(x64):
    x = jnp.array([-3.0, -0.5, -1e-9, 0.0, 1e-9, 0.49, 0.51, 4.0])
    safe = np.where(x == 0, 1, x)
    expected = np.where(x == 0, 1.0, np.expm1(safe) / safe)
    actual, slope = jax.jit(jax.vmap(jax.value_and_grad(special.expm1_ratio)))(x)
    np.testing.assert_allclose(actual, expected, rtol=1e-14)
    np.testing.assert_allclose(slope[3], 0.5, rtol=1e-14)
