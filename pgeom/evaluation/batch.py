"""The form in which every metric takes its scores and labels.

Scores, that is probabilities or logits, are [..., n, K] and labels [..., n]; labels with fewer
leading dimensions are shared. Sums are taken in float32 at least, whatever the scores came in.

>>> import jax.numpy as jnp
>>> from pgeom.evaluation import batch
>>> scores = jnp.zeros((4, 2, 3), jnp.bfloat16)
>>> aligned = batch.align(scores, jnp.array([0, 2]))
>>> aligned.scores.dtype.name, aligned.labels.shape, aligned.dtype.name
('float32', (4, 2), 'bfloat16')
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import edge


class Aligned(NamedTuple):
    """Scores [..., n, K] in float32 or wider, labels [..., n] int32, and the dtype to return."""

    scores: jax.Array
    labels: jax.Array
    dtype: jnp.dtype


def align(scores, labels):
    """Brings scores and labels to common leading dimensions and a safe precision.

    A label outside 0..K−1 makes the scores of its example NaN: a metric of wrong labels then is
    NaN, where an all-zero one-hot vector would have given a plausible number.

    Args:
      scores: [..., n, K] probabilities or logits.
      labels: [..., n] integers, or fewer leading dimensions.

    Returns:
      The `Aligned` pair.
    """
    scores = jnp.asarray(scores)
    # NumPy labels of 64 bits stay so: without x64, JAX would wrap 2³² around to class 0.
    labels = labels if isinstance(labels, np.ndarray) else jnp.asarray(labels)
    if not jnp.issubdtype(scores.dtype, jnp.floating):
        raise TypeError(f"scores must be floating, but their dtype is {scores.dtype}")
    if not jnp.issubdtype(labels.dtype, jnp.integer):
        raise TypeError(f"labels must be integers, but their dtype is {labels.dtype}")
    if scores.ndim < 2 or labels.ndim < 1 or labels.shape[-1] != scores.shape[-2]:
        raise ValueError(
            "scores must be [..., n, K] and labels [..., n],"
            f" but are {scores.shape} and {labels.shape}"
        )
    dtype, num_classes = scores.dtype, scores.shape[-1]
    # Cast before comparing: an 8-bit label cannot be compared with 256 classes.
    labels = labels if labels.dtype.itemsize > 4 else labels.astype(np.int32)
    valid = jnp.broadcast_to((labels >= 0) & (labels < num_classes), scores.shape[:-1])
    labels = jnp.broadcast_to(labels.astype(np.int32), scores.shape[:-1])
    wide = scores.astype(jnp.float32) if dtype.itemsize < 4 else scores
    return Aligned(jnp.where(valid[..., None], wide, jnp.nan), labels, dtype)


def align_probabilities(probabilities, labels):
    """`align`, for metrics to which logits would give a plausible number.

    Args:
      probabilities: [..., n, K], refused unless nonnegative and of sum one over the last axis.
        NaN and traced values pass.
      labels: [..., n] integers, or fewer leading dimensions.

    Returns:
      The `Aligned` pair.
    """
    aligned = align(probabilities, labels)
    edge.probabilities("probabilities", probabilities)
    return aligned
