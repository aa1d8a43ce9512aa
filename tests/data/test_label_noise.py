"""Label noise does what its transition matrix says, no more, and reports what it did."""

import numpy as np
import pytest

from pgeom.data import label_noise

KINDS = [label_noise.symmetric, label_noise.pair_flip]
N, K = 60_000, 6


def rng(seed=0):
    return np.random.default_rng(seed)


def clean_labels(n=N, K=K):
    return rng(99).integers(0, K, n)


def expected_transition(kind, rate, K):
    """The matrix of the definition, written entry by entry."""
    matrix = np.eye(K) * (1 - rate)
    for c in range(K):
        if kind is label_noise.pair_flip:
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
def test_the_report_is_of_the_labels_returned(kind):
    clean = clean_labels(500)
    noisy = kind(clean, 0.3, K, rng())
    assert (
        noisy.realised_rate == sum(a != b for a, b in zip(clean, noisy.labels, strict=True)) / 500
    )
    for c in range(K):
        for j in range(K):
            share = np.mean(noisy.labels[clean == c] == j)
            np.testing.assert_allclose(noisy.transition[c, j], share, rtol=1e-12)
    assert type(noisy.realised_rate) is float and noisy.labels.dtype == np.int32


@pytest.mark.parametrize("kind", KINDS)
def test_rate_0_changes_nothing_and_rate_1_everything(kind):
    clean = clean_labels(1000)
    none, every = kind(clean, 0.0, K, rng()), kind(clean, 1.0, K, rng())
    np.testing.assert_array_equal(none.labels, clean)
    np.testing.assert_array_equal(none.transition, np.eye(K))
    assert none.realised_rate == 0.0
    assert (every.labels != clean).all() and every.realised_rate == 1.0
    assert (np.diag(every.transition) == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_selections_are_independent_of_each_other(kind):
    """The number of flips over many draws has the binomial variance n r (1 − r)."""
    clean, generator = clean_labels(400), rng(5)
    flips = [kind(clean, 0.2, K, generator).realised_rate * 400 for _ in range(600)]
    np.testing.assert_allclose(np.var(flips), 400 * 0.2 * 0.8, rtol=0.25)


@pytest.mark.parametrize("kind", KINDS)
def test_more_noise_contains_less(kind):
    clean = clean_labels(1000)
    less, more = kind(clean, 0.2, K, rng()), kind(clean, 0.4, K, rng())
    flipped = less.labels != clean
    np.testing.assert_array_equal(more.labels[flipped], less.labels[flipped])
    assert more.realised_rate > less.realised_rate


@pytest.mark.parametrize("kind", KINDS)
def test_the_generator_decides_and_the_input_stays(kind):
    clean = clean_labels(300)
    before = clean.copy()
    first, again, other = (kind(clean, 0.4, K, rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.labels, again.labels)
    assert not np.array_equal(first.labels, other.labels)
    np.testing.assert_array_equal(clean, before)


def test_a_class_that_does_not_occur_has_a_row_of_zeros():
    noisy = label_noise.pair_flip([0, 0, 2], 1.0, 3, rng())
    assert noisy.transition.tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("labels", "rate", "K", "said"),
    [
        ([0, 1], -0.1, 2, r"rate must be in \[0, 1\], got -0.1"),
        ([0, 1], 20, 2, r"rate must be in \[0, 1\], got 20"),
        ([0, 1], float("nan"), 2, r"rate must be in \[0, 1\], got nan"),
        ([0, 0], 0.1, 1, "K, the number of classes, must be an integer of at least 2, got 1"),
        ([0, 2], 0.1, 2, r"labels must be in 0 … 1, got \[2\]"),
        ([-1, 1], 0.1, 2, r"labels must be in 0 … 1, got \[-1\]"),
        ([0.0, 1.0], 0.1, 2, "labels must be a non-empty .* got float64"),
        ([[0, 1]], 0.1, 2, r"labels must be a non-empty .* of shape \(1, 2\)"),
        (np.zeros(0, int), 0.1, 2, r"labels must be a non-empty .* of shape \(0,\)"),
    ],
)
def test_bad_input_is_refused(kind, labels, rate, K, said):
    with pytest.raises(ValueError, match=said):
        kind(labels, rate, K, rng())
