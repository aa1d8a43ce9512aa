"""The paired test against SciPy and full enumeration, Holm against statsmodels, ranks by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from pgeom.evaluation import significance


def enumerate_wilcoxon(differences):
    """Statistic and p-value from all 2^m sign patterns of the nonzero differences."""
    d = np.array([x for x in differences if x != 0], float)
    ranks = [np.mean(1 + np.flatnonzero(np.sort(np.abs(d)) == abs(x))) for x in d]
    half = sum(ranks) / 2

    def distance(signs):
        return abs(sum(r for r, s in zip(ranks, signs, strict=True) if s > 0) - half)

    observed = distance(np.sign(d))
    patterns = [distance(signs) for signs in itertools.product((-1, 1), repeat=len(d))]
    return half - observed, np.mean([x >= observed - 1e-9 for x in patterns])


@pytest.mark.parametrize("n", [1, 2, 5, 10, 25, 50])
@pytest.mark.parametrize("shift", [0.0, 0.4])
def test_equals_scipys_exact_test_without_ties(n, shift):
    rng = np.random.default_rng(n)
    a, b = rng.normal(shift, size=n), rng.normal(size=n)
    got, expected = significance.paired_wilcoxon(a, b), stats.wilcoxon(a, b, method="exact")
    assert got.statistic == expected.statistic
    assert got.p_value == pytest.approx(expected.pvalue, rel=1e-12)
    assert got.attainable == min(1, 2 / 2**n)


@settings(max_examples=60)
@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_equals_full_enumeration_with_ties_and_zeros(differences):
    got = significance.paired_wilcoxon(np.array(differences), np.zeros(len(differences), int))
    statistic, p_value = enumerate_wilcoxon(differences)
    assert got.statistic == pytest.approx(statistic)
    assert got.p_value == pytest.approx(p_value, rel=1e-12)


@settings(max_examples=40)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=7))
def test_attainable_is_the_least_p_value_of_any_signs(differences):
    d = np.array(differences)
    zero = np.zeros(len(d))
    least = min(
        significance.paired_wilcoxon(np.array(signs) * d, zero).p_value
        for signs in itertools.product((-1, 1), repeat=len(d))
    )
    assert significance.paired_wilcoxon(d, zero).attainable == pytest.approx(least, rel=1e-12)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_equal_samples_cannot_differ(n):
    assert significance.paired_wilcoxon(np.ones(n), np.ones(n)) == (0.0, 1.0, 1.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_differences_equal_but_for_rounding_are_ties(dtype):
    """Four times one test example of 114 more, once one fewer: five ties, p = 2 · 6/32."""
    right, more = np.array([13, 48, 75, 104, 111]), np.array([1, 1, 1, 1, -1])
    a = ((right + more) / 114).astype(dtype)
    b = (right / 114).astype(dtype)
    assert len(np.unique(np.abs(a - b))) > 1
    assert significance.paired_wilcoxon(a, b) == (3.0, 0.375, 0.0625)


def test_a_tie_is_by_the_rounding_of_its_own_two_differences():
    """Of three units in the last place of 1e8, where each difference may be off by two."""
    unit = np.spacing(1e8)
    differences = np.array([1e-3, -1.0, 1 + 3 * unit, 2.0])
    got = significance.paired_wilcoxon(np.array([0, 1e8, 1e8, 0]) + differences, [0, 1e8, 1e8, 0])
    statistic, p_value = enumerate_wilcoxon([1e-3, -1.0, 1.0, 2.0])
    assert (got.statistic, got.p_value) == (statistic, p_value) == (2.5, 0.5)
    apart = differences + np.array([0, 0, 2 * unit, 0])
    got = significance.paired_wilcoxon(np.array([0, 1e8, 1e8, 0]) + apart, [0, 1e8, 1e8, 0])
    assert got.statistic == 2.0


def test_a_pair_equal_but_for_rounding_is_equal():
    a, b = np.array([0.1 + 0.2, 1.0, 2.0]), np.array([0.3, 0.0, 0.0])
    assert a[0] != b[0]
    assert significance.paired_wilcoxon(a, b).attainable == 0.5


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ([1.0, np.nan], [0.0, 0.0], r"must be finite, got \(nan, 0.0\) at index 1"),
        ([1.0, 2.0], [np.inf, 0.0], r"must be finite, got \(1.0, inf\) at index 0"),
        ([1.0, 2.0], [1.0], r"must have one shape \[n\], got \(2,\) and \(1,\)"),
        ([[1.0]], [[2.0]], r"must have one shape \[n\], got \(1, 1\)"),
    ],
)
def test_pairs_that_cannot_be_compared_are_refused(a, b, said):
    with pytest.raises(ValueError, match=said):
        significance.paired_wilcoxon(a, b)


@pytest.mark.parametrize("power", [1, 3])
@pytest.mark.parametrize("levels", [5, 10**6])
def test_holm_equals_statsmodels(power, levels):
    """For p-values with many ties and none, large and small."""
    p_values = (np.random.default_rng(levels).integers(0, levels, 14) / levels) ** power
    expected = multipletests(p_values, method="holm")[1]
    np.testing.assert_allclose(significance.holm(p_values), expected, rtol=1e-12)


def test_holm_by_hand():
    adjusted = significance.holm([0.04, 0.01, 0.03, 0.5])
    # The second smallest, times three, holds up the third, whose own product is .08.
    np.testing.assert_allclose(adjusted, [3 * 0.03, 4 * 0.01, 3 * 0.03, 1 * 0.5])
    assert significance.holm([0.3]).tolist() == [0.3]
    assert significance.holm([]).tolist() == []


@pytest.mark.parametrize("bad", [[0.5, np.nan], [-0.1], [1.1], [[0.5]], 0.5])
def test_holm_refuses_what_is_not_a_list_of_p_values(bad):
    with pytest.raises(ValueError, match=r"p_values must be \[m\] numbers in \[0, 1\]"):
        significance.holm(bad)
