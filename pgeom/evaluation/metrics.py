"""Metrics of a batch of predictions: accuracy, proper scores and calibration errors.

The form in which every metric takes its scores and labels.

Scores, which are probabilities or logits, have shape `[..., n, K]` and labels `[..., n]`; labels
with fewer leading dimensions are shared. Sums are taken in float32 at least, whatever the dtype of
the scores.

>>> import jax.numpy as jnp
>>> scores = jnp.zeros((4, 2, 3), jnp.bfloat16)
>>> aligned = align(scores, jnp.array([0, 2]))
>>> aligned.scores.dtype.name, aligned.labels.shape, aligned.dtype.name
('float32', (4, 2), 'bfloat16')

Metrics of a batch of predictions: accuracy, proper scores and calibration.

Probabilities have shape `[..., n, K]` and labels `[..., n]`; a metric averages over the n examples
and keeps the leading dimensions, for example losses and seeds. A diverged run is reported as such:
one NaN among its probabilities makes its metrics NaN, where argmax would have named a class.
Metrics of probabilities, such as `brier` and `ece`, refuse rows that are not distributions, such as
logits, unless they are traced by `jit` or `vmap`.

>>> import jax.numpy as jnp
>>> from pgeom.evaluation import metrics
>>> probabilities = jnp.array([[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]])
>>> labels = jnp.array([0, 0, 0, 1])
>>> float(metrics.accuracy(probabilities, labels)), float(metrics.brier(probabilities, labels))
(0.75, 0.375)
>>> float(metrics.ece(probabilities, labels))  # right three times out of four at confidence 3/4
0.0

Calibration errors by bins of equal width, and the table behind a reliability diagram.

Bin b of B holds the probabilities in (b/B, (b+1)/B], and 0 belongs to the first.

>>> import jax.numpy as jnp
>>> probabilities = jnp.array([[0.8, 0.2]] * 5)
>>> labels = jnp.array([0, 0, 0, 1, 1])  # right three times out of five
>>> round(float(ece(probabilities, labels)), 4)
0.2
>>> round(float(debiased_ece(probabilities, labels)), 4)  # less what chance adds
0.157

Smooth calibration error: no bins, and no bandwidth to choose.

The errors y − f of forecasts f ∈ [0, 1] are smoothed along f by a Gaussian of width σ, reflected at
0 and 1, and the absolute value is integrated:

smECE_σ = ∫ |(1/n) Σ_i K_σ(t, f_i) (y_i − f_i)| dt,    smECE = the σ at which smECE_σ = σ

(Błasiok and Nakkiran, 2023). smECE_σ falls as σ grows, so there is one such σ. It is computed on a
grid, where the reflected Gaussian is a product in the cosine basis.

>>> import jax.numpy as jnp
>>> confident = jnp.array([[0.9, 0.1]] * 10)
>>> round(float(smooth_ece(confident, jnp.array([0] * 6 + [1] * 4))), 4)  # right 6 times of 10
0.3
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int32, Integer

from pgeom import checks
from pgeom.types import AnyArray

Values = ArrayLike | Sequence
"""A JAX or NumPy array, or nested sequences of numbers; shape and dtype are checked here."""

BLOCK = 2**16  # examples that are counted by one product


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


def align(scores: Values, labels: Values) -> Aligned:
    """Bring scores and labels to common leading dimensions and a safe precision.

    A label outside 0 … K−1 makes the scores of its example NaN: a metric of wrong labels is then
    NaN, where an all-zero one-hot vector would have given a plausible number.

    Args:
      scores: probabilities or logits, `[..., n, K]`.
      labels: integers `[..., n]`, or fewer leading dimensions.

    Returns:
      The `Aligned` pair.
    """
    scores = jnp.asarray(scores)
    # NumPy labels of 64 bits stay so: without x64, JAX would wrap 2³² around to class 0.
    labels = labels if isinstance(labels, np.ndarray) else jnp.asarray(labels)
    if not jnp.issubdtype(scores.dtype, jnp.floating):
        raise TypeError(f"scores must be floating-point, got dtype {scores.dtype}")
    if not jnp.issubdtype(labels.dtype, jnp.integer):
        raise TypeError(f"labels must be integers, got dtype {labels.dtype}")
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


def align_probabilities(probabilities: Values, labels: Values) -> Aligned:
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


def hits(
    scores: Float[Array, "*runs n K"], labels: Integer[Array, "*runs n"]
) -> Float[Array, "*runs n"]:
    """1 where the top class is the label, else 0, and NaN where a score is NaN."""
    top = jnp.argmax(scores, axis=-1).astype(labels.dtype)
    hit = (top == labels).astype(scores.dtype)
    return jnp.where(diverged(scores), jnp.nan, hit)


def diverged(scores: Float[Array, "*runs n K"]) -> Bool[Array, "*runs n"]:
    """Whether a score of an example is NaN."""
    return jnp.any(jnp.isnan(scores), axis=-1)


def one_hot(
    labels: Integer[Array, "*runs n"], scores: Float[Array, "*runs n K"]
) -> Float[Array, "*runs n K"]:
    """The labels as vertices, in the dtype of the scores."""
    return jax.nn.one_hot(labels, scores.shape[-1], dtype=scores.dtype)


def count_pairs(
    first: Float[Array, "*runs n J"], second: Float[Array, "*runs n K"]
) -> Float[Array, "*runs J K"]:
    """How often each pair of classes occurs among vertices, Σ_i first_ij second_ik.

    A product counts exactly up to 2²⁴ examples in float32, and stands still there: a block of
    examples has fewer, and the counts of blocks are added up.
    """
    *runs, n, _ = first.shape
    size = max(1, min(n, BLOCK)) if isinstance(n, int) else n  # it is no number in an export
    padding = [(0, 0)] * len(runs) + [(0, -n % size), (0, 0)]

    def blocks(vertices: Float[Array, "*runs n K"]) -> Float[Array, "*runs blocks m K"]:
        padded = jnp.pad(vertices, padding)
        return padded.reshape(*runs, -(-n // size), size, vertices.shape[-1])

    # in full precision: accelerators multiply float32 matrices in fewer bits
    product = partial(jnp.einsum, precision=jax.lax.Precision.HIGHEST)
    return jnp.sum(product("...nj,...nk->...jk", blocks(first), blocks(second)), axis=-3)


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


def accuracy(probabilities: Values, labels: Values) -> Float[Array, "*runs"]:
    """The share of examples whose most probable class is the label; a tie goes to the lowest class.

    (1/n) Σ_i 1[argmax_k p_ik = y_i]

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.

    Returns:
      `[...]`, in [0, 1].
    """
    scores, labels, dtype = align(probabilities, labels)
    return jnp.mean(hits(scores, labels), axis=-1).astype(dtype)


def balanced_accuracy(probabilities: Values, labels: Values) -> Float[Array, "*runs"]:
    """The mean recall over the classes that occur among the labels.

    (1/|C|) Σ_{c ∈ C} P(argmax p = c | y = c)

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.

    Returns:
      `[...]`, in [0, 1].
    """
    scores, labels, dtype = align(probabilities, labels)
    truth = one_hot(labels, scores)
    recall = jnp.trace(_confusion(scores, truth), axis1=-2, axis2=-1)
    occurring = jnp.sum(jnp.max(truth, axis=-2), axis=-1)
    return (recall / occurring).astype(dtype)


def brier(probabilities: Values, labels: Values) -> Float[Array, "*runs"]:
    """The Brier score, summed over classes.

    (1/n) Σ_i Σ_k (p_ik − 1[y_i = k])²

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.

    Returns:
      `[...]`, in [0, 2].
    """
    scores, labels, dtype = align_probabilities(probabilities, labels)
    squares = jnp.square(scores - one_hot(labels, scores))
    return jnp.mean(jnp.sum(squares, axis=-1), axis=-1).astype(dtype)


def nll(logits: Values, labels: Values) -> Float[Array, "*runs"]:
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


def confusion_matrix(probabilities: Values, labels: Values) -> Float[Array, "*runs K K"]:
    """The distribution of the predicted class given the true one.

    M_cj = P(argmax p = j | y = c)

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.

    Returns:
      `[..., K, K]`, one row per true class; a class that does not occur has a row of zeros.
    """
    scores, labels, dtype = align(probabilities, labels)
    return _confusion(scores, one_hot(labels, scores)).astype(dtype)


def _confusion(
    scores: Float[Array, "*runs n K"], truth: Float[Array, "*runs n K"]
) -> Float[Array, "*runs K K"]:
    predicted = one_hot(jnp.argmax(scores, axis=-1), scores)
    predicted = jnp.where(diverged(scores)[..., None], jnp.nan, predicted)
    counts = count_pairs(truth, predicted)
    return counts / jnp.maximum(jnp.sum(truth, axis=-2), 1.0)[..., None]


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
    checks.require(bins >= 1, "bins", "at least 1", bins)
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


GRID = 1024  # cells of [0, 1]
PARTS = 256  # of the examples
HALVINGS = 22  # of the interval of σ: far below what a cell can tell


def smooth_ece(probabilities: Values, labels: Values) -> Float[Array, "*runs"]:
    """The smooth calibration error of the top label.

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.

    Returns:
      `[...]`, in [0, 1].
    """
    scores, labels, dtype = align_probabilities(probabilities, labels)
    confidence, correct = jnp.max(scores, axis=-1), hits(scores, labels)
    one_run = jnp.vectorize(_fixed_point, signature="(n),(n)->()")
    return one_run(confidence, correct - confidence).astype(dtype)


@partial(jax.jit, inline=True)  # or the loop would be compiled at every call
def _fixed_point(forecast: Float[Array, " n"], error: Float[Array, " n"]) -> Float[Array, ""]:
    """The σ at which smECE_σ = σ, by bisection."""
    masses = _on_grid(forecast, error / forecast.shape[0])
    cosines = jax.scipy.fft.dct(masses, norm="ortho")
    frequencies = jnp.pi * jnp.arange(GRID, dtype=masses.dtype)

    def smoothed(sigma):
        damping = jnp.exp(-jnp.square(frequencies * sigma) / 2)
        return jnp.sum(jnp.abs(jax.scipy.fft.idct(cosines * damping, norm="ortho")))

    def halve(_, bracket):
        low, high = bracket
        middle = (low + high) / 2
        below = smoothed(middle) > middle
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    ends = jnp.zeros_like(masses[0]), jnp.ones_like(masses[0])
    sigma, _ = jax.lax.fori_loop(0, HALVINGS, halve, ends)
    return jnp.where(jnp.any(jnp.isnan(error)), jnp.nan, sigma)


def _on_grid(place: Float[Array, " n"], mass: Float[Array, " n"]) -> Float[Array, " cells"]:
    """Masses at places of [0, 1], each shared by the two cells whose centres are nearest."""
    position = place * GRID - 0.5
    lower = jnp.floor(position)
    share = position - lower
    cell = lower.astype(jnp.int32)
    # added up in parts: where many examples share a cell, one sum would lose digits with each
    part = jnp.arange(place.shape[0]) % PARTS
    empty = jnp.zeros((PARTS, GRID), mass.dtype)
    halved = empty.at[part, jnp.clip(cell, 0, GRID - 1)].add(mass * (1 - share))
    both = halved.at[part, jnp.clip(cell + 1, 0, GRID - 1)].add(mass * share)
    return jnp.sum(both, axis=0)
