"""Losses ranked in several cells: Friedman's test and Nemenyi's critical difference.

The losses are ranked in each cell, 1 the best. Friedman's test asks whether all have one mean rank;
two losses whose mean ranks are closer than the critical difference are not told apart (Demšar,
2006).

>>> import numpy as np
>>> scores = np.array([[0.9, 0.8, 0.7], [0.8, 0.6, 0.7], [0.9, 0.8, 0.8], [0.7, 0.6, 0.5]])
>>> result = rank(scores, higher_is_better=True)
>>> result.mean_ranks.tolist(), round(result.critical_difference, 2)
([1.0, 2.375, 2.625], 1.66)
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float


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
