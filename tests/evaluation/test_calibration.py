"""The fitted temperature against golden-section search in float64, and at its limits."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from pgeom.evaluation import calibration, metrics

# One compilation per shape; that compiling changes nothing is tested below.
fit_temperature = jax.jit(calibration.fit_temperature)
fit_with_prior = jax.jit(partial(calibration.fit_temperature, prior=1.0))


def objective(logits, labels, log_t, prior=0.0):
    """The NLL of the examples and of the pseudo-example, divided by their number."""
    z = np.asarray(logits, np.float64) * np.exp(-log_t)
    nll = np.sum(logsumexp(z, axis=-1) - z[np.arange(len(labels)), labels])
    pseudo = np.median(np.ptp(z, axis=-1)) * np.eye(z.shape[-1])[0]
    return (nll + prior * (logsumexp(pseudo) - pseudo.mean())) / (len(labels) + prior)


def reference_log_t(logits, labels, prior=0.0):
    """A grid of quarter e-folds, then a bounded search between the neighbours of its best."""
    spread = np.log(np.ptp(np.asarray(logits, np.float64), axis=-1).mean())
    grid = spread + np.linspace(-15, 12, 109)
    best = int(np.argmin([objective(logits, labels, log_t, prior) for log_t in grid]))
    assert 0 < best < len(grid) - 1
    found = minimize_scalar(
        lambda log_t: objective(logits, labels, log_t, prior),
        bounds=(grid[best - 1], grid[best + 1]),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return found.x


def draw(seed, *, n=200, K=6, true_temperature=1.0, size=1.0):
    """Labels drawn from softmax(z / true_temperature), so that it is nearly the best one."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=3.0, size=(n, K))
    noise = rng.gumbel(size=(n, K))
    labels = np.argmax(logits / true_temperature + noise, axis=-1)
    return (size * logits).astype(np.float32), labels


@pytest.mark.parametrize("true_temperature", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("K", [2, 10])
def test_equals_the_reference_in_float32(true_temperature, size, K):
    logits, labels = draw(K, K=K, true_temperature=true_temperature, size=size)
    fit = fit_temperature(logits, labels)
    assert fit.temperature.dtype == jnp.float32 and not fit.at_bound
    assert np.log(fit.temperature) == pytest.approx(reference_log_t(logits, labels), abs=1e-5)


def test_equals_the_reference_in_float64(x64):
    logits, labels = draw(1)
    fit = fit_temperature(logits.astype(np.float64), labels)
    assert fit.temperature.dtype == jnp.float64
    assert np.log(fit.temperature) == pytest.approx(reference_log_t(logits, labels), abs=1e-7)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_separated_labels_plainly_want_the_coldest_temperature(size):
    labels = np.arange(60) % 3
    margins = np.random.default_rng(0).uniform(0.01, 10, (60, 1))
    logits = np.float32(size * margins * np.eye(3)[labels])
    fit = fit_temperature(logits, labels)
    assert fit.at_bound and 0 < fit.temperature < 1e-5 * size
    assert metrics.nll(calibration.rescale(logits, fit.temperature), labels) == 0.0


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_misleading_logits_want_the_hottest_temperature(size):
    logits, labels = draw(4, size=size)
    fit = fit_temperature(-logits, labels)
    assert fit.at_bound and fit.temperature > 1e4 * size
    uniform = metrics.nll(calibration.rescale(-logits, fit.temperature), labels)
    assert float(uniform) == pytest.approx(np.log(6), abs=1e-4)


@pytest.mark.parametrize("seed", range(2))
def test_uninformative_logits_want_the_hottest_temperature(seed):
    """Every row once with each label: the slope at T = ∞ is 0 but for rounding."""
    rows = np.float32(np.random.default_rng(seed).normal(size=(50, 7)))
    logits, labels = np.repeat(rows, 7, axis=0), np.tile(np.arange(7), 50)
    fit = fit_temperature(logits, labels)
    assert fit.at_bound and fit.temperature > 1e4


@pytest.mark.parametrize("value", [0.0, 0.1, -300.0])
def test_equal_logits_are_left_alone(value):
    fit = fit_temperature(np.full((8, 3), value, np.float32), np.arange(8) % 3)
    assert fit.temperature == 1.0 and not fit.at_bound


@pytest.mark.parametrize("log_temperature", [11.5, 10.0, 3.0, -2.0])
def test_a_minimum_far_out_is_found_and_is_no_bound(log_temperature, x64):
    """Two examples, one right and one wrong, by a margin of one: b = log(w_right/w_wrong)."""
    b = np.exp(-log_temperature)
    right = 1 / (1 + np.exp(-b))
    weights = jnp.array([right, 1 - right])
    logits, labels = jnp.array([[1.0, 0.0], [1.0, 0.0]]), jnp.array([0, 1])
    found = calibration.fit_temperature(logits, labels, prior=0.0, weights=weights)
    np.testing.assert_allclose(found.temperature, 1 / b, rtol=1e-6)
    assert not found.at_bound


# the prior, which keeps a temperature finite where all labels are right ---------------------------


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


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_diverged_run_is_nan_and_its_neighbour_is_not(value):
    logits, labels = draw(5)
    both = np.stack([logits, logits])
    both[1, 17, 2] = value
    fit = fit_temperature(both, labels)
    assert np.isnan(fit.temperature[1]) and not fit.at_bound[1]
    assert fit.temperature[0] == pytest.approx(float(fit_temperature(logits, labels).temperature))
