"""Losses compared on matched seeds: exact tests, intervals of differences, verdicts and ranks.

With five seeds no sign pattern reaches p = .05, so each Wilcoxon test also returns the smallest
p-value that it could have given. P-values are exact whatever the ties, never a normal
approximation; intervals of a mean are bootstrapped; `compare` puts them together to a verdict.

>>> from pgeom.evaluation import significance
>>> ours, theirs = [0.92, 0.94, 0.91, 0.95, 0.93], [0.91, 0.92, 0.91, 0.91, 0.90]
>>> significance.paired_wilcoxon(ours, theirs)  # the third pair is equal
Wilcoxon(statistic=0.0, p_value=0.125, attainable=0.125)
>>> rng = np.random.default_rng(0)
>>> reference = rng.normal(0.9, 0.02, 50)
>>> ahead, same = reference + rng.normal(0.02, 0.01, 50), reference + rng.normal(0.0, 0.005, 50)
>>> result = compare(np.stack([ahead, same]), reference, margin=0.005, higher_is_better=True)
>>> result.verdict.tolist()
['better', 'equivalent']
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from pgeom.types import Numbers

# SciPy comes with JAX, but takes a second to import, and pgeom must not: what needs it imports it
# when it is called.

LEVEL = 0.05
BETTER, WORSE, EQUIVALENT, UNDETERMINED = "better", "worse", "equivalent", "undetermined"
RESAMPLES = 9_999
SEED = 0
# A resampled mean closer to the sample's own than this share of the deviations is the same mean:
# accuracies repeat, and sums of the same numbers differ by rounding.
EQUAL = 1e-12

PerLoss = Float[np.ndarray, " losses"]
"""One number per loss."""

Differences = Float[np.ndarray, "losses n"]
"""Of each loss from a reference, on n matched seeds."""


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


def paired_wilcoxon(a: Numbers, b: Numbers) -> Wilcoxon:
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


def _checked_pairs(a, b):
    """Two arrays of numbers that can be compared."""
    a, b = (np.asarray(x) for x in (a, b))
    a, b = (x if x.dtype.kind == "f" else x.astype(np.float64) for x in (a, b))
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"a and b must have one shape [n], got {a.shape} and {b.shape}")
    bad = ~(np.isfinite(a) & np.isfinite(b))
    if bad.any():
        first = np.argmax(bad)
        pair = f"({a[first]}, {b[first]}) at index {first}"
        raise ValueError(f"a and b must be finite, got {pair}, as from a diverged run")
    return a, b


def _doubled_midranks(magnitudes, rounding):
    """Twice the midrank of each magnitude, an integer; a chain of near-equal ones is one tie."""
    order = np.argsort(magnitudes, kind="stable")
    gaps = np.diff(magnitudes[order], prepend=-np.inf)
    separate = gaps > rounding[order] + np.roll(rounding[order], 1)
    tie = np.cumsum(separate) - 1
    sizes = np.bincount(tie)
    doubled = np.empty(len(order), np.int64)
    doubled[order] = (2 * np.cumsum(sizes) - sizes + 1)[tie]
    return doubled


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


def holm(p_values: Numbers) -> Float[np.ndarray, " m"]:
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


def mean_interval(
    differences: Differences,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[PerLoss, PerLoss]:
    """Bias-corrected and accelerated bootstrap intervals of means (BCa; Efron, 1987).

    The ends are the quantiles Φ(z₀ + (z₀ + z)/(1 − a(z₀ + z))) of the resampled means with
    z = ±z_{α/2}, z₀ the median bias, a = Σu³ / (6(Σu²)^{3/2}), u the deviations from the mean.
    All rows share their resamples, so a thousand comparisons over a hundred seeds are one matrix
    product.

    >>> low, high = mean_interval(np.array([[0.1, 0.4, 0.2, 0.3], [5.0, 5.0, 5.0, 5.0]]))
    >>> np.round(low, 2).tolist(), np.round(high, 2).tolist()
    ([0.15, 5.0], [0.35, 5.0])

    Args:
      differences: one row per mean, finite, `[losses, n]`.
      level: of confidence.
      resamples: how many.
      seed: of the resamples, which all rows share.

    Returns:
      The lower and the upper ends; NaN for a single value, the mean itself where all values are
      equal.
    """
    count, n = differences.shape
    if n < 2:
        return np.full(count, np.nan), np.full(count, np.nan)
    means = differences.mean(axis=1)
    deviations = differences - means[:, None]
    spread = np.abs(deviations).max(axis=1)
    varies = spread > EQUAL * np.abs(means)
    deviations[~varies] = 0.0
    moved = deviations @ _shares(n, resamples, seed)
    squares = np.where(varies, (deviations**2).sum(axis=1), 1.0)
    acceleration = (deviations**3).sum(axis=1) / (6 * squares**1.5)
    low, high = means + corrected_quantiles(moved, level, EQUAL * spread, acceleration)
    return low, high


def corrected_quantiles(
    drawn: Float[np.ndarray, "rows resamples"],
    level: float,
    tolerance: Numbers = 0.0,
    acceleration: Numbers = 0.0,
) -> Float[np.ndarray, "2 rows"]:
    """The lower and upper ends of bias-corrected bootstrap intervals.

    Args:
      drawn: what was resampled, less what it is an estimate of.
      level: of confidence.
      tolerance: up to which a draw counts as equal: half of it as below.
      acceleration: a of the BCa interval; none by default.
    """
    from scipy.special import ndtr, ndtri

    sign = np.where(np.abs(drawn) > np.reshape(tolerance, (-1, 1)), np.sign(drawn), 0.0)
    least = 1 / (drawn.shape[1] + 1)
    z0 = ndtri(np.clip((1 - sign.mean(axis=1)) / 2, least, 1 - least))
    z = z0 + ndtri([[(1 - level) / 2], [(1 + level) / 2]])
    at = ndtr(z0 + z / (1 - acceleration * z))
    ends = [np.quantile(row, both) for row, both in zip(drawn, at.T, strict=True)]
    return np.reshape(ends, (-1, 2)).T


@lru_cache(maxsize=4)
def _shares(n, resamples, seed):
    """The share that each of n values has in each resample, `[n, resamples]`."""
    drawn = np.random.default_rng(seed).integers(0, n, (resamples, n))
    places = drawn + n * np.arange(resamples)[:, None]
    counts = np.bincount(places.ravel(), minlength=resamples * n)
    return counts.reshape(resamples, n).T / n


def t_interval(differences: Differences, *, level: float = 0.95) -> tuple[PerLoss, PerLoss]:
    """Student's interval of each mean, which is wide where the seeds are few.

    Args:
      differences: on matched seeds, `[losses, n]`.
      level: of confidence.

    Returns:
      The lower and the upper ends, `mean ∓ t √(variance/n)`; NaN for a single seed.
    """
    from scipy.special import stdtrit

    mean, error = _mean_and_error(differences)
    reach = stdtrit(differences.shape[1] - 1, (1 + level) / 2) * error
    return mean - reach, mean + reach


def equivalence(differences: Differences, margin: float) -> PerLoss:
    """The p-value of two one-sided paired t-tests (TOST) of |mean| ≥ margin.

    p = max(P(t ≥ (mean + margin)/se), P(t ≤ (mean − margin)/se)), t with n − 1 degrees of freedom.

    Args:
      differences: on matched seeds, `[losses, n]`.
      margin: of equivalence, positive.

    Returns:
      One p-value per row, `[losses]`; NaN for a single seed. Where all differences are equal there
      is nothing to estimate, and it is 0 or 1.
    """
    from scipy.special import stdtr

    if not margin > 0:
        raise ValueError(f"margin must be positive, got {margin}")
    mean, error = _mean_and_error(differences)
    with np.errstate(divide="ignore", invalid="ignore"):
        nearest = (np.abs(mean) - margin) / error  # the larger of the two p-values is its own
    return stdtr(differences.shape[1] - 1, nearest)


def _mean_and_error(differences):
    """The mean of each row, and its standard error; NaN for a single value."""
    n = differences.shape[1]
    mean = differences.mean(axis=1)
    if n < 2:
        return mean, np.full_like(mean, np.nan)
    return mean, differences.std(axis=1, ddof=1) / np.sqrt(n)


class Comparisons(NamedTuple):
    """Every loss against the reference, one entry each; NaN where a run has no number.

    Attributes:
      difference: the mean of loss − reference.
      low: the lower end of its 95% BCa bootstrap interval.
      high: the upper end.
      p_value: of the exact two-sided Wilcoxon test.
      holm: that p-value, corrected over the losses.
      attainable: the smallest `p_value` that as many unequal pairs can give.
      superiority: the share of seeds on which the loss is better, ties counted half.
      tost: the p-value of two one-sided t-tests of |difference| ≥ margin.
      verdict: see `judge`.
    """

    difference: PerLoss
    low: PerLoss
    high: PerLoss
    p_value: PerLoss
    holm: PerLoss
    attainable: PerLoss
    superiority: PerLoss
    tost: PerLoss
    verdict: Shaped[np.ndarray, " losses"]


def compare(
    values: Float[np.ndarray, "losses n"],
    reference: Float[np.ndarray, "*losses n"],
    *,
    margin: float,
    higher_is_better: bool,
    resamples: int = RESAMPLES,
) -> Comparisons:
    """Compare losses with a reference on the same n seeds.

    Args:
      values: of one metric, in the precision in which they were computed, `[losses, n]`.
      reference: `[n]`, or one per loss, `[losses, n]`.
      margin: the largest mean difference that is of no consequence.
      higher_is_better: whether the metric is, as accuracy, better when it is larger.
      resamples: of the bootstrap.

    Returns:
      The `Comparisons`. Losses with a value that is not finite are undetermined and not counted in
      Holm's correction.
    """
    reference = np.broadcast_to(reference, values.shape)
    differences = values.astype(np.float64) - reference.astype(np.float64)
    known = np.isfinite(differences).all(axis=1)
    differences = differences[known]
    low, high = mean_interval(differences, resamples=resamples)
    pairs = zip(values[known], reference[known], strict=True)
    tests = [paired_wilcoxon(one, other) for one, other in pairs]
    p_values = [test.p_value for test in tests]
    sign = 1.0 if higher_is_better else -1.0
    columns = np.full((8, len(values)), np.nan)
    columns[:, known] = (
        differences.mean(axis=1),
        low,
        high,
        p_values,
        holm(p_values),
        [test.attainable for test in tests],
        (np.sign(sign * differences).mean(axis=1) + 1) / 2,
        equivalence(differences, margin),
    )
    difference, low, high, _, corrected, _, _, tost = columns
    verdicts = judge(sign * difference, sign * low, sign * high, corrected, tost)
    return Comparisons(*columns, verdict=verdicts)


def judge(
    gain: PerLoss, low: PerLoss, high: PerLoss, corrected: PerLoss, tost: PerLoss
) -> Shaped[np.ndarray, " losses"]:
    """The verdict of each comparison, at the 5% level, by rules stated before any number.

    1. *equivalent*: two one-sided t-tests show that the mean difference lies within ± the margin,
       the largest difference of no consequence. This comes first: with enough seeds any difference
       is significant, and one within the margin still does not matter.
    2. *better* or *worse*: the BCa interval of the mean difference excludes zero and the exact
       Wilcoxon test, Holm-corrected over all comparisons with the reference, is significant: the
       mean and the ranks must agree.
    3. *undetermined*: neither.

    Thus the chance of a false better or worse in one call is at most 5%. Equivalence is not
    corrected for the number of comparisons: each false *equivalent* has a chance of at most 5% of
    its own.

    Args:
      gain: the mean difference, positive where the loss is better.
      low: an end of its interval.
      high: the other end.
      corrected: Holm's p-values.
      tost: the p-values of equivalence.
    """
    significant = (corrected <= LEVEL) & (np.sign(low) * np.sign(high) > 0)
    conditions = [tost <= LEVEL, significant & (gain > 0), significant & (gain < 0)]
    return np.select(conditions, [EQUIVALENT, BETTER, WORSE], UNDETERMINED).astype(object)


class Ranking(NamedTuple):
    """Mean ranks over cells.

    Attributes:
      mean_ranks: of each loss, 1 the best possible.
      p_value: of Friedman's test that all losses have one mean rank.
      critical_difference: of Nemenyi's test; two losses whose mean ranks are closer are not told
        apart (Demšar, 2006).
      cells: over how many the mean is.
    """

    mean_ranks: PerLoss
    p_value: float
    critical_difference: float
    cells: int


def rank(scores: Float[np.ndarray, "cells losses"], *, higher_is_better: bool) -> Ranking:
    """Rank the losses in each cell and test whether their mean ranks differ.

    CD = q √(k(k + 1)/(6N)), q the studentized range of k losses over √2, at 5%, N cells.

    >>> scores = np.array([[0.9, 0.8, 0.7], [0.8, 0.6, 0.7], [0.9, 0.8, 0.8], [0.7, 0.6, 0.5]])
    >>> result = rank(scores, higher_is_better=True)
    >>> result.mean_ranks.tolist(), round(result.critical_difference, 2)
    ([1.0, 2.375, 2.625], 1.66)

    Args:
      scores: one metric, finite, `[cells, losses]` with at least three losses and two cells.
      higher_is_better: whether the largest score has rank 1.

    Returns:
      The `Ranking`; ties share their average rank.
    """
    from scipy import stats

    cells, losses = scores.shape
    if losses < 3 or cells < 2 or not np.isfinite(scores).all():
        raise ValueError(
            f"scores must be finite, with two cells and three losses at least, got {scores.shape}"
        )
    ranks = stats.rankdata(-scores if higher_is_better else scores, axis=1)
    q = stats.studentized_range.ppf(1 - LEVEL, losses, np.inf) / np.sqrt(2)
    difference = q * np.sqrt(losses * (losses + 1) / (6 * cells))
    differ = np.ptp(ranks, axis=1).any()
    p_value = stats.friedmanchisquare(*ranks.T).pvalue if differ else 1.0
    return Ranking(ranks.mean(axis=0), float(p_value), float(difference), cells)


def cliques(mean_ranks: PerLoss, critical_difference: float) -> list[tuple[int, ...]]:
    """The largest groups of losses that are not told apart, each in order of rank.

    >>> cliques(np.array([1.0, 3.0, 1.5, 3.4]), 1.8)
    [(0, 2), (2, 1), (1, 3)]

    Args:
      mean_ranks: of each loss.
      critical_difference: as `rank` gives it.
    """
    order = np.argsort(mean_ranks, kind="stable")
    ranks = mean_ranks[order]
    ends = np.searchsorted(ranks, ranks + critical_difference, side="right")
    new = np.diff(ends, prepend=0) > 0  # a group that ends where the one before does is part of it
    groups = [order[first:end].tolist() for first, end in enumerate(ends) if new[first]]
    return [tuple(group) for group in groups if len(group) > 1]
