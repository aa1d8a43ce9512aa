"""The divergence of the powers and its derivatives, against fifty digits and more."""

from functools import cache

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import pgeom
from pgeom import special

ALPHAS = [0.05, 0.5, 0.999, 1.0, 1.001, 1.5, 2.0, 3.0, 10.0]
TARGETS = [0.0, 1e-6, 0.3, 1.0]
POINTS = [1e-30, 1e-20, 1e-10, 1e-6, 1e-4, 1e-2, 0.1, 0.29, 0.3, 0.31, 0.5, 0.9, 1.0]
NEARBY = [1.0, 1 + 1e-6, 1 - 1e-6, 1.01, 0.99]  # p/q
TOLERANCE = {np.float32: 2e-6, np.float64: 1e-12}
STEP = mpmath.mpf(2) ** -120  # of central differences, in 150 digits: right to 50 of them
NOISE = 1e-50  # of the references where all terms cancel


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(150):
        yield


def exact(q, log_p, alpha):
    """D_α(q, p) as it is defined."""
    p = mpmath.exp(log_p)
    if alpha == 1:
        return (q * mpmath.log(q / p) if q > 0 else 0) - (q - p)
    return (q**alpha - p**alpha - alpha * p ** (alpha - 1) * (q - p)) / (alpha - 1)


@cache
def examples(dtype):
    """Every α, q and p, as q, d = q − p, log p and α: exact, and rounded to the dtype."""
    rows = []
    with mpmath.workdps(150):
        for alpha in ALPHAS:
            for q in TARGETS:
                nearby = [q * ratio for ratio in NEARBY if 0 < q * ratio <= 1]
                for p in POINTS + nearby:
                    alpha_, q_ = (mpmath.mpf(float(dtype(x))) for x in (alpha, q))
                    p_ = q_ if q == p else mpmath.mpf(p)
                    rows.append((q_, q_ - p_, mpmath.log(p_), alpha_))
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
        shown = tuple(mpmath.nstr(x, 8) for x in row)
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
        share = alpha * mpmath.exp((alpha - 1) * log_p)  # αp^{α−1}
        p, reach = mpmath.exp(log_p), 1 + abs(log_p) + (abs(mpmath.log(q)) if q > 0 else 0)
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


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3, 0.7])
def test_scores_of_low_orders(alpha, x64):
    """About 1.772, 1.571, .9808 and .40477."""
    p = [0.8, 0.15, 0.05]
    expected = sum(
        exact(mpmath.mpf(q), mpmath.log(mpmath.mpf(x)), mpmath.mpf(alpha))
        for q, x in zip([1.0, 0.0, 0.0], p, strict=True)
    )
    actual = pgeom.bregman_score(pgeom.generators.tsallis(alpha))(jnp.array(p), 0)
    np.testing.assert_allclose(actual, float(expected), rtol=1e-13)


def test_soft_targets_with_rare_classes_in_float32():
    """η_k of 1e-6 beside p_k of .9, at a low order: a tenth of it used to be lost, and then NaN."""
    eta, logits = np.array([1e-6, 1 - 1e-6, 0.0]), np.array([2.5, 0.0, -40.0])
    for alpha in (0.05, 0.5, 3.0):
        divergence = pgeom.bregman_divergence(pgeom.generators.tsallis(alpha))

        @jax.jit
        def both(eta, logits, divergence=divergence):
            return jax.value_and_grad(divergence, (0, 1))(eta, jax.nn.softmax(logits))

        single = both(jnp.asarray(eta, jnp.float32), jnp.asarray(logits, jnp.float32))
        with jax.enable_x64(True):
            double = both(jnp.asarray(eta), jnp.asarray(logits))
        np.testing.assert_allclose(single[0], double[0], rtol=2e-6)
        np.testing.assert_allclose(single[1][0][:2], double[1][0][:2], rtol=1e-4)
        assert np.all(np.isfinite(single[1][0]))


@pytest.mark.parametrize("gap", [100.0, 160.0, 170.0, 171.0])
def test_a_steep_score_is_right_until_next_to_overflow(gap):
    """Of tsallis(½) with the wrong label it is p_y^{−½} = e^{gap/2}, but for terms of order one."""
    loss = pgeom.on_logits(pgeom.bregman_score(pgeom.generators.tsallis(0.5)))
    value, slope = jax.jit(jax.value_and_grad(loss))(jnp.array([gap, 0.0, 0.0]), 1)
    np.testing.assert_allclose(float(value), np.exp(gap / 2), rtol=1e-5)
    np.testing.assert_allclose(float(slope[0]), np.exp(gap / 2) / 2, rtol=1e-5)
    assert np.isfinite(loss(jnp.array([1e4, 0.0, 0.0]), 1))


def test_second_derivatives_of_a_steep_function_of_a_user_are_finite():
    """Of −Σ√p with the wrong label: e^{gap/2} and its multiples, through p^{−5/2} on the way."""
    loss = pgeom.on_logits(pgeom.bregman_score(lambda p: -jnp.sum(jnp.sqrt(p))))
    hessian = jax.jit(jax.hessian(loss))(jnp.array([60.0, 0.0, 0.0]), 1)
    assert np.all(np.isfinite(hessian))
