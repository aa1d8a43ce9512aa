"""Metrics of millions of examples lose no digits to the number of examples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.evaluation import metrics

N = 400_000
BINS = 15


def forecasts(kind):
    """Forecasts of two classes in float32, and labels."""
    if kind == "one confidence":  # .9, which comes true 91% of the time
        return np.full(N, 0.9, np.float32), np.arange(N) % 100 < 91
    rng = np.random.default_rng(0)
    confidence = rng.beta(9, 1, N).astype(np.float32)
    return confidence, rng.random(N) < confidence


def binned(forecast, outcome):
    """Σ_b |Σ_{i in b} (y_i − f_i)|/n, in float64."""
    edges = (np.arange(1, BINS) / BINS).astype(np.float32)
    index = np.searchsorted(edges, forecast, side="left")
    residuals = np.bincount(index, outcome - forecast.astype(np.float64), BINS)
    return np.sum(np.abs(residuals)) / len(forecast)


@pytest.fixture(scope="module", params=["one confidence", "calibrated"])
def sample(request):
    first, right = forecasts(request.param)
    p = np.stack([first, 1 - first], axis=1)
    return p, np.where(right, 0, 1).astype(np.int32)


def test_calibration_errors(sample):
    p, labels = sample
    top, predicted = np.max(p, axis=1), np.argmax(p, axis=1)
    expected = binned(top, predicted == labels)
    np.testing.assert_allclose(jax.jit(metrics.ece)(p, labels), expected, rtol=1e-4)
    by_class = np.mean([binned(p[:, k], labels == k) for k in (0, 1)])
    np.testing.assert_allclose(jax.jit(metrics.classwise_ece)(p, labels), by_class, rtol=1e-4)
    assert metrics.debiased_ece(p, labels) <= expected * (1 + 1e-4)
    table = metrics.reliability(p, labels)
    occupied = table.share > 0
    gaps = np.abs(table.accuracy - table.confidence)[occupied]
    np.testing.assert_allclose(np.sum(table.share[occupied] * gaps), expected, atol=2e-7)


def test_counts_beyond_what_float32_counts_to():
    """2²⁴ + 1 is no float32: of 20 million right answers, 84% were counted."""
    labels = jnp.arange(20_000_000, dtype=jnp.int32) % 2
    p = jax.nn.one_hot(labels, 2)
    assert metrics.balanced_accuracy(p, labels) == 1
    np.testing.assert_array_equal(metrics.confusion_matrix(p, labels), np.eye(2))
