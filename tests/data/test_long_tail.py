"""Long tails have the exact sizes of the protocol, for every seed, drawn without replacement."""

import numpy as np
import pytest

from pgeom.data import regimes, sources, splits

PROTOCOL = [360, 247, 169, 116, 79, 54, 37, 26, 18, 12]


def pool(counts, seed=0):
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))


@pytest.mark.parametrize(
    ("n_max", "K", "ratio"), [(360, 10, 30), (100, 4, 7.5), (50, 2, 1), (8, 3, 4)]
)
def test_counts_follow_the_formula(n_max, K, ratio):
    counts = regimes.keep_counts(n_max, K, ratio)
    for c, count in enumerate(counts):
        assert abs(count - n_max * ratio ** (-c / (K - 1))) <= 0.5
    assert counts[0] == n_max and counts.dtype == np.int64


@pytest.fixture(scope="module")
def train_pools():
    dataset = sources.load("long-tail")
    return [splits.split(dataset, seed).train.labels for seed in range(10)]


def test_every_seed_gives_360_to_12(train_pools):
    for seed, labels in enumerate(train_pools):
        assert np.bincount(labels).tolist() == [360] * 10
        kept = regimes.subsample(labels, 10, 30, np.random.default_rng(seed))
        assert np.bincount(labels[kept]).tolist() == PROTOCOL


@pytest.mark.parametrize("smallest", [12, 14, 17, 18])
def test_an_uneven_pool_still_meets_the_ratio_exactly(smallest):
    labels = pool([20, smallest, 19])
    counts = np.bincount(labels[regimes.subsample(labels, 3, 6, np.random.default_rng(0))])
    assert counts[0] == 6 * counts[-1]
    assert smallest - 6 < counts[0] <= smallest


def test_the_draw_is_uniform_and_the_generators():
    labels, generator = np.repeat([0, 1], 8), np.random.default_rng(0)
    draws = [regimes.subsample(labels, 2, 4, generator) for _ in range(4000)]
    tail = np.concatenate([kept[kept >= 8] - 8 for kept in draws])
    # Each of eight tail examples is kept with probability 2/8.
    np.testing.assert_allclose(np.bincount(tail) / 4000, 0.25, atol=5 * np.sqrt(0.19 / 4000))
    first, again = (regimes.subsample(labels, 2, 4, np.random.default_rng(9)) for _ in "ab")
    np.testing.assert_array_equal(first, again)
