"""The normaliser of the tempered softmax, against fifty digits."""

import inspect
from decimal import Decimal, localcontext
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom.losses import noise_robust
from pgeom.losses.noise_robust import log_tempered_softmax

TEMPERATURES = [(0.8, 1.2), (0.5, 4.0), (0.9, 1.05), (1.0, 1.5), (0.7, 1.3), (0.5, 0.8)]


def tempered_softmax(z, t):
    """The rows of `z[n, K]` as probabilities."""
    return jax.jit(jax.vmap(lambda z: jnp.exp(log_tempered_softmax(z, t))))(z)


def normaliser(z, t):
    """λ(z) for logits with maximum 0."""
    return jax.nn.logsumexp(z) if t == 1 else noise_robust._normaliser_below(z, t)


def exact_normaliser(z, t):
    """λ with Σ exp_t(z_k − λ) = 1: bisection in float64, then Newton in sixty digits."""
    z = np.asarray(z, np.float64)
    low, high = np.max(z), np.max(z) + 1e7
    for _ in range(100):
        middle = (low + high) / 2
        total = np.sum(np.maximum(1 + (1 - t) * (z - middle), 0) ** (1 / (1 - t)))
        low, high = (middle, high) if total > 1 else (low, middle)
    with localcontext() as context:
        context.prec = 60
        digits, power, lam = [Decimal(x) for x in z], 1 - Decimal(repr(t)), Decimal(low)
        for _ in range(3):  # each doubles the digits
            bases = [1 + power * (x - lam) for x in digits]
            p = [(base.ln() / power).exp() for base in bases if base > 0]
            lam += (sum(p) - 1) / sum((x.ln() * (1 - power)).exp() for x in p)
        assert abs(sum(p) - 1) < Decimal("1e-50")
        return lam


def draws(K):
    """Logits `[3, K]` of three spreads, the largest zero, so that λ has its own scale."""
    z = np.random.default_rng(K).normal(size=(3, K)) * np.array([[0.3], [3.0], [20.0]])
    return (z - np.max(z, axis=1, keepdims=True)).astype(np.float32)


@cache
def exact(K, t):
    return np.array([float(exact_normaliser(row, t)) for row in draws(K)])


@pytest.mark.parametrize("t", sorted({t2 for _, t2 in TEMPERATURES}))
def test_the_normaliser_to_six_digits_in_float32(t):
    sizes = (2, 10, 100)
    each = jax.jit(lambda *zs: [jax.vmap(lambda z: normaliser(z, t))(z) for z in zs])
    for K, actual in zip(sizes, each(*map(draws, sizes)), strict=True):
        assert actual.dtype == jnp.float32
        np.testing.assert_allclose(actual, exact(K, t), rtol=1e-6, atol=1e-12, err_msg=f"K = {K}")
    p = tempered_softmax(draws(100), t)
    np.testing.assert_allclose(np.sum(p, axis=1), 1, rtol=1e-5)


def count_steps(z, t, monkeypatch):
    """The number of steps that each row of logits `[n, K]` with maximum 0 takes."""
    loop = jax.lax.while_loop

    def counting(unconverged, newton, start):
        steps, lam, change = loop(unconverged, newton, start)
        return steps, steps.astype(lam.dtype), change  # the count in place of λ

    plain = inspect.unwrap(noise_robust._normaliser_below)  # neither reads nor fills a cache
    monkeypatch.setattr(noise_robust, "_normaliser_below", plain)
    monkeypatch.setattr(jax.lax, "while_loop", counting)
    return np.asarray(jax.jit(jax.vmap(lambda z: normaliser(z, t)))(z))


@pytest.mark.parametrize("t", sorted({t2 for _, t2 in TEMPERATURES}))
def test_the_iteration_takes_at_most_nine_steps(t, monkeypatch):
    scales = np.repeat([0.1, 3.0, 10.0, 100.0], 2048)[:, None]
    z = scales * np.random.default_rng(0).normal(size=(len(scales), 10))
    z = (z - np.max(z, axis=-1, keepdims=True)).astype(np.float32)
    steps = count_steps(z, t, monkeypatch)
    assert np.min(steps) >= 1 and np.max(steps) <= 9


def test_the_iteration_ends_where_the_normaliser_underflows(monkeypatch):
    gap = np.linspace(50, 65, 2048, dtype=np.float32)[:, None]  # p from 1e-30 down to zero
    steps = count_steps(np.concatenate([0 * gap, -gap], axis=1), 0.99, monkeypatch)
    assert np.min(steps) >= 1 and np.max(steps) <= 9


