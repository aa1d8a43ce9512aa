"""Paired comparison of losses over seeds: exact Wilcoxon test, Holm correction, mean ranks.

With five seeds no sign pattern reaches p = .05, so each test carries the smallest p-value it could
have given. P-values are exact for any ties, never a normal approximation.

>>> from pgeom.evaluation import significance
>>> ours, theirs = [0.92, 0.94, 0.91, 0.95, 0.93], [0.91, 0.92, 0.91, 0.91, 0.90]
>>> significance.paired_wilcoxon(ours, theirs)  # the third pair is equal
Wilcoxon(statistic=0.0, p_value=0.125, attainable=0.125)
>>> significance.holm([0.01, 0.04, 0.03]).tolist()
[0.03, 0.06, 0.06]
>>> significance.mean_ranks([[0.2, 0.1, 0.3], [0.5, 0.4, 0.4]], lower_is_better=True).tolist()
[2.5, 1.25, 2.25]
"""

from typing import NamedTuple

import numpy as np


class Wilcoxon(NamedTuple):
    """The smaller rank sum, its exact two-sided p-value, and the smallest p-value attainable."""

    statistic: float
    p_value: float
    attainable: float


def paired_wilcoxon(a, b):
    """Exact two-sided Wilcoxon signed-rank test of paired samples.

    p = min(1, 2 P(W ≤ min(W₊, W₋))), W the sum of the midranks of |a − b| with random signs.

    Equal pairs are dropped, and the m that are left could at best give 2 / 2^m. Differences that
    agree to within the rounding of their inputs are ties, so pass values in the precision in which
    they were computed. A value that is not finite is an error: a pair with it cannot be compared,
    to leave out the seeds on which a loss diverged would flatter it, and what they should count for
    is the caller's to say.

    Args:
      a: [n] values of one loss, one a seed.
      b: [n] values of the other on the same seeds.

    Returns:
      The `Wilcoxon` result; statistic 0 and p-values 1 when no pair differs.
    """
    a, b = _checked_pairs(a, b)
    # Each input may be off by a unit in its last place.
    rounding = (np.spacing(np.abs(a)) + np.spacing(np.abs(b))).astype(np.float64)
    differences = a.astype(np.float64) - b.astype(np.float64)
    unequal = np.abs(differences) > rounding
    differences, rounding = differences[unequal], rounding[unequal]
    doubled = _doubled_midranks(np.abs(differences), rounding)
    positive, total = int(doubled[differences > 0].sum()), int(doubled.sum())
    smaller = min(positive, total - positive)
    p_value = min(1.0, 2.0 * float(_null_distribution(doubled)[: smaller + 1].sum()))
    return Wilcoxon(smaller / 2, p_value, min(1.0, 2.0 * 0.5 ** len(differences)))


def holm(p_values):
    """Holm's step-down adjustment, which controls the family-wise error under any dependence.

    p̃_(i) = max_{j ≤ i} min(1, (m − j + 1) p_(j))

    Args:
      p_values: [m] in any order.

    Returns:
      [m] adjusted p-values in the same order.
    """
    p_values = np.asarray(p_values, dtype=np.float64)
    if p_values.ndim != 1 or not np.all((p_values >= 0) & (p_values <= 1)):
        raise ValueError(f"p_values must be [m] numbers in [0, 1], but are {p_values.tolist()}")
    order = np.argsort(p_values, kind="stable")
    multipliers = np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(multipliers * p_values[order]), 1.0)
    return adjusted


def mean_ranks(values, *, lower_is_better):
    """Mean rank of each loss over cells; 1 is best, ties share their average rank.

    A NaN, the mark of a diverged run, ranks last.

    Args:
      values: [cells, losses].
      lower_is_better: True for errors and scores, False for accuracies.

    Returns:
      [losses] in [1, number of losses].
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"values must be a non-empty [cells, losses], but are {values.shape}")
    costs = values if lower_is_better else -values
    return _ranks(np.where(np.isnan(costs), np.inf, costs)).mean(axis=0)


def _checked_pairs(a, b):
    a, b = (np.asarray(x) for x in (a, b))
    a, b = (x if x.dtype.kind == "f" else x.astype(np.float64) for x in (a, b))
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"a and b must be [n] and paired, but are {a.shape} and {b.shape}")
    bad = np.flatnonzero(~(np.isfinite(a) & np.isfinite(b)))
    if len(bad):
        pair = f"pair {bad[0]} is ({a[bad[0]]}, {b[bad[0]]})"
        raise ValueError(f"a and b must be finite, but {pair}, as of a diverged run")
    return a, b


def _doubled_midranks(magnitudes, rounding):
    """[m] integers, twice the midrank of each magnitude; a chain of near-equal ones is one tie."""
    order = np.argsort(magnitudes, kind="stable")
    gaps = np.diff(magnitudes[order])
    apart = gaps > rounding[order][1:] + rounding[order][:-1]
    groups = np.empty(len(order), dtype=np.int64)
    groups[order] = np.concatenate([[0], np.cumsum(apart)])[: len(order)]
    return np.rint(2 * _ranks(groups)).astype(np.int64)


def _null_distribution(doubled):
    """[Σ doubled + 1] probabilities of each doubled rank sum when every sign is a fair coin.

    The coefficients of Π_i (1 + x^{r_i}) / 2, multiplied out one factor at a time.
    """
    probabilities = np.ones(1)
    for rank in doubled:
        gap = np.zeros(rank)
        shifted = np.concatenate([gap, probabilities])
        probabilities = (np.concatenate([probabilities, gap]) + shifted) / 2
    return probabilities


def _ranks(values):
    """Ranks along the last axis, from 1, with ties sharing their average."""
    # here, because scipy.stats takes a second to import, and pgeom must not
    from scipy.stats import rankdata

    return rankdata(values, axis=-1)
