"""The reliability curve is isotonic regression, and its band holds what chance alone gives."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from pgeom.evaluation.calibration import _consistency_band, isotonic, reliability_curve


def draw(seed, n=90, K=3):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(K), size=n).astype(np.float32)
    return p, np.array([rng.choice(K, p=row / row.sum()) for row in p.astype(float)])


def test_the_curve_is_isotonic_regression_in_order_of_confidence():
    p, labels = draw(0)
    curve = reliability_curve(p, labels)
    order = np.argsort(p.max(-1))
    right = (p.argmax(-1) == labels)[order].astype(float)
    np.testing.assert_array_equal(curve.confidence, p.max(-1)[order])
    np.testing.assert_allclose(curve.recalibrated, isotonic_regression(right).x, atol=1e-6)
    assert curve.low is None and curve.high is None


def test_bands_hold_the_curves_of_a_known_posterior_in_95_of_100_draws():
    """2,000 draws of labels from forecasts that are the posterior: the truth is the diagonal."""
    rng = np.random.default_rng(0)
    eta = np.sort(rng.beta(2, 2, size=120)).astype(np.float32)
    low, high = _consistency_band(jnp.asarray(eta), 2000, 0.95, 5)
    outcomes = (rng.uniform(size=(2000, 120)) < eta).astype(np.float32)
    curves = isotonic(jnp.broadcast_to(eta, outcomes.shape), outcomes, np.ones_like(outcomes))
    low, high = np.asarray(low), np.asarray(high)
    covered = np.mean((low <= np.asarray(curves)) & (np.asarray(curves) <= high), axis=0)
    assert 0.93 < covered.mean() < 0.97
    assert covered[20:100].min() > 0.93 and covered[20:100].max() < 0.97
    wrong = (rng.uniform(size=(2000, 120)) < eta**2).astype(np.float32)
    curves = np.asarray(isotonic(jnp.broadcast_to(eta, wrong.shape), wrong, np.ones_like(wrong)))
    assert np.mean((curves >= low) & (curves <= high), axis=0)[60] < 0.5, "the band has teeth"


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="level must be between 0 and 1, got 1"):
        reliability_curve(*draw(0), resamples=5, level=1.0)
