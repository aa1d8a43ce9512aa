"""Losses against a reference on matched seeds: how much, how sure, and a verdict.

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
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from pgeom.evaluation import bootstrap
from pgeom.evaluation.significance import holm, paired_wilcoxon

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
    resamples: int = bootstrap.RESAMPLES,
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
    low, high = bootstrap.mean_interval(differences, resamples=resamples)
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


def t_interval(
    differences: Float[np.ndarray, "losses n"], *, level: float = 0.95
) -> bootstrap.Interval:
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
        return bootstrap.mean_interval(differences)
    mean = differences.mean(axis=1)
    reach = stdtrit(n - 1, (1 + level) / 2) * differences.std(axis=1, ddof=1) / np.sqrt(n)
    return bootstrap.Interval(mean - reach, mean + reach)


def _spread(
    values: Float[np.ndarray, " known"], places: Int[np.ndarray, " known"], count: int
) -> Float[np.ndarray, " count"]:
    """The values in their places, NaN elsewhere."""
    spread = np.full(count, np.nan)
    spread[places] = values
    return spread
