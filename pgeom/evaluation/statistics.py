"""Losses compared over seeds: intervals, verdicts and ranks.

Bootstrap intervals of many means at once.

The interval is bias-corrected and accelerated (BCa; Efron, 1987). All samples share their
resamples, so a thousand comparisons over a hundred seeds are one matrix product.

>>> import numpy as np
>>> low, high = mean_interval(np.array([[0.1, 0.4, 0.2, 0.3], [5.0, 5.0, 5.0, 5.0]]))
>>> np.round(low, 2).tolist(), np.round(high, 2).tolist()
([0.15, 5.0], [0.35, 5.0])

Losses against a reference on matched seeds: how much, how sure, and a verdict.

Each comparison has four outcomes, decided at the 5% level by rules stated before any number:

1. *equivalent*: two one-sided t-tests show that the mean difference lies within ± the margin, the
   largest difference of no consequence. This comes first: with enough seeds any difference is
   significant, and one within the margin still does not matter.
2. *better* or *worse*: the BCa interval of the mean difference excludes zero and the exact Wilcoxon
   test, Holm-corrected over all comparisons with the reference, is significant: the mean and the
   ranks must agree.
3. *undetermined*: neither.

Thus the chance of a false better or worse in one call is at most 5%. Equivalence is not corrected
for the number of comparisons: each false *equivalent* has a chance of at most 5% of its own.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> reference = rng.normal(0.9, 0.02, 50)
>>> ahead, same = reference + rng.normal(0.02, 0.01, 50), reference + rng.normal(0.0, 0.005, 50)
>>> result = compare(np.stack([ahead, same]), reference, margin=0.005, higher_is_better=True)
>>> result.verdict.tolist()
['better', 'equivalent']

Losses ranked in several cells: Friedman's test and Nemenyi's critical difference.

The losses are ranked in each cell, 1 the best. Friedman's test asks whether all have one mean rank;
two losses whose mean ranks are closer than the critical difference are not told apart (Demšar,
2006).

>>> import numpy as np
>>> scores = np.array([[0.9, 0.8, 0.7], [0.8, 0.6, 0.7], [0.9, 0.8, 0.8], [0.7, 0.6, 0.5]])
>>> result = rank(scores, higher_is_better=True)
>>> result.mean_ranks.tolist(), round(result.critical_difference, 2)
([1.0, 2.375, 2.625], 1.66)
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from pgeom.evaluation.significance import holm, paired_wilcoxon

RESAMPLES = 9_999
SEED = 0
# A resampled mean closer to the sample's own than this share of the deviations is the same mean:
# accuracies repeat, and sums of the same numbers differ by rounding.
SAME = 1e-12


class Interval(NamedTuple):
    """The ends of one interval per sample."""

    low: Float[np.ndarray, " samples"]
    high: Float[np.ndarray, " samples"]


def mean_interval(
    samples: Float[np.ndarray, "samples n"],
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval:
    """BCa bootstrap intervals of means.

    The ends are the quantiles Φ(z₀ + (z₀ + z)/(1 − a(z₀ + z))) of the resampled means with
    z = ±z_{α/2}, z₀ the median bias, a = Σu³ / (6(Σu²)^{3/2}), u the deviations from the mean.

    Args:
      samples: one row per mean, finite, `[samples, n]`.
      level: of confidence.
      resamples: how many.
      seed: of the resamples, which all rows share.

    Returns:
      The `Interval`; NaN for a single value, the mean itself where all values are equal.
    """
    # here, because scipy takes a second to import, and pgeom must not
    from scipy.special import ndtr, ndtri

    count, n = samples.shape
    if n < 2 or not count:
        return Interval(np.full(count, np.nan), np.full(count, np.nan))
    means = samples.mean(axis=1)
    deviations = samples - means[:, None]
    spread = np.abs(deviations).max(axis=1)
    varies = spread > SAME * np.abs(means)
    deviations[~varies] = 0.0
    moved = deviations @ _weights(n, resamples, seed)
    tolerance = SAME * spread[:, None]
    below, same = moved < -tolerance, np.abs(moved) <= tolerance
    z0 = ndtri((below.sum(axis=1) + same.sum(axis=1) / 2) / resamples)
    squares = np.where(varies, (deviations**2).sum(axis=1), 1.0)
    acceleration = (deviations**3).sum(axis=1) / (6 * squares**1.5)
    moved.sort(axis=1)
    ends = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        z = z0 + ndtri(tail)
        quantiles = _quantile(moved, ndtr(z0 + z / (1 - acceleration * z)))
        ends.append(means + quantiles)
    return Interval(*ends)


@lru_cache(maxsize=4)
def _weights(n: int, resamples: int, seed: int) -> Float[np.ndarray, "n resamples"]:
    """The share that each value has in each resample."""
    drawn = np.random.default_rng(seed).integers(0, n, (resamples, n))
    places = drawn + n * np.arange(resamples)[:, None]
    counts = np.bincount(places.ravel(), minlength=resamples * n)
    return counts.reshape(resamples, n).T / n


def _quantile(
    ordered: Float[np.ndarray, "samples resamples"], share: Float[np.ndarray, " samples"]
) -> Float[np.ndarray, " samples"]:
    """A quantile of each row, linear between its values."""
    last = ordered.shape[1] - 1
    place = share * last
    left = np.clip(np.floor(place).astype(int), 0, last - 1)
    rows = np.arange(len(ordered))
    start, end = ordered[rows, left], ordered[rows, left + 1]
    return start + (place - left) * (end - start)


LEVEL = 0.05
BETTER, WORSE, EQUIVALENT, UNDETERMINED = "better", "worse", "equivalent", "undetermined"


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
      verdict: see the module.
    """

    difference: Float[np.ndarray, " losses"]
    low: Float[np.ndarray, " losses"]
    high: Float[np.ndarray, " losses"]
    p_value: Float[np.ndarray, " losses"]
    holm: Float[np.ndarray, " losses"]
    attainable: Float[np.ndarray, " losses"]
    superiority: Float[np.ndarray, " losses"]
    tost: Float[np.ndarray, " losses"]
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
    known = np.flatnonzero(np.isfinite(differences).all(axis=1))
    differences = differences[known]
    low, high = mean_interval(differences, resamples=resamples)
    pairs = zip(values[known], reference[known], strict=True)
    tests = [paired_wilcoxon(one, other) for one, other in pairs]
    p_values = np.array([test.p_value for test in tests])
    corrected, tost = holm(p_values), equivalence(differences, margin)
    sign = 1.0 if higher_is_better else -1.0
    mean = differences.mean(axis=1)
    columns = {
        "difference": mean,
        "low": low,
        "high": high,
        "p_value": p_values,
        "holm": corrected,
        "attainable": np.array([test.attainable for test in tests]),
        "superiority": (np.sign(sign * differences).mean(axis=1) + 1) / 2,
        "tost": tost,
    }
    gains = (sign * mean, np.minimum(sign * low, sign * high), np.maximum(sign * low, sign * high))
    verdicts = np.full(len(values), UNDETERMINED, dtype=object)
    verdicts[known] = judge(*gains, corrected, tost)
    spread = {name: _spread(column, known, len(values)) for name, column in columns.items()}
    return Comparisons(**spread, verdict=verdicts)


