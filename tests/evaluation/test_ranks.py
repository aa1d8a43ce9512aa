"""Friedman's and Nemenyi's tests against scikit-posthocs and a published table."""

import numpy as np
import pytest
import scikit_posthocs
from scipy import stats

from pgeom.evaluation import significance

# Two-tailed critical values of Nemenyi's test at 5% (Demšar, 2006, table 5a)
CRITICAL = {3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}


def draw(cells=11, losses=13):
    return np.random.default_rng(0).normal(np.linspace(0, 2, losses), 1.0, (cells, losses))


def test_the_critical_difference_is_that_of_the_table():
    for losses, q in CRITICAL.items():
        got = significance.rank(draw(6, losses), higher_is_better=True)
        expected = q * np.sqrt(losses * (losses + 1) / 36)
        assert got.critical_difference == pytest.approx(expected, rel=2e-3)


def test_pairs_further_apart_than_the_critical_difference_are_those_below_the_level():
    """With the p-values of Nemenyi's test by scikit-posthocs."""
    scores = draw()
    got = significance.rank(scores, higher_is_better=True)
    apart = np.abs(got.mean_ranks[:, None] - got.mean_ranks) > got.critical_difference
    assert 0 < apart.sum() < apart.size
    p_values = scikit_posthocs.posthoc_nemenyi_friedman(scores).to_numpy()
    np.testing.assert_array_equal(apart, p_values < 0.05)


def test_friedman_is_scipys_with_ties():
    scores = np.round(draw(), 0)
    got = significance.rank(scores, higher_is_better=True)
    assert got.p_value == pytest.approx(stats.friedmanchisquare(*scores.T).pvalue, rel=1e-12)
    assert significance.rank(np.ones((3, 4)), higher_is_better=True).p_value == 1


def test_the_best_has_rank_one_in_either_orientation():
    scores = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 2.0]])
    assert significance.rank(scores, higher_is_better=True).mean_ranks.tolist() == [1, 2.25, 2.75]
    assert significance.rank(-scores, higher_is_better=False).mean_ranks.tolist() == [1, 2.25, 2.75]


@pytest.mark.parametrize("scores", [np.zeros((1, 3)), np.zeros((4, 2)), np.full((3, 3), np.nan)])
def test_too_little_is_refused(scores):
    with pytest.raises(ValueError, match="two cells and three losses"):
        significance.rank(scores, higher_is_better=True)


def test_cliques_are_the_largest_groups_within_the_critical_difference():
    rng = np.random.default_rng(4)
    for _ in range(20):
        means, difference = rng.uniform(1, 8, 7), rng.uniform(0.2, 4)
        groups = [set(group) for group in significance.cliques(means, difference)]
        for a, b in np.argwhere(np.triu(np.ones((7, 7)), 1)):
            together = any({a, b} <= group for group in groups)
            assert together == (abs(means[a] - means[b]) <= difference)
        assert not any(one < other for one in groups for other in groups)
