"""The bi-tempered loss next to certainty, and the iteration for its normaliser."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom.losses import noise_robust
from pgeom.losses.noise_robust import log_tempered_softmax
from tests import test_accuracy as accuracy
from tests.test_accuracy import mp

TEMPERATURES = [(0.8, 1.2), (0.5, 4.0), (0.9, 1.05), (-1.0, 1.3), (1.95, 1.1), (0.5, 0.8)]
LOGITS = [[0.0, -3268.0], [0.0, -40.0, -60.0], [0.0, -1e4, -1e3], [0.0, -0.3, -2.0, -3.0]]


@pytest.mark.parametrize(("t1", "t2"), TEMPERATURES)
@pytest.mark.parametrize("offset", [0.0, 512.0])
def test_loss_and_gradient_keep_their_digits_next_to_certainty(t1, t2, offset, x64):
    """The loss is far less than the rounding of its terms, and not negative."""
    mp.dps = 60
    reference = accuracy.bi_tempered(mp.mpf(t1), mp.mpf(t2))
    loss = lambda z, y: pgeom.losses.bi_tempered(z, y, t1=t1, t2=t2)  # noqa: E731
    both = jax.jit(jax.value_and_grad(loss))
    for z in LOGITS if t2 > 1 else LOGITS[-1:]:  # below one a far class has no probability
        point = accuracy.Point([mp.mpf(x) for x in z])
        for label in range(len(z)):
            eta = [mp.mpf(label == k) for k in range(len(z))]
            value, slope = both(jnp.array(z) + offset, label)
            np.testing.assert_allclose(value, float(reference.value(point, eta)), rtol=1e-11)
            expected = np.array(reference.slope(point, eta), float)
            np.testing.assert_allclose(
                slope, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max()
            )
            assert value > 0


def tempered_softmax(z, t):
    """The rows of `z[n, K]` as probabilities."""
    return jax.jit(jax.vmap(lambda z: jnp.exp(log_tempered_softmax(z, t))))(z)


def normaliser(z, t):
    """λ(z) for logits with maximum 0."""
    return jax.nn.logsumexp(z) if t == 1 else noise_robust._normaliser_below(z, t)


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


@pytest.mark.parametrize("t", [0.8, 1.05, 1.2, 4.0])
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


@pytest.mark.parametrize(("t", "scale"), [(0.01, 0.1), (0.3, 1.0)])
def test_small_temperatures_sum_to_one(t, scale):
    z = (scale * np.random.default_rng(0).normal(size=(2048, 10))).astype(np.float32)
    p = tempered_softmax(z, t)
    np.testing.assert_allclose(np.sum(p, axis=1), 1, rtol=3e-6)


def test_a_finite_support_has_exact_zeros():
    (p,) = tempered_softmax(np.array([[0.0, -1.0, -30.0]], np.float32), 0.5)
    assert p[2] == 0 and abs(jnp.sum(p) - 1) < 1e-6


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