def judge(
    gain: Float[np.ndarray, " losses"],
    low: Float[np.ndarray, " losses"],
    high: Float[np.ndarray, " losses"],
    corrected: Float[np.ndarray, " losses"],
    tost: Float[np.ndarray, " losses"],
) -> Shaped[np.ndarray, " losses"]:
    """The verdict of each comparison, by the rules of the module.

    Args:
      gain: the mean difference, positive where the loss is better.
      low: the lower end of its interval.
      high: the upper end.
      corrected: Holm's p-values.
      tost: the p-values of equivalence.
    """
    significant = (corrected <= LEVEL) & ((low > 0) | (high < 0))
    conditions = [tost <= LEVEL, significant & (gain > 0), significant & (gain < 0)]
    return np.select(conditions, [EQUIVALENT, BETTER, WORSE], UNDETERMINED).astype(object)


def equivalence(
    differences: Float[np.ndarray, "losses n"], margin: float
) -> Float[np.ndarray, " losses"]:
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
    n = differences.shape[1]
    if n < 2:
        return np.full(len(differences), np.nan)
    mean = differences.mean(axis=1)
    error = differences.std(axis=1, ddof=1) / np.sqrt(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        nearest = (np.abs(mean) - margin) / error  # the larger of the two p-values is its own
    return stdtr(n - 1, nearest)


def t_interval(differences: Float[np.ndarray, "losses n"], *, level: float = 0.95) -> Interval:
    """Student's interval of each mean, which is wide where the seeds are few.

    Args:
      differences: on matched seeds, `[losses, n]`.
      level: of confidence.

    Returns:
      The `Interval`, `mean ± t √(variance/n)`; NaN for a single seed.
    """
    from scipy.special import stdtrit

    n = differences.shape[1]
    if n < 2:
        return mean_interval(differences)
    mean = differences.mean(axis=1)
    reach = stdtrit(n - 1, (1 + level) / 2) * differences.std(axis=1, ddof=1) / np.sqrt(n)
    return Interval(mean - reach, mean + reach)


def _spread(
    values: Float[np.ndarray, " known"], places: Int[np.ndarray, " known"], count: int
) -> Float[np.ndarray, " count"]:
    """The values in their places, NaN elsewhere."""
    spread = np.full(count, np.nan)
    spread[places] = values
    return spread


class Ranking(NamedTuple):
    """Mean ranks over cells.

    Attributes:
      mean_ranks: of each loss, 1 the best possible.
      p_value: of Friedman's test that all losses have one mean rank.
      critical_difference: of Nemenyi's test at the level asked for.
      cells: over how many the mean is.
    """

    mean_ranks: Float[np.ndarray, " losses"]
    p_value: float
    critical_difference: float
    cells: int


def rank(
    scores: Float[np.ndarray, "cells losses"], *, higher_is_better: bool, level: float = 0.05
) -> Ranking:
    """Rank the losses in each cell and test whether their mean ranks differ.

    CD = q √(k(k + 1)/(6N)), q the studentized range of k losses over √2, N cells.

    Args:
      scores: one metric, finite, `[cells, losses]` with at least three losses and two cells.
      higher_is_better: whether the largest score has rank 1.
      level: of the critical difference.

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
    q = float(stats.studentized_range.ppf(1 - level, losses, np.inf)) / np.sqrt(2)
    difference = q * _unit(losses, cells)
    p_value = (
        float(stats.friedmanchisquare(*ranks.T).pvalue) if np.ptp(ranks, axis=1).any() else 1.0
    )
    return Ranking(ranks.mean(axis=0), p_value, float(difference), cells)


def nemenyi(
    mean_ranks: Float[np.ndarray, " losses"], cells: int
) -> Float[np.ndarray, "losses losses"]:
    """Nemenyi's p-values that two losses have one mean rank, for every pair.

    Args:
      mean_ranks: of each loss.
      cells: over how many the mean is.
    """
    from scipy import stats

    losses = len(mean_ranks)
    apart = np.abs(mean_ranks[:, None] - mean_ranks) / _unit(losses, cells)
    return np.asarray(stats.studentized_range.sf(apart * np.sqrt(2), losses, np.inf))


def cliques(
    mean_ranks: Float[np.ndarray, " losses"], critical_difference: float
) -> list[tuple[int, ...]]:
    """The largest groups of losses that are not told apart, each in order of rank.

    >>> cliques(np.array([1.0, 3.0, 1.5, 3.4]), 1.8)
    [(0, 2), (2, 1), (1, 3)]

    Args:
      mean_ranks: of each loss.
      critical_difference: as `rank` gives it.
    """
    order = np.argsort(mean_ranks, kind="stable")
    groups, end = [], 0
    for first, loss in enumerate(order):
        near = mean_ranks[order] <= mean_ranks[loss] + critical_difference
        last = int(np.flatnonzero(near)[-1])
        if last > first and last > end:
            groups.append(tuple(order[first : last + 1].tolist()))
        end = max(end, last)
    return groups


def _unit(losses: int, cells: int) -> float:
    return float(np.sqrt(losses * (losses + 1) / (6 * cells)))
