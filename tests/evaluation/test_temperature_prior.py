"""The prior of the fitted temperature: finite where all labels are right, and little elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.evaluation import calibration
from tests.evaluation.test_calibration import draw, fit_temperature, fit_with_prior, reference_log_t


@pytest.mark.parametrize("true_temperature", [0.3, 5.0])
@pytest.mark.parametrize("K", [2, 3, 10])
def test_equals_the_reference_with_the_pseudo_example(x64, true_temperature, K):
    logits, labels = draw(K, n=31, K=K, true_temperature=true_temperature)
    fit = fit_with_prior(logits.astype(np.float64), labels)
    assert not fit.at_bound
    expected = reference_log_t(logits, labels, prior=1.0)
    assert np.log(fit.temperature) == pytest.approx(expected, abs=1e-7)
    assert abs(expected - reference_log_t(logits, labels)) > 1e-4, "the prior has an effect"


@pytest.mark.parametrize(("right", "wrong"), [(1, 0), (9, 0), (500, 0), (6, 3)])
@pytest.mark.parametrize("K", [2, 3, 10])
@pytest.mark.parametrize("margin", [1e-3, 7.0, 1e4])
def test_with_one_margin_it_is_the_mixture_with_the_uniform_forecast(right, wrong, K, margin):
    """`right` of n: n/(n+1) of the frequency, and 1/(n+1) of 1/K."""
    n = right + wrong
    logits = np.tile(np.float32(margin * np.eye(K)[K - 1]), (n, 1))
    labels = np.array([K - 1] * right + [0] * wrong)
    fit = fit_with_prior(logits, labels)
    p = jax.nn.softmax(logits[0] / fit.temperature)
    assert not fit.at_bound
    assert float(p[K - 1]) == pytest.approx((right + 1 / K) / (n + 1), rel=1e-5)


@pytest.mark.parametrize("prior", [0.1, 1.0, 5.0])
def test_another_number_of_pseudo_examples(prior):
    logits = np.tile(np.float32([4.0, 0.0, 0.0]), (9, 1))
    fit = calibration.fit_temperature(logits, np.zeros(9, int), prior=prior)
    p = jax.nn.softmax(logits[0] / fit.temperature)
    assert float(p[0]) == pytest.approx((9 + prior / 3) / (9 + prior), rel=1e-5)


def weighted(logits, labels, weights, prior=1.0):
    weights = jnp.asarray(weights, jnp.float32)
    return calibration.fit_temperature(logits, labels, prior=prior, weights=weights)


def test_weights_are_repetitions():
    logits, labels = draw(6, n=40, K=3)
    counts = np.arange(40) % 3  # a third of the examples count for nothing
    rows = np.repeat(np.arange(40), counts)
    expected = fit_temperature(logits[rows], labels[rows]).temperature
    fit = weighted(logits, labels, counts, prior=0.0)
    np.testing.assert_allclose(fit.temperature, expected, rtol=1e-5)


def test_the_prior_is_relative_to_the_total_weight():
    logits = np.tile(np.float32([4.0, 0.0, 0.0]), (3, 1))
    fit = weighted(logits, np.array([0, 0, 1]), [3.5, 2.0, 1.5])
    p = jax.nn.softmax(logits[0] / fit.temperature)
    assert float(p[0]) == pytest.approx((5.5 + 1 / 3) / (7 + 1), rel=1e-5)


def test_a_negative_prior_is_refused():
    with pytest.raises(ValueError, match="prior must be nonnegative and finite, got -1"):
        calibration.fit_temperature(*draw(0), prior=-1.0)
