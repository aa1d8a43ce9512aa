"""Smooth calibration error against direct sums of reflected Gaussians, and at its limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from pgeom.evaluation import metrics

smooth_ece = jax.jit(metrics.smooth_ece)
CELLS = 4_000


def slow_error(confidence, correct, sigma):
    """∫ |(1/n) Σ_i K_σ(t, f_i)(y_i − f_i)| dt with the images of t at 2m ± t summed one by one."""
    t = (np.arange(CELLS) + 0.5) / CELLS
    total = np.zeros(CELLS)
    for f, y in zip(confidence, correct, strict=True):
        for image in range(-2, 3):
            kernel = norm.pdf(2 * image + t - f, scale=sigma)
            kernel += norm.pdf(2 * image - t - f, scale=sigma)
            total += (y - f) * kernel / len(confidence)
    return np.mean(np.abs(total))


def slow_smooth_ece(confidence, correct):
    return brentq(lambda sigma: slow_error(confidence, correct, sigma) - sigma, 1e-3, 1, xtol=1e-6)


def draw(seed, n, K, sharpness):
    """Forecasts that are too confident, the more the sharper they are."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, K)) * 2
    labels = np.argmax(logits + rng.gumbel(size=(n, K)), axis=-1)
    p = np.exp(sharpness * logits)
    return (p / p.sum(-1, keepdims=True)).astype(np.float32), labels


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 4.0])
@pytest.mark.parametrize(("n", "K"), [(40, 3), (300, 2)])
def test_equals_the_slow_reference(n, K, sharpness):
    p, labels = draw(n, n, K, sharpness)
    expected = slow_smooth_ece(p.max(-1).astype(float), p.argmax(-1) == labels)
    assert float(smooth_ece(p, labels)) == pytest.approx(expected, abs=2e-4)


def test_a_mass_is_shared_so_that_its_mean_place_stays():
    """Half a cell off would change the error by less than the reference can tell."""
    place = np.array([0.1, 0.4567, 0.9], np.float32)
    centres = (np.arange(metrics.GRID) + 0.5) / metrics.GRID
    for one in place:
        masses = metrics._on_grid(jnp.asarray([one]), jnp.asarray([2.0]))
        assert np.sum(masses) == pytest.approx(2.0, rel=1e-6) and np.sum(masses != 0) <= 2
        assert centres @ np.asarray(masses, float) == pytest.approx(2 * one, abs=1e-6)


def test_certain_forecasts():
    labels = np.arange(12) % 3
    right = np.eye(3, dtype=np.float32)[labels]
    assert float(smooth_ece(right, labels)) == 0.0
    assert float(smooth_ece(right, (labels + 1) % 3)) == pytest.approx(1.0, abs=1e-5)
