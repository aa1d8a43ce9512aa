"""Metrics of a batch of predictions: accuracy, proper scores and calibration errors.

Probabilities have shape `[..., n, K]` and labels `[..., n]`; a metric averages over the n examples
and keeps the leading dimensions, for example losses and seeds. Labels with fewer leading dimensions
are shared. Sums are taken in float32 at least, whatever the dtype of the scores. A diverged run is
reported as such: one NaN among its probabilities makes its metrics NaN, where argmax would have
named a class. Metrics of probabilities, such as `brier` and `ece`, refuse rows that are not
distributions, such as logits, unless they are traced by `jit` or `vmap`.

>>> import jax.numpy as jnp
>>> from pgeom.evaluation import metrics
>>> probabilities = jnp.array([[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]])
>>> labels = jnp.array([0, 0, 0, 1])
>>> float(metrics.accuracy(probabilities, labels)), float(metrics.brier(probabilities, labels))
(0.75, 0.375)
>>> float(metrics.ece(probabilities, labels))  # right three times out of four at confidence 3/4
0.0
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int32

from pgeom import checks
from pgeom.types import Numbers

__all__ = [
    "Reliability",
    "accuracy",
    "balanced_accuracy",
    "brier",
    "classwise_ece",
    "confusion_matrix",
    "debiased_ece",
    "ece",
    "nll",
    "reliability",
    "smooth_ece",
]


PerRun = Float[Array, "*runs"]
PerBin = Float[Array, "*runs bins"]


class Aligned(NamedTuple):
    """Scores and labels of the same leading dimensions.

    Attributes:
      scores: `[..., n, K]`, in float32 or wider.
      labels: `[..., n]`.
      dtype: of the scores as they were given, for the result.
    """

    scores: Float[Array, "*runs n K"]
    labels: Int32[Array, "*runs n"]
    dtype: np.dtype


def align(scores: Numbers, labels: Numbers) -> Aligned:
    """Bring scores and labels to common leading dimensions and a safe precision.

    A label outside 0 … K−1 makes the scores of its example NaN: a metric of wrong labels is then
    NaN, where an all-zero one-hot vector would have given a plausible number.

    Args:
      scores: probabilities or logits, `[..., n, K]`.
      labels: integers `[..., n]`, or fewer leading dimensions.

    Returns:
      The `Aligned` pair.
    """
    scores, labels = checks.vectors("scores", scores), checks.integers(labels)
    if scores.ndim < 2 or labels.ndim < 1 or labels.shape[-1] != scores.shape[-2]:
        raise ValueError(
            "scores and labels must have shapes [..., n, K] and [..., n], "
            f"got {scores.shape} and {labels.shape}"
        )
    # Cast before comparing: an 8-bit label cannot be compared with 256 classes.
    labels = labels if labels.dtype.itemsize > 4 else labels.astype(np.int32)
    inside = jnp.broadcast_to((labels >= 0) & (labels < scores.shape[-1]), scores.shape[:-1])
    labels = jnp.broadcast_to(labels.astype(np.int32), scores.shape[:-1])
    wide = scores.astype(checks.working_dtype(scores))
    return Aligned(jnp.where(inside[..., None], wide, jnp.nan), labels, scores.dtype)


def align_probabilities(probabilities: Numbers, labels: Numbers) -> Aligned:
    """`align`, for metrics to which logits would give a plausible number.

    Args:
      probabilities: `[..., n, K]`, refused unless nonnegative and of sum one over the last axis.
        NaN and traced values pass.
      labels: integers `[..., n]`, or fewer leading dimensions.

    Returns:
      The `Aligned` pair.
    """
    aligned = align(probabilities, labels)
    checks.probabilities("probabilities", probabilities)
    return aligned


def top_label(aligned: Aligned) -> tuple[Float[Array, "*runs n"], Float[Array, "*runs n"]]:
    """The score of the top class, and 1 where that is the label, else 0; NaN where a score is."""
    scores, labels, _ = aligned
    top = jnp.argmax(scores, axis=-1).astype(labels.dtype)
    hit = (top == labels).astype(scores.dtype)
    confidence = jnp.max(scores, axis=-1)  # NaN if one of them is
    return confidence, jnp.where(jnp.isnan(confidence), jnp.nan, hit)


def one_hot(aligned: Aligned) -> Float[Array, "*runs n K"]:
    """The labels as vertices, in the dtype of the scores."""
    scores, labels, _ = aligned
    return jax.nn.one_hot(labels, scores.shape[-1], dtype=scores.dtype)


def accuracy(probabilities: Numbers, labels: Numbers) -> PerRun:
    """The share of examples whose most probable class is the label; a tie goes to the lowest class.

    (1/n) Σ_i 1[argmax_k p_ik = y_i]

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.

    Returns:
      `[...]`, in [0, 1].
    """
    aligned = align(probabilities, labels)
    _, hits = top_label(aligned)
    return jnp.mean(hits, axis=-1).astype(aligned.dtype)


def balanced_accuracy(probabilities: Numbers, labels: Numbers) -> PerRun:
    """The mean recall over the classes that occur among the labels.

    (1/|C|) Σ_{c ∈ C} P(argmax p = c | y = c)

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.

    Returns:
      `[...]`, in [0, 1].
    """
    scores, labels, dtype = align(probabilities, labels)
    confusion, occurs = _confusion(scores, labels)
    recall = jnp.trace(confusion, axis1=-2, axis2=-1)
    return (recall / jnp.sum(occurs, axis=-1)).astype(dtype)


def confusion_matrix(probabilities: Numbers, labels: Numbers) -> Float[Array, "*runs K K"]:
    """The distribution of the predicted class given the true one.

    M_cj = P(argmax p = j | y = c)

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.

    Returns:
      `[..., K, K]`, one row per true class; a class that does not occur has a row of zeros.
    """
    scores, labels, dtype = align(probabilities, labels)
    return _confusion(scores, labels)[0].astype(dtype)


@partial(jnp.vectorize, signature="(n,k),(n)->(k,k),(k)")
def _confusion(scores, labels):
    """The confusion matrix, and 1 for each class that occurs."""
    K = scores.shape[1]
    # in integers: a float32 cannot count beyond 2²⁴
    counts = jnp.zeros((K, K), jnp.int32).at[labels, jnp.argmax(scores, axis=1)].add(1)
    total = jnp.sum(counts, axis=1).astype(scores.dtype)
    shares = counts.astype(scores.dtype) / jnp.maximum(total, 1.0)[:, None]
    return jnp.where(jnp.any(jnp.isnan(scores)), jnp.nan, shares), jnp.sign(total)


def brier(probabilities: Numbers, labels: Numbers) -> PerRun:
    """The Brier score, summed over classes.

    (1/n) Σ_i Σ_k (p_ik − 1[y_i = k])²

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.

    Returns:
      `[...]`, in [0, 2].
    """
    aligned = align_probabilities(probabilities, labels)
    squares = jnp.square(aligned.scores - one_hot(aligned))
    return jnp.mean(jnp.sum(squares, axis=-1), axis=-1).astype(aligned.dtype)


def nll(logits: Numbers, labels: Numbers) -> PerRun:
    """The negative log-likelihood of the softmax of the logits.

    −(1/n) Σ_i log softmax(z_i)_{y_i}, from logits, since rounded probabilities may be 0.

    Args:
      logits: `[..., n, K]`.
      labels: integers, `[..., n]`.

    Returns:
      `[...]`, at least 0.
    """
    scores, labels, dtype = align(logits, labels)
    log_p = jax.nn.log_softmax(scores, axis=-1)
    # A selection, not a product with the one-hot vector: 0 · (−∞) is NaN.
    chosen = jnp.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]
    return -jnp.mean(chosen, axis=-1).astype(dtype)


class Reliability(NamedTuple):
    """What happens in each confidence bin; an empty bin has confidence, accuracy and share 0.

    Attributes:
      confidence: the mean confidence, `[..., bins]`.
      accuracy: the accuracy, `[..., bins]`.
      share: the share of the examples, `[..., bins]`; shares sum to one.
    """

    confidence: PerBin
    accuracy: PerBin
    share: PerBin


def reliability(probabilities: Numbers, labels: Numbers, bins: int = 15) -> Reliability:
    """The reliability diagram of the top label.

    Bin b holds the examples with max_k p_k in (b/bins, (b+1)/bins].

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.
      bins: the number of bins of equal width.

    Returns:
      The `Reliability` of each bin.
    """
    table, _, aligned = _top_table(probabilities, labels, bins)
    return Reliability(*(x.astype(aligned.dtype) for x in table))


def ece(probabilities: Numbers, labels: Numbers, bins: int = 15) -> PerRun:
    """The expected calibration error of the top label.

    Σ_b share_b · |accuracy_b − confidence_b|

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.
      bins: the number of bins of equal width.

    Returns:
      `[...]`, in [0, 1].
    """
    table, gaps, aligned = _top_table(probabilities, labels, bins)
    return jnp.sum(table.share * jnp.abs(gaps), axis=-1).astype(aligned.dtype)


def classwise_ece(probabilities: Numbers, labels: Numbers, bins: int = 15) -> PerRun:
    """The calibration error of the probability of each class, averaged over the classes.

    (1/K) Σ_k Σ_b share_kb · |frequency_kb − mean_kb|

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.
      bins: the number of bins of equal width.

    Returns:
      `[...]`, in [0, 1].
    """
    aligned = align_probabilities(probabilities, labels)
    edges = _edges(bins, aligned.dtype)
    return _mean_over_classes(aligned.scores, one_hot(aligned), edges).astype(aligned.dtype)


@partial(jax.jit, inline=True)  # or the loop would be compiled at every call
def _mean_over_classes(scores, outcomes, edges):
    def one_class(pair):
        forecast, outcome = pair
        table, gaps = _table(forecast, outcome, edges)
        return jnp.sum(table.share * jnp.abs(gaps), axis=-1)

    # One class after another: the memberships of all of them would take K times the memory.
    classes = (jnp.moveaxis(x, -1, 0) for x in (scores, outcomes))
    return jnp.mean(jax.lax.map(one_class, tuple(classes)), axis=0)


def debiased_ece(probabilities: Numbers, labels: Numbers, bins: int = 15) -> PerRun:
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
    table, gaps, aligned = _top_table(probabilities, labels, bins)
    gap, variance = jnp.abs(gaps), table.accuracy * (1 - table.accuracy)
    uncertain = variance > 0
    count = jnp.where(uncertain, table.share * aligned.labels.shape[-1], 1.0)
    error = jnp.sqrt(jnp.where(uncertain, variance, 1.0) / count)
    # E |d + sN| of a normal variable
    z = gap / error
    spread = error * jnp.sqrt(2 / jnp.pi) * jnp.exp(-jnp.square(z) / 2)
    expected = spread + gap * jax.scipy.special.erf(z / jnp.sqrt(2.0))
    bias = jnp.where(uncertain, expected - gap, 0.0 * gap)
    return jnp.maximum(jnp.sum(table.share * (gap - bias), axis=-1), 0.0).astype(aligned.dtype)


def _top_table(probabilities, labels, bins):
    aligned = align_probabilities(probabilities, labels)
    confidence, hits = top_label(aligned)
    return *_table(confidence, hits, _edges(bins, aligned.dtype)), aligned


def _table(forecast, outcome, edges):
    """The `Reliability` of forecasts `[..., n]` before it is rounded, and outcome − forecast.

    The difference is summed example by example: that of two sums, each rounded in proportion to the
    number of examples, would be mostly their rounding.
    """
    # From the left: the number of edges strictly below, so that an edge belongs to its lower bin.
    edges = jnp.asarray(edges, forecast.dtype)
    index = jnp.searchsorted(edges, forecast, side="left", method="compare_all")
    inside = jax.nn.one_hot(index, len(edges) + 1, dtype=forecast.dtype)
    inside = jnp.where(jnp.isnan(forecast)[..., None], jnp.nan, inside)
    count = jnp.sum(inside, axis=-2)
    occupied = jnp.where(count > 0, count, 1.0)

    def bin_mean(values):
        # a sum, which is added up in parts: a matrix product loses digits with every example
        return jnp.sum(inside * values[..., None], axis=-2) / occupied

    accuracy, gap = bin_mean(outcome), bin_mean(outcome - forecast)
    return Reliability(accuracy - gap, accuracy, count / forecast.shape[-1]), gap


def _edges(bins, dtype):
    """The bins − 1 inner edges b/bins, rounded to the precision of the probabilities.

    A confidence that was meant to be 3/15 then equals its edge and falls below it, as (lo, hi]
    requires. On the host, because a compiler may divide by way of an inexact reciprocal.
    """
    checks.require(bins >= 1, "bins", "at least 1", bins)
    return (np.arange(1, bins) / bins).astype(dtype)


GRID = 1024  # cells of [0, 1]
PARTS = 256  # of the examples
HALVINGS = 22  # of the interval of σ: far below what a cell can tell


def smooth_ece(probabilities: Numbers, labels: Numbers) -> PerRun:
    """The smooth calibration error of the top label: no bins, and no bandwidth to choose.

    smECE_σ = ∫ |(1/n) Σ_i K_σ(t, f_i) (y_i − f_i)| dt,    smECE = the σ at which smECE_σ = σ

    The errors y − f of the confidences f are smoothed along f by a Gaussian of width σ, reflected
    at 0 and 1 (Błasiok and Nakkiran, 2023). smECE_σ falls as σ grows, so there is one such σ.

    >>> confident = jnp.array([[0.9, 0.1]] * 10)
    >>> round(float(smooth_ece(confident, jnp.array([0] * 6 + [1] * 4))), 4)  # right 6 times of 10
    0.3

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.

    Returns:
      `[...]`, in [0, 1].
    """
    aligned = align_probabilities(probabilities, labels)
    confidence, correct = top_label(aligned)
    one_run = jnp.vectorize(_smooth_error, signature="(n),(n)->()")
    return one_run(confidence, correct - confidence).astype(aligned.dtype)


@partial(jax.jit, inline=True)  # or the loop would be compiled at every call
def _smooth_error(forecast, error):
    """The σ at which smECE_σ = σ, by bisection; the reflected Gaussian is a product of cosines."""
    masses = _on_grid(forecast, error / forecast.shape[0])
    cosines = jax.scipy.fft.dct(masses, norm="ortho")
    frequencies = jnp.pi * jnp.arange(GRID, dtype=masses.dtype)

    def is_larger(sigma):
        damping = jnp.exp(-jnp.square(frequencies * sigma) / 2)
        return jnp.sum(jnp.abs(jax.scipy.fft.idct(cosines * damping, norm="ortho"))) > sigma

    none = jnp.zeros_like(masses[0])
    sigma = bisect(is_larger, none, none + 1, HALVINGS)
    return jnp.where(jnp.any(jnp.isnan(error)), jnp.nan, sigma)


def bisect(is_below: Callable, low: Array, high: Array, steps: int) -> Array:
    """The last x for which `is_below(x)`, true at first, is not yet false; or the low end."""

    def halve(_, ends):
        low, high = ends
        middle = (low + high) / 2
        below = is_below(middle)
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    return jax.lax.fori_loop(0, steps, halve, (low, high))[0]


def _on_grid(place, mass):
    """Masses `[n]` at places of [0, 1], each shared by the two cells whose centres are nearest."""
    position = place * GRID - 0.5
    lower = jnp.floor(position)
    share = position - lower
    cell = lower.astype(jnp.int32)
    # added up in parts: where many examples share a cell, one sum would lose digits with each
    part = jnp.arange(place.shape[0]) % PARTS
    grid = jnp.zeros((PARTS, GRID), mass.dtype)
    for neighbour, weight in ((cell, 1 - share), (cell + 1, share)):
        grid = grid.at[part, jnp.clip(neighbour, 0, GRID - 1)].add(mass * weight)
    return jnp.sum(grid, axis=0)
