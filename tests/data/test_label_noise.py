"""Label noise does what its transition matrix says, no more, and reports what it did."""

import numpy as np
import pytest

from pgeom.data import regimes

KINDS = [regimes.symmetric, regimes.pair_flip]
N, K = 60_000, 6


def rng(seed=0):
    return np.random.default_rng(seed)


def clean_labels(n=N, K=K):
    return rng(99).integers(0, K, n)


def expected_transition(kind, rate, K):
    """The matrix of the definition, written entry by entry."""
    matrix = np.eye(K) * (1 - rate)
    for c in range(K):
        if kind is regimes.pair_flip:
            matrix[c, (c + 1) % K] += rate
        else:
            for j in set(range(K)) - {c}:
                matrix[c, j] += rate / (K - 1)
    return matrix


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rate", [0.0, 0.2, 0.4, 1.0])
@pytest.mark.parametrize("K", [2, K])
def test_the_transition_is_the_one_defined(kind, rate, K):
    clean = clean_labels(K=K)
    noisy = kind(clean, rate, K, rng())
    # Five standard errors of a share of about N / K examples.
    slack = 5 * np.sqrt(0.25 / (0.9 * N / K))
    expected = expected_transition(kind, rate, K)
    np.testing.assert_allclose(noisy.transition, expected, atol=slack)
    np.testing.assert_allclose(noisy.realised_rate, rate, atol=5 * np.sqrt(0.25 / N))
    impossible = expected == 0
    assert (noisy.transition[impossible] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_more_noise_contains_less(kind):
    clean = clean_labels(1000)
    less, more = kind(clean, 0.2, K, rng()), kind(clean, 0.4, K, rng())
    flipped = less.labels != clean
    np.testing.assert_array_equal(more.labels[flipped], less.labels[flipped])
    assert more.realised_rate > less.realised_rate


MAP = (3, 1, 0, 2, 5, 5)  # 1 and 5 keep their labels


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_asymmetric_noise_follows_the_map(rate):
    clean = clean_labels()
    noisy = regimes.asymmetric(clean, rate, K, rng(), class_map=MAP)
    expected = np.eye(K) * (1 - rate)
    for c, target in enumerate(MAP):
        expected[c, target] += rate
    slack = 5 * np.sqrt(0.25 / (0.9 * N / K))
    np.testing.assert_allclose(noisy.transition, expected, atol=slack)
    assert (noisy.transition[expected == 0] == 0).all()
    np.testing.assert_array_equal(noisy.transition[[1, 5]], np.eye(K)[[1, 5]])
    np.testing.assert_allclose(noisy.realised_rate, rate * 4 / 6, atol=slack)


def instances(n=N, d=4):
    """Features, and the annotator who confuses them."""
    return {"features": rng(3).normal(size=(n, d)).astype(np.float32), "annotator": 4}


def projections(d=4):
    """What the annotator sees of the features, by class."""
    return rng(4).normal(size=(K, d, K)).astype(np.float32)


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.05, 0.2, 0.4, 0.93, 1.0])
def test_the_mean_flip_rate_is_the_one_asked_for(rate):
    clean = clean_labels()
    noisy = regimes.instance_dependent(clean, rate, K, rng(), **instances())
    np.testing.assert_allclose(noisy.realised_rate, rate, atol=5 * np.sqrt(0.25 / N))
    assert noisy.labels.dtype == np.int32 and 0 <= noisy.labels.min() <= noisy.labels.max() < K
    np.testing.assert_allclose(noisy.transition.sum(axis=1), 1)


def test_where_a_label_goes_has_the_probabilities_of_the_softmax():
    """One example many times over, of each class, against the definition."""
    given = instances(1)
    for label in range(K):
        scores = given["features"][0] @ projections()[label]
        weights = np.where(np.arange(K) == label, 0, np.exp(scores - scores.max()))
        many = {**given, "features": np.repeat(given["features"], N, axis=0)}
        noisy = regimes.instance_dependent(np.full(N, label), 1.0, K, rng(label), **many)
        shares = np.bincount(noisy.labels, minlength=K) / N
        np.testing.assert_allclose(shares, weights / weights.sum(), atol=5 * np.sqrt(0.25 / N))
        assert shares[label] == 0
