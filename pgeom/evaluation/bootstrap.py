"""Bootstrap intervals of many means at once.

The interval is bias-corrected and accelerated (BCa; Efron, 1987). All samples share their
resamples, so a thousand comparisons over a hundred seeds are one matrix product.

>>> import numpy as np
>>> from pgeom.evaluation import bootstrap
>>> low, high = bootstrap.mean_interval(np.array([[0.1, 0.4, 0.2, 0.3], [5.0, 5.0, 5.0, 5.0]]))
>>> np.round(low, 2).tolist(), np.round(high, 2).tolist()
([0.15, 5.0], [0.35, 5.0])
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

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
