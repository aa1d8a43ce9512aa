"""Metrics against scikit-learn and plain loops, and one battery of properties for all of them."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import foldnorm
from sklearn import metrics as sk

from pgeom.evaluation import metrics

N, K = 160, 5


def draw(seed, lead=()):
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=2.0, size=(*lead, N, K))
    labels = rng.integers(0, K, (*lead, N))
    p = np.exp(logits)
    return logits, p / p.sum(-1, keepdims=True), labels


def loop_reliability(p, labels, bins, dtype="float64"):
    """Confidence, accuracy and share of each bin (lo, hi], one example at a time."""
    table, upper = np.zeros((3, bins)), np.arange(1, bins + 1) / bins
    upper = np.asarray(jnp.asarray(upper, dtype), np.float64) if dtype != "float64" else upper
    for row, label in zip(p, labels, strict=True):
        confidence = row.max()
        b = next(b for b in range(bins) if confidence <= upper[b])
        table[:, b] += confidence, row.argmax() == label, 1
    counts = table[2].copy()
    table[:2, counts > 0] /= counts[counts > 0]
    table[2] /= len(labels)
    return table


def loop_ece(p, labels, bins=15):
    confidence, accuracy, share = loop_reliability(p, labels, bins)
    return sum(s * abs(a - c) for c, a, s in zip(confidence, accuracy, share, strict=True))


def loop_classwise(p, labels):
    """The gap between forecasts and outcomes, class by class and bin by bin."""
    errors = []
    for c in range(K):
        for low in np.arange(15) / 15:
            inside = (p[:, c] > low) & (p[:, c] <= low + 1 / 15)
            inside |= (low == 0) & (p[:, c] == 0)
            errors.append(abs(np.sum(p[inside, c]) - np.sum(labels[inside] == c)) / len(p))
    return sum(errors) / K


def loop_debiased(p, labels, bins=15):
    """Twice the plug-in value, less its expectation if each bin had its accuracy in truth."""
    total = 0.0
    for confidence, accuracy, share in np.transpose(loop_reliability(p, labels, bins)):
        gap, expected = abs(accuracy - confidence), abs(accuracy - confidence)
        if 0 < accuracy < 1:
            error = np.sqrt(accuracy * (1 - accuracy) / (share * len(p)))
            expected = foldnorm.mean(gap / error, scale=error)
        total += share * (2 * gap - expected)
    return max(total, 0.0)


def loop_brier(p, labels):
    return np.mean([((row - np.eye(K)[c]) ** 2).sum() for row, c in zip(p, labels, strict=True)])


def loop_nll(logits, labels):
    return np.mean([logsumexp(row) - row[c] for row, c in zip(logits, labels, strict=True)])


def loop_recall(p, labels):
    classes = set(labels.tolist())
    return np.mean([np.mean(p.argmax(-1)[labels == c] == c) for c in classes])


REFERENCES = {
    "accuracy": lambda z, p, y: sk.accuracy_score(y, p.argmax(-1)),
    "balanced_accuracy": lambda z, p, y: loop_recall(p, y),
    "brier": lambda z, p, y: loop_brier(p, y),
    "nll": lambda z, p, y: loop_nll(z, y),
    "ece": lambda z, p, y: loop_ece(p, y),
    "classwise_ece": lambda z, p, y: loop_classwise(p, y),
    "debiased_ece": lambda z, p, y: loop_debiased(p, y),
    "reliability": lambda z, p, y: loop_reliability(p, y, 15),
    "confusion_matrix": lambda z, p, y: sk.confusion_matrix(
        y, p.argmax(-1), labels=range(K), normalize="true"
    ),
}
every_metric = pytest.mark.parametrize("name", REFERENCES)


def measure(name, logits, p, labels):
    """The metric as one array; a table is stacked in front, as the reference is."""
    value = getattr(metrics, name)(logits if name == "nll" else p, labels)
    return jnp.stack(value) if name == "reliability" else value


@jax.jit
def measure_all(logits, p, labels):
    return {name: measure(name, logits, p, labels) for name in REFERENCES}


def compiled(name, logits, p, labels):
    """One of all the metrics: a program for them together compiles sooner than one for each."""
    return measure_all(logits, p, labels)[name]


vmapped_twice = jax.jit(jax.vmap(jax.vmap(measure_all)))


@every_metric
def test_equals_its_reference(x64, name):
    logits, p, labels = draw(0)
    got = compiled(name, logits, p, labels)
    assert got.dtype == jnp.float64
    np.testing.assert_allclose(got, REFERENCES[name](logits, p, labels), rtol=1e-12, atol=1e-14)


@every_metric
def test_an_absent_class_is_left_out(x64, name):
    logits, p, labels = draw(3)
    labels = np.where(labels == 2, 4, labels)
    got = compiled(name, logits, p, labels)
    np.testing.assert_allclose(got, REFERENCES[name](logits, p, labels), rtol=1e-12, atol=1e-14)


@every_metric
def test_leading_dimensions_jit_and_vmap_agree_with_single_batches(name):
    logits, p, labels = draw(4, lead=(2, 3))
    batched = compiled(name, logits, p, labels)
    batched = jnp.moveaxis(batched, 0, 2) if name == "reliability" else batched
    mapped = vmapped_twice(logits, p, labels)[name]
    np.testing.assert_allclose(batched, mapped, rtol=1e-5, atol=1e-6)
    for i, j in np.ndindex(2, 3):
        one = compiled(name, logits[i, j], p[i, j], labels[i, j])
        np.testing.assert_allclose(batched[i, j], one, rtol=1e-5, atol=1e-6)


@every_metric
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_only_the_result_is_rounded(name, dtype):
    """The reference sees the same rounded scores, so what differs is the last rounding."""
    logits, p, labels = draw(5)
    logits, p = jnp.asarray(logits, dtype), jnp.asarray(p, dtype)
    got = compiled(name, logits, p, labels)
    assert got.dtype == dtype
    logits, p = (np.asarray(x, np.float64) for x in (logits, p))
    expected = REFERENCES[name](logits, p, labels)
    if name == "reliability":  # the edges are rounded as the confidences are
        expected = loop_reliability(p, labels, 15, dtype)
    tolerance = 4 * float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(np.asarray(got, np.float64), expected, tolerance, tolerance)


@every_metric
@pytest.mark.parametrize("spoil", ["one value", "one row", "everything", "a label"])
def test_a_diverged_run_is_nan_and_its_neighbours_are_not(name, spoil):
    logits, p, labels = draw(7, lead=(2, 3))
    rows = {"one value": np.s_[1, 0, 3, 2], "one row": np.s_[1, 0, 3], "everything": np.s_[1, 0]}
    if spoil == "a label":
        labels[1, 0, 3] = K
    else:
        logits[rows[spoil]] = p[rows[spoil]] = np.nan
    value = compiled(name, logits, p, labels)
    value = jnp.moveaxis(value, 0, 2) if name == "reliability" else value
    missing = np.isnan(value).reshape(2, 3, -1)
    assert missing[1, 0].all() and missing.sum() == missing[1, 0].size


PERFECT = {"accuracy": 1.0, "balanced_accuracy": 1.0, "brier": 0.0, "nll": 0.0, "ece": 0.0}
WRONG = {"accuracy": 0.0, "balanced_accuracy": 0.0, "brier": 2.0, "nll": 1000.0, "ece": 1.0}


@pytest.mark.parametrize(("expected", "shift"), [(PERFECT, 0), (WRONG, 1)])
@pytest.mark.parametrize("name", PERFECT)
def test_certain_predictions(name, expected, shift):
    labels = np.arange(N) % K
    p = np.eye(K, dtype=np.float32)[(labels + shift) % K]
    assert float(compiled(name, 1000 * p, p, labels)) == expected[name]


def test_nll_is_exact_where_probabilities_round_to_0():
    logits = jnp.array([[0.0, 200.0], [0.0, -200.0], [0.0, -jnp.inf]])
    assert float(metrics.nll(logits, jnp.array([0, 1, 0]))) == pytest.approx(400 / 3)
    assert float(metrics.nll(logits, jnp.array([1, 0, 1]))) == np.inf


@pytest.mark.parametrize("bins", [7, 100])
def test_ece_is_the_sum_over_the_reliability_table(x64, bins):
    _, p, labels = draw(9)
    table = metrics.reliability(p, labels, bins=bins)
    chex.assert_shape(list(table), (bins,))
    np.testing.assert_allclose(table.share.sum(), 1.0)
    expected = np.sum(table.share * np.abs(table.accuracy - table.confidence))
    got = metrics.ece(p, labels, bins=bins)
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    np.testing.assert_allclose(got, loop_ece(p, labels, bins), rtol=1e-12)


def test_many_examples_cost_no_digits():
    """A confidence of .9 that comes true 91% of the time; every metric of calibration says .01."""
    p = np.tile(np.float32([0.9, 0.1]), (300_000, 1))
    labels = np.where(np.arange(len(p)) % 100 < 91, 0, 1)
    for metric in (metrics.ece, metrics.classwise_ece, metrics.smooth_ece):
        np.testing.assert_allclose(metric(p, labels), 0.01, rtol=1e-3)
    assert metrics.brier(p, labels) == pytest.approx(2 * (0.91 * 0.01 + 0.09 * 0.81), rel=2e-6)


def test_counts_beyond_what_float32_counts_to():
    """2²⁴ + 1 is no float32: of 20 million right answers, 84% were counted."""
    labels = jnp.arange(20_000_000, dtype=jnp.int32) % 2
    p = jax.nn.one_hot(labels, 2)
    assert metrics.balanced_accuracy(p, labels) == 1
    np.testing.assert_array_equal(metrics.confusion_matrix(p, labels), np.eye(2))
