"""Paired comparison of losses over seeds: exact Wilcoxon test and Holm correction.

With five seeds no sign pattern reaches p = .05, so each test also returns the smallest p-value that
it could have given. P-values are exact whatever the ties, never a normal approximation.

>>> from pgeom.evaluation import significance
>>> ours, theirs = [0.92, 0.94, 0.91, 0.95, 0.93], [0.91, 0.92, 0.91, 0.91, 0.90]
>>> significance.paired_wilcoxon(ours, theirs)  # the third pair is equal
Wilcoxon(statistic=0.0, p_value=0.125, attainable=0.125)
>>> significance.holm([0.01, 0.04, 0.03]).tolist()
[0.03, 0.06, 0.06]
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Real

from pgeom.evaluation.metrics import Values


class Wilcoxon(NamedTuple):
    """The result of a paired test.

    Attributes:
      statistic: the smaller rank sum.
      p_value: its exact two-sided p-value.
      attainable: the smallest p-value that as many unequal pairs can give.
    """

    statistic: float
    p_value: float
    attainable: float


def paired_wilcoxon(a: Values, b: Values) -> Wilcoxon:
    """The exact two-sided Wilcoxon signed-rank test of paired samples.

    p = min(1, 2 P(W ≤ min(W₊, W₋))), W the sum of the midranks of |a − b| with random signs.

    Equal pairs are dropped, and the m that remain give 2 / 2^m at best. Differences that agree to
    within the rounding of their inputs are ties, so pass values in the precision in which they were
    computed. A value that is not finite is an error: its pair cannot be compared, and dropping the
    seeds on which a loss diverged would flatter it, so the caller must decide how they count.

    Args:
      a: values of one loss, one per seed, `[n]`.
      b: values of the other loss on the same seeds, `[n]`.

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
    tail = _null_distribution(tuple(sorted(doubled.tolist())))[: smaller + 1]
    p_value = min(1.0, 2.0 * float(tail.sum()))
    return Wilcoxon(smaller / 2, p_value, min(1.0, 2.0 * 0.5 ** len(differences)))


def holm(p_values: Values) -> Float[np.ndarray, " m"]:
    """Holm's step-down adjustment, which controls the family-wise error under any dependence.

    p̃_(i) = max_{j ≤ i} min(1, (m − j + 1) p_(j))

    Args:
      p_values: in any order, `[m]`.

    Returns:
      The adjusted p-values in the same order, `[m]`.
    """
    p_values = np.asarray(p_values, dtype=np.float64)
    if p_values.ndim != 1 or not np.all((p_values >= 0) & (p_values <= 1)):
        raise ValueError(f"p_values must be [m] numbers in [0, 1], got {p_values.tolist()}")
    order = np.argsort(p_values, kind="stable")
    multipliers = np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(multipliers * p_values[order]), 1.0)
    return adjusted


def _checked_pairs(a: Values, b: Values) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    a, b = (np.asarray(x) for x in (a, b))
    a, b = (x if x.dtype.kind == "f" else x.astype(np.float64) for x in (a, b))
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"a and b must have one shape [n], got {a.shape} and {b.shape}")
    bad = np.flatnonzero(~(np.isfinite(a) & np.isfinite(b)))
    if len(bad):
        pair = f"({a[bad[0]]}, {b[bad[0]]}) at index {bad[0]}"
        raise ValueError(f"a and b must be finite, got {pair}, as from a diverged run")
    return a, b


def _doubled_midranks(
    magnitudes: Float[np.ndarray, " m"], rounding: Float[np.ndarray, " m"]
) -> Int[np.ndarray, " m"]:
    """Twice the midrank of each magnitude, an integer; a chain of near-equal ones is one tie."""
    order = np.argsort(magnitudes, kind="stable")
    gaps = np.diff(magnitudes[order])
    apart = gaps > rounding[order][1:] + rounding[order][:-1]
    groups = np.empty(len(order), dtype=np.int64)
    groups[order] = np.concatenate([[0], np.cumsum(apart)])[: len(order)]
    return np.rint(2 * _ranks(groups)).astype(np.int64)


@lru_cache(maxsize=64)
def _null_distribution(doubled: tuple[int, ...]) -> Float[np.ndarray, " sums"]:
    """The probability of each doubled rank sum 0 … Σ doubled when every sign is a fair coin.

    The coefficients of Π_i (1 + x^{r_i}) / 2, multiplied out one factor at a time. Samples without
    ties all have the same ranks, hence the cache.
    """
    probabilities = np.ones(1)
    for rank in doubled:
        gap = np.zeros(rank)
        shifted = np.concatenate([gap, probabilities])
        probabilities = (np.concatenate([probabilities, gap]) + shifted) / 2
    return probabilities


def _ranks(values: Real[np.ndarray, "*cells m"]) -> Float[np.ndarray, "*cells m"]:
    """Ranks along the last axis, from 1, with ties sharing their average."""
    # here, because scipy.stats takes a second to import, and pgeom must not
    from scipy.stats import rankdata

    return rankdata(values, axis=-1)
