"""Calibration errors by bins of equal width, and the table behind a reliability diagram.

Bin b of B holds the probabilities in (b/B, (b+1)/B], and 0 belongs to the first.

>>> import jax.numpy as jnp
>>> probabilities = jnp.array([[0.8, 0.2]] * 5)
>>> labels = jnp.array([0, 0, 0, 1, 1])  # right three times out of five
>>> round(float(ece(probabilities, labels)), 4)
0.2
>>> round(float(debiased_ece(probabilities, labels)), 4)  # less what chance adds
0.157
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pgeom import edge
from pgeom.evaluation.batch import (
    Values,
    align_probabilities,
    hits,
    one_hot,
)
from pgeom.types import AnyArray


class Reliability(NamedTuple):
    """What happens in each confidence bin; an empty bin has confidence, accuracy and share 0.

    Attributes:
      confidence: the mean confidence, `[..., bins]`.
      accuracy: the accuracy, `[..., bins]`.
      share: the share of the examples, `[..., bins]`; shares sum to one.
    """

    confidence: Float[Array, "*runs bins"]
    accuracy: Float[Array, "*runs bins"]
    share: Float[Array, "*runs bins"]


def ece(probabilities: Values, labels: Values, bins: int = 15) -> Float[Array, "*runs"]:
    """The expected calibration error of the top label.

    Σ_b share_b · |accuracy_b − confidence_b|

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.
      bins: the number of bins of equal width.

    Returns:
      `[...]`, in [0, 1].
    """
    scores, labels, dtype = align_probabilities(probabilities, labels)
    table, gaps = _table(jnp.max(scores, axis=-1), hits(scores, labels), _edges(bins, dtype))
    return jnp.sum(table.share * jnp.abs(gaps), axis=-1).astype(dtype)


def debiased_ece(probabilities: Values, labels: Values, bins: int = 15) -> Float[Array, "*runs"]:
    """The expected calibration error of the top label, less its bias.

    Σ_b share_b · (2 |d_b| − E |d_b + s_b N|),  d = accuracy − confidence, N a standard normal

    A calibrated forecast has a positive `ece`, because the accuracy of a bin is that of a sample,
    with the standard error s_b = √(accuracy_b (1 − accuracy_b) / count_b). The bias is estimated as
    by Kumar, Liang and Ma (2019), with the expectation in closed form; a negative value is 0.

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.
      bins: the number of bins of equal width.

    Returns:
      `[...]`, in [0, 1].
    """
    scores, labels, dtype = align_probabilities(probabilities, labels)
    table, gaps = _table(jnp.max(scores, axis=-1), hits(scores, labels), _edges(bins, dtype))
    gap = jnp.abs(gaps)
    variance = table.accuracy * (1 - table.accuracy)
    uncertain = variance > 0
    count = jnp.where(uncertain, table.share * labels.shape[-1], 1.0)
    error = jnp.sqrt(jnp.where(uncertain, variance, 1.0) / count)
    bias = jnp.where(uncertain, _mean_absolute(gap, error) - gap, 0.0 * gap)
    return jnp.maximum(jnp.sum(table.share * (gap - bias), axis=-1), 0.0).astype(dtype)


def classwise_ece(probabilities: Values, labels: Values, bins: int = 15) -> Float[Array, "*runs"]:
    """The calibration error of the probability of each class, averaged over the classes.

    (1/K) Σ_k Σ_b share_kb · |frequency_kb − mean_kb|

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.
      bins: the number of bins of equal width.

    Returns:
      `[...]`, in [0, 1].
    """
    scores, labels, dtype = align_probabilities(probabilities, labels)
    return _mean_over_classes(scores, one_hot(labels, scores), _edges(bins, dtype)).astype(dtype)


@partial(jax.jit, inline=True)  # or the loop would be compiled at every call
def _mean_over_classes(
    scores: Float[Array, "*runs n K"],
    outcomes: Float[Array, "*runs n K"],
    edges: Float[AnyArray, " edges"],
) -> Float[Array, "*runs"]:
    def one_class(pair):
        forecast, outcome = pair
        table, gaps = _table(forecast, outcome, edges)
        return jnp.sum(table.share * jnp.abs(gaps), axis=-1)

    # One class after another: the memberships of all of them would take K times the memory.
    classes = (jnp.moveaxis(x, -1, 0) for x in (scores, outcomes))
    return jnp.mean(jax.lax.map(one_class, tuple(classes)), axis=0)


def reliability(probabilities: Values, labels: Values, bins: int = 15) -> Reliability:
    """The reliability diagram of the top label.

    Bin b holds the examples with max_k p_k in (b/bins, (b+1)/bins].

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.
      bins: the number of bins of equal width.

    Returns:
      The `Reliability` of each bin.
    """
    scores, labels, dtype = align_probabilities(probabilities, labels)
    table, _ = _table(jnp.max(scores, axis=-1), hits(scores, labels), _edges(bins, dtype))
    return Reliability(*(x.astype(dtype) for x in table))


def _table(
    forecast: Float[Array, "*runs n"],
    outcome: Float[Array, "*runs n"],
    edges: Float[AnyArray, " edges"],
) -> tuple[Reliability, Float[Array, "*runs bins"]]:
    """The mean forecast and outcome of each bin, before they are rounded, and outcome − forecast.

    The difference is summed example by example: that of two sums, each rounded in proportion to the
    number of examples, would be mostly their rounding.
    """
    member = _membership(forecast, edges)
    count = jnp.sum(member, axis=-2)
    occupied = jnp.where(count > 0, count, 1.0)

    def bin_mean(values: Float[Array, "*runs n"]) -> Float[Array, "*runs bins"]:
        # a sum, which is added up in parts: a matrix product loses digits with every example
        return jnp.sum(member * values[..., None], axis=-2) / occupied

    accuracy, gap = bin_mean(outcome), bin_mean(outcome - forecast)
    return Reliability(accuracy - gap, accuracy, count / forecast.shape[-1]), gap


def _mean_absolute(
    mean: Float[Array, "*runs bins"], deviation: Float[Array, "*runs bins"]
) -> Float[Array, "*runs bins"]:
    """E |X| of a normal variable."""
    z = mean / deviation
    spread = deviation * jnp.sqrt(2 / jnp.pi) * jnp.exp(-jnp.square(z) / 2)
    return spread + mean * jax.scipy.special.erf(z / jnp.sqrt(2.0))


def _edges(bins: int, dtype: np.dtype) -> Float[np.ndarray, " edges"]:
    """The bins − 1 inner edges b/bins, rounded to the precision of the probabilities.

    A confidence that was meant to be 3/15 then equals its edge and falls below it, as (lo, hi]
    requires. On the host, because a compiler may divide by way of an inexact reciprocal.
    """
    edge.require(bins >= 1, "bins", "at least 1", bins)
    return (np.arange(1, bins) / bins).astype(dtype)


def _membership(
    forecast: Float[Array, "*runs n"], edges: Float[AnyArray, " edges"]
) -> Float[Array, "*runs n bins"]:
    """1 for the bin (lo, hi] of each forecast and 0 for the others, NaN where it is NaN."""
    sorted_edges = jnp.asarray(edges, forecast.dtype)
    # From the left: the number of edges strictly below, so that an edge belongs to its lower bin.
    index = jnp.searchsorted(sorted_edges, forecast, side="left", method="compare_all")
    member = jax.nn.one_hot(index, len(edges) + 1, dtype=forecast.dtype)
    return jnp.where(jnp.isnan(forecast)[..., None], jnp.nan, member)
