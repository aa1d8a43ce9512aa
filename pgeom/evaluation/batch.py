"""The form in which every metric takes its scores and labels.

Scores, which are probabilities or logits, have shape `[..., n, K]` and labels `[..., n]`; labels
with fewer leading dimensions are shared. Sums are taken in float32 at least, whatever the dtype of
the scores.

>>> import jax.numpy as jnp
>>> from pgeom.evaluation import batch
>>> scores = jnp.zeros((4, 2, 3), jnp.bfloat16)
>>> aligned = batch.align(scores, jnp.array([0, 2]))
>>> aligned.scores.dtype.name, aligned.labels.shape, aligned.dtype.name
('float32', (4, 2), 'bfloat16')
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int32, Integer

from pgeom import edge

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
    wide = scores.astype(edge.working_dtype(scores))
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
    edge.probabilities("probabilities", probabilities)
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
