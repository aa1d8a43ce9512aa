"""Powers, log cosh, tempered logarithm and exponential, against fifty digits and more."""

from functools import cache
from itertools import product

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from pgeom import special

mp = mpmath.MPContext()  # a context of its own: nobody else's precision changes
mp.dps = 150


def exact_log_cosh(v):
    return mp.log(mp.cosh(mp.mpf(float(v))))


def exact_divergence(v, h):
    """log cosh(v + h) − log cosh v − h tanh v."""
    v, h = mp.mpf(float(v)), mp.mpf(float(h))
    return float(mp.log(mp.cosh(v + h) / mp.cosh(v)) - h * mp.tanh(v))


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


def test_exponentials_keep_the_digits_of_every_derivative():
    """At u = −30, where e^u is all that there is."""
    u, tiny = jnp.float32(-30.0), np.exp(-30.0)
    for function, derivatives in (
        (special.sigmoid, [tiny, tiny, tiny]),
        (special.softplus, [tiny, tiny, tiny]),
        (special.expm1, [tiny - 1, tiny, tiny]),
    ):
        for expected in derivatives:
            np.testing.assert_allclose(function(u), expected, rtol=1e-5)
            function = jax.grad(function)
    assert jax.grad(jax.grad(special.sigmoid))(-u) == pytest.approx(-tiny, rel=1e-5)


def test_the_series_of_a_logarithm(x64):
    x = np.array([-0.2, -1e-9, 1e-5, 0.33])
    expected = [float(mp.mpf(v) - mp.log(1 + mp.mpf(v))) for v in x.tolist()]
    np.testing.assert_allclose(special.minus_log1p(jnp.asarray(x)), expected, rtol=1e-13)


def test_the_ratio_is_smooth_through_zero(x64):
    x = jnp.array([-3.0, -0.5, -1e-9, 0.0, 1e-9, 0.49, 0.51, 4.0])
    safe = np.where(x == 0, 1, x)
    expected = np.where(x == 0, 1.0, np.expm1(safe) / safe)
    actual, slope = jax.jit(jax.vmap(jax.value_and_grad(special.expm1_ratio)))(x)
    np.testing.assert_allclose(actual, expected, rtol=1e-14)
    np.testing.assert_allclose(slope[3], 0.5, rtol=1e-14)


# the divergence of a power ------------------------------------------------------------------------

ALPHAS = [0.05, 0.5, 0.999, 1.0, 1.001, 2.0, 3.0, 10.0]
TARGETS = [0.0, 1e-6, 0.3, 1.0]
POINTS = [1e-30, 1e-10, 1e-4, 1e-2, 0.1, 0.29, 0.3, 0.5, 1.0]
NEARBY = [1.0, 1 + 1e-6, 1 - 1e-6, 1.01, 0.99]  # p/q
TOLERANCE = {np.float32: 2e-6, np.float64: 1e-12}
STEP = mp.mpf(2) ** -120  # of central differences, in 150 digits: right to 50 of them
NOISE = 1e-50  # of the references where all terms cancel


def exact(q, log_p, alpha):
    """D_α(q, p) as it is defined."""
    p = mp.exp(log_p)
    if alpha == 1:
        return (q * mp.log(q / p) if q > 0 else 0) - (q - p)
    return (q**alpha - p**alpha - alpha * p ** (alpha - 1) * (q - p)) / (alpha - 1)


@cache
def examples(dtype):
    """Every α, q and p, as q, d = q − p, log p and α: exact, and rounded to the dtype."""
    rows = []
    for alpha, q in product(ALPHAS, TARGETS):
        nearby = [q * ratio for ratio in NEARBY if 0 < q * ratio <= 1]
        for p in POINTS + nearby:
            alpha_, q_ = (mp.mpf(float(dtype(x))) for x in (alpha, q))
            p_ = q_ if q == p else mp.mpf(p)
            rows.append((q_, q_ - p_, mp.log(p_), alpha_))
    columns = [np.array(column, np.float64).astype(dtype) for column in zip(*rows, strict=True)]
    return rows, columns


