"""The parts of a mean score: CORP for two classes, the identity for every generator."""

import jax.numpy as jnp
import numpy as np
import pytest
from model_diagnostics.scoring import LogLoss, SquaredError, decompose as corp
from scipy.optimize import isotonic_regression, minimize_scalar
from scipy.special import logsumexp, softmax
from scipy.stats import norm

import pgeom
from pgeom import generators
from pgeom.evaluation import significance

GENERATORS = {
    "shannon": generators.shannon,
    "brier": generators.squared_norm,
    "spherical": generators.spherical,
    "cubic": lambda p: jnp.sum(p**3),
}
CORP = {"brier": (SquaredError(), 0.5), "shannon": (LogLoss(), 1.0)}


def draw(seed, K, *, n=80, digits=4, sharpness=2.0):
    """Forecasts that are too confident; every class occurs."""
    rng = np.random.default_rng([seed, K])
    logits = rng.normal(size=(n, K))
    labels = np.argmax(logits + rng.gumbel(size=(n, K)), axis=-1)
    labels[:K] = np.arange(K)
    p = softmax(sharpness * logits, axis=-1).round(digits) + 10.0 ** -(digits + 1)
    return p / p.sum(-1, keepdims=True), labels


@pytest.mark.parametrize("name", CORP)
@pytest.mark.parametrize(("seed", "digits"), [(0, 2), (1, 12)])
def test_two_classes_are_those_of_model_diagnostics(x64, name, seed, digits):
    p, labels = draw(seed, 2, digits=digits)
    scoring, unit = CORP[name]
    parts = pgeom.decompose(GENERATORS[name], p, labels)
    expected = corp(labels, p[:, 1], scoring_function=scoring)
    for field in ("miscalibration", "discrimination", "uncertainty"):
        found = unit * float(getattr(parts, field))
        assert found == pytest.approx(expected[field].item(), abs=1e-10)
    assert unit * float(parts.mean_score) == pytest.approx(expected["score"].item(), abs=1e-10)


@pytest.mark.parametrize("name", GENERATORS)
def test_the_identity_holds_and_two_classes_have_no_negative_part(name):
    for K in (2, 4):
        p, labels = draw(3, K)
        parts = pgeom.decompose(GENERATORS[name], np.float32(p), labels)
        mean = pgeom.bregman_score(GENERATORS[name])(np.float32(p), labels).mean()
        assert float(parts.mean_score) == pytest.approx(float(mean), rel=1e-5)
        total = parts.miscalibration - parts.discrimination + parts.uncertainty
        assert float(total) == pytest.approx(float(parts.mean_score), abs=1e-6)
        if K == 2:
            assert parts.miscalibration >= 0 and parts.discrimination >= 0


def test_more_classes_are_each_against_the_rest(x64):
    """The recalibrated forecasts of three classes by SciPy, and their log score by hand."""
    p, labels = draw(4, 3, digits=12)
    fitted = np.empty_like(p)
    for k in range(3):
        order = np.argsort(p[:, k])
        fitted[order, k] = isotonic_regression((labels == k)[order].astype(float)).x
    fitted /= fitted.sum(-1, keepdims=True)
    chosen = np.arange(len(labels)), labels
    raw, recalibrated = -np.log(p[chosen]).mean(), -np.log(fitted[chosen]).mean()
    rate = np.bincount(labels) / len(labels)
    entropy = -np.sum(rate * np.log(rate))
    parts = pgeom.decompose(generators.shannon, p, labels)
    expected = (raw, raw - recalibrated, entropy - recalibrated, entropy)
    np.testing.assert_allclose(parts[:4], expected, atol=1e-12)


@pytest.mark.parametrize("K", [2, 3, 10])
def test_log_loss_by_temperature_equals_an_independent_fit(x64, K):
    p, labels = draw(5, K, digits=12)
    logits, n = np.log(p), len(labels)
    pseudo = np.median(np.ptp(logits, axis=-1)) * np.eye(K)[0]

    def nll(t):
        return np.mean(logsumexp(logits / t, axis=-1) - logits[np.arange(n), labels] / t)

    def objective(log_t):
        t = np.exp(log_t)
        return n * nll(t) + logsumexp(pseudo / t) - np.mean(pseudo / t)

    log_t = minimize_scalar(objective, bounds=(-4, 4), method="bounded", options={"xatol": 1e-10}).x
    parts = pgeom.decompose(generators.shannon, p, labels, recalibrate="temperature")
    assert float(parts.miscalibration) == pytest.approx(nll(1.0) - nll(np.exp(log_t)), abs=1e-9)
    assert float(parts.miscalibration) > 0.05, "the forecasts were made too confident"


def test_intervals_are_drawn_where_they_are_asked_for():
    parts = pgeom.decompose(generators.squared_norm, *draw(0, 2))
    assert parts.low is None and parts.high is None


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    """200 samples of a known posterior, in one batch; calibrated forecasts, in truth."""
    rng = np.random.default_rng(0)
    eta = rng.beta(1, 3, size=(200, 80))
    labels = (rng.uniform(size=eta.shape) < eta).astype(int)
    p = np.stack([1 - eta, eta], axis=-1).astype(np.float32)
    parts = pgeom.decompose(generators.squared_norm, p, labels, resamples=80)
    mean, variance = 1 / 4, 3 / (16 * 5)
    truths = {
        "mean_score": 2 * (mean * (1 - mean) - variance),
        "uncertainty": 2 * mean * (1 - mean),
    }
    for name, truth in truths.items():
        inside = (getattr(parts.low, name) <= truth) & (truth <= getattr(parts.high, name))
        assert 0.86 < float(inside.mean()) < 0.99, name
    raw, debiased = (float(part.miscalibration.mean()) for part in (parts, parts.debiased))
    assert raw > 0.03 and debiased < 0.6 * raw, "half of the optimism is seen"


BAD = {
    "recalibrate must be 'isotonic' or 'temperature', got 'platt'": {"recalibrate": "platt"},
    "resamples must be at least 0, got -1": {"resamples": -1},
    "level must be between 0 and 1, got 95": {"level": 95},
}


@pytest.mark.parametrize("message", BAD)
def test_bad_arguments_are_refused(message):
    with pytest.raises(ValueError, match=message):
        pgeom.decompose(generators.shannon, *draw(0, 3), **BAD[message])


def test_logits_are_refused():
    with pytest.raises(ValueError, match="probabilities must be nonnegative and sum to one"):
        pgeom.decompose(generators.shannon, np.ones((4, 3)), np.zeros(4, int))


def test_an_interval_where_nothing_was_drawn_below_the_value():
    """Its share counts as 1/(B + 1): z₀ = Φ⁻¹(.1) for nine draws, not −∞."""
    ends = significance.corrected_quantiles(np.arange(1.0, 10.0)[None], 0.95)
    z0 = norm.ppf(0.1)
    shares = norm.cdf([2 * z0 - 1.959964, 2 * z0 + 1.959964])
    np.testing.assert_allclose(np.ravel(ends), 1 + 8 * shares, rtol=1e-4)
