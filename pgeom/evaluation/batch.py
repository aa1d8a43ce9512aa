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
    scores, labels = jnp.asarray(scores), jnp.asarray(labels)
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
    labels = jnp.broadcast_to(labels, scores.shape[:-1])
    valid = (labels >= 0) & (labels < num_classes)
    wide = scores.astype(jnp.float32) if dtype.itemsize < 4 else scores
    return Aligned(jnp.where(valid[..., None], wide, jnp.nan), labels.astype(jnp.int32), dtype)