def compare(actual, expected, terms, dtype):
    """Refuse what is further from the true value than rounding log p to the dtype entails.

    Args:
      actual, expected: `[n]`.
      terms: what the error is relative to, `[n]`; below the smallest normal number is zero.
    """
    rows, _ = examples(dtype)
    tiny, most = float(np.finfo(dtype).tiny), float(np.finfo(dtype).max)
    for row, got, true, size in zip(rows, np.asarray(actual, float), expected, terms, strict=True):
        _, _, log_p, alpha = row
        amplified = max(1, abs(alpha * log_p), abs((alpha - 1) * log_p))
        allowed = TOLERANCE[dtype] * amplified * abs(size) + max(tiny, NOISE)
        shown = tuple(mp.nstr(x, 8) for x in row)
        assert abs(got - true) <= allowed or abs(true) > most / 2, (shown, got, float(true))


def slope(at, x):
    return (at(x + STEP) - at(x - STEP)) / (2 * STEP)


def curvature(at, x):
    return (at(x + STEP) - 2 * at(x) + at(x - STEP)) / STEP**2


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_values_keep_their_digits(dtype):
    """Relative to the value itself, however p, q and α are to each other."""
    rows, columns = examples(dtype)
    with jax.enable_x64(dtype == np.float64):
        actual = jax.jit(jax.vmap(special.power_divergence))(*columns)
    expected = [exact(q, log_p, alpha) for q, _, log_p, alpha in rows]
    compare(actual, expected, expected, dtype)
    assert actual.dtype == dtype and np.all(np.asarray(actual) >= 0)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_derivatives_are_differences(dtype):
    """In q, log p (twice) and α, where d moves with q and p."""

    def at(q, log_p, alpha, d):
        moving = q - jnp.exp(log_p)
        return special.power_divergence(q, moving + jax.lax.stop_gradient(d - moving), log_p, alpha)

    def derivatives(q, d, log_p, alpha):
        slopes = jax.grad(at, (0, 1, 2))(q, log_p, alpha, d)
        return *slopes, jax.grad(jax.grad(at, 1), 1)(q, log_p, alpha, d)

    rows, columns = examples(dtype)
    with jax.enable_x64(dtype == np.float64):
        slope_in_q, slope_in_log_p, slope_in_alpha, twice = jax.jit(jax.vmap(derivatives))(*columns)

    true, terms = [], []
    for q, d, log_p, alpha in rows:
        share = alpha * mp.exp((alpha - 1) * log_p)  # αp^{α−1}
        p, reach = mp.exp(log_p), 1 + abs(log_p) + (abs(mp.log(q)) if q > 0 else 0)
        true.append(
            (
                slope(lambda x: exact(x, log_p, alpha), q) if q > 0 else 0,  # noqa: B023
                slope(lambda x: exact(q, x, alpha), log_p),  # noqa: B023
                slope(lambda a: exact(q, log_p, a), alpha),  # noqa: B023
                curvature(lambda x: exact(q, x, alpha), log_p),  # noqa: B023
            )
        )
        value = exact(q, log_p, alpha)
        apart = share * ((alpha + 1) * p + abs(alpha - 1) * abs(d))  # terms of the second slope
        terms.append((abs(true[-1][0]), abs(true[-1][1]), 4 * reach * value, apart))
    (q_, log_p_, alpha_, twice_), sizes = zip(*true, strict=True), [*zip(*terms, strict=True)]
    present = np.array([q > 0 for q, *_ in rows])  # at q = 0 the slope in q may be infinite
    compare(np.where(present, slope_in_q, 0.0), q_, sizes[0], dtype)
    compare(slope_in_log_p, log_p_, sizes[1], dtype)
    compare(slope_in_alpha, alpha_, sizes[2], dtype)
    compare(twice, twice_, sizes[3], dtype)


def test_a_wrong_value_is_refused():
    rows, _ = examples(np.float64)
    expected = [exact(q, log_p, alpha) for q, _, log_p, alpha in rows]
    wrong = np.array([float(value) for value in expected])
    compare(wrong, expected, expected, np.float64)
    wrong[40] *= 1 + 1e-9
    with pytest.raises(AssertionError):
        compare(wrong, expected, expected, np.float64)
