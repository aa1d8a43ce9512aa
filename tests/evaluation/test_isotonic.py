"""Pooled adjacent violators against SciPy, with ties, weights and many samples at once."""

import jax
import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from pgeom.evaluation.calibration import isotonic

fitted = jax.jit(isotonic)


def reference(forecast, outcome, weights):
    """Equal forecasts as one example each, in order, and back."""
    _, place = np.unique(forecast, return_inverse=True)
    total = np.bincount(place, weights)
    mean = np.bincount(place, weights * outcome) / total
    return isotonic_regression(mean, weights=total).x[place]


def draw(seed, n, digits):
    rng = np.random.default_rng(seed)
    forecast = rng.uniform(size=n).round(digits)
    outcome = (rng.uniform(size=n) < forecast**2).astype(float)
    return forecast, outcome, rng.uniform(0.1, 3.0, n)


@pytest.mark.parametrize("digits", [1, 2, 12])
@pytest.mark.parametrize("seed", range(4))
def test_equals_scipy(x64, seed, digits):
    forecast, outcome, weights = draw(seed, 60, digits)
    expected = reference(forecast, outcome, weights)
    np.testing.assert_allclose(fitted(forecast, outcome, weights), expected, atol=1e-13)


def test_an_example_of_weight_zero_changes_no_other(x64):
    forecast, outcome, weights = draw(9, 60, 12)
    weights[::3] = 0
    kept = weights > 0
    expected = reference(forecast[kept], outcome[kept], weights[kept])
    np.testing.assert_allclose(fitted(forecast, outcome, weights)[kept], expected, atol=1e-13)


def test_a_staircase_is_pooled_one_step_after_another(x64):
    """Each pooling makes the next violation: as many passes as there are steps."""
    outcome = np.array([*np.linspace(1, 2, 59), -40.0])
    forecast = np.arange(60.0)
    expected = reference(forecast, outcome, np.ones(60))
    np.testing.assert_allclose(fitted(forecast, outcome, np.ones(60)), expected, atol=1e-12)