@pytest.mark.parametrize(("t1", "t2"), TEMPERATURES)
def test_the_loss_from_the_exact_normaliser(t1, t2):
    z = draws(10)
    labels = np.argmax(z, axis=1)
    base = np.maximum(1 + (1 - t2) * (z.astype(np.float64) - exact(10, t2)[:, None]), 0)
    p = base ** (1 / (1 - t2))
    mine = p[np.arange(3), labels]
    log_t1 = np.log(mine) if t1 == 1 else (mine ** (1 - t1) - 1) / (1 - t1)
    expected = -log_t1 - (1 - np.sum(p ** (2 - t1), axis=1)) / (2 - t1)
    loss = jax.jit(lambda z, y: pgeom.losses.bi_tempered(z, y, t1=t1, t2=t2))
    np.testing.assert_allclose(loss(z, labels), expected, rtol=1e-5, atol=3e-7)


@pytest.mark.parametrize(("t1", "t2"), TEMPERATURES)
def test_the_hessian_is_the_slope_of_the_gradient(t1, t2, x64):
    z, step = np.array([0.3, -0.4, 0.6, 0.1]), 1e-5

    @jax.jit
    def derivatives(z, ahead, behind):
        slope = jax.grad(lambda z: pgeom.losses.bi_tempered(z, 1, t1=t1, t2=t2))
        return jax.jacfwd(slope)(z), jax.vmap(slope)(ahead), jax.vmap(slope)(behind)

    hessian, ahead, behind = derivatives(z, z + step * np.eye(4), z - step * np.eye(4))
    np.testing.assert_allclose(hessian, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("t", "scale"), [(0.01, 0.1), (0.1, 0.3), (0.2, 0.3), (0.3, 1.0)])
def test_small_temperatures_sum_to_one(t, scale):
    z = (scale * np.random.default_rng(0).normal(size=(2048, 10))).astype(np.float32)
    p = tempered_softmax(z, t)
    np.testing.assert_allclose(np.sum(p, axis=1), 1, rtol=3e-6)


def test_a_finite_support_has_exact_zeros():
    (p,) = tempered_softmax(np.array([[0.0, -1.0, -30.0]], np.float32), 0.5)
    assert p[2] == 0 and abs(jnp.sum(p) - 1) < 1e-6


def exact_loss(z, label, t1, t2):
    """−log_{t1} p_y − (1 − Σ p_k^{2−t1})/(2 − t1), in sixty digits."""
    lam = exact_normaliser(z, t2)
    with localcontext() as context:
        context.prec = 60
        power, first = 1 - Decimal(repr(t2)), Decimal(repr(t1))
        bases = [1 + power * (Decimal(float(x)) - lam) for x in z]
        log_p = [base.ln() / power for base in bases]
        total = sum(((2 - first) * x).exp() for x in log_p)
        own = log_p[label] if first == 1 else (((1 - first) * log_p[label]).exp() - 1) / (1 - first)
        return float(-own - (1 - total) / (2 - first))


CERTAIN = [[0.0, -3268.0], [0.0, -40.0, -60.0], [0.0, -1e4, -1e3], [0.0, -0.3, -2.0, -5.0]]


@pytest.mark.parametrize(("t1", "t2"), [(0.8, 1.2), (1.0, 1.5), (-1.0, 1.3), (1.95, 1.1)])
@pytest.mark.parametrize("offset", [0.0, 512.0])
def test_the_loss_keeps_its_digits_next_to_certainty(t1, t2, offset, x64):
    """It is far less than the rounding of its terms, and not negative."""
    loss = jax.jit(lambda z, y: pgeom.losses.bi_tempered(z, y, t1=t1, t2=t2))
    for z in CERTAIN:
        for label in range(len(z)):
            actual = loss(jnp.array(z) + offset, jnp.array(label))
            np.testing.assert_allclose(actual, exact_loss(z, label, t1, t2), rtol=1e-11)
            assert actual > 0


@pytest.mark.parametrize(("t1", "t2"), [(0.8, 1.2), (0.5, 2.0)])
@pytest.mark.parametrize("gap", [10.0, 1e4])
def test_a_gradient_keeps_its_digits_where_one_class_is_almost_certain(t1, t2, gap):
    """In float32 as in float64, with the label one of the others."""
    z = np.concatenate([[0.0], -gap - np.arange(99.0)])

    def gradient(dtype):
        loss = lambda z: pgeom.losses.bi_tempered(z, 1, t1=t1, t2=t2)  # noqa: E731
        return np.asarray(jax.jit(jax.grad(loss))(jnp.asarray(z, dtype)), np.float64)

    actual = gradient(jnp.float32)
    with jax.enable_x64(True):
        expected = gradient(jnp.float64)
    assert np.linalg.norm(actual - expected) <= 5e-6 * np.linalg.norm(expected)
