"""Strategies for the arrays that the library takes: logits, points of the simplex, labels."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

Kind = tuple[tuple[int, ...], str]
"""A shape `[..., K]` and a dtype."""

# every dtype and number of leading dimensions; few, because each kind is compiled
KINDS: list[Kind] = [((4, 3), "float32"), ((3,), "float64"), ((2, 2, 5), "float32")]
KINDS += [((2, 2, 2), "float64"), ((4, 3), "float16"), ((3,), "bfloat16")]
FEW = KINDS[:1]  # for a short run
# where softmax rounds, underflows, ties or saturates
LOGITS = [0.0, -0.0, 1.0, 1e-8, 17.0, 30.0, 88.0, 110.0, 745.0, 1e4, -1e-8, -30.0, -104.0, -1e4]
WEIGHTS = [0.0, 1.0, 0.5, 1e-3, 1e-7, 1e-20, 1e-38, 1e-45, 1e-300, 1 - 1e-7]


class Batch(NamedTuple):
    """Vectors `[..., K]` of a dtype, with labels `[...]` and soft targets `[..., K]`."""

    vectors: np.ndarray
    labels: np.ndarray
    targets: np.ndarray

    @property
    def dtype(self) -> str:
        return self.vectors.dtype.name


def logits(kinds=KINDS):
    """Batches of logits up to ±1e4."""
    numbers = st.one_of(st.sampled_from(LOGITS), st.floats(-1e4, 1e4, allow_nan=False))
    return _batches(numbers, kinds, normalised=False)


def probabilities(kinds=KINDS):
    """Batches of points of the simplex, on its boundary and next to it, too."""
    return _batches(_weights(), kinds, normalised=True)


def _weights():
    return st.one_of(st.sampled_from(WEIGHTS), st.floats(0, 1, allow_subnormal=False))


@st.composite
def _batches(draw, numbers, kinds, *, normalised):
    shape, name = draw(st.sampled_from(kinds))
    dtype = jnp.dtype(name)
    vectors = _filled(draw, numbers, shape)
    labels = _filled(draw, st.integers(0, shape[-1] - 1), shape[:-1]).astype(np.int32)
    targets = _distributions(_filled(draw, _weights(), shape)).astype(dtype)
    return Batch(
        (_distributions(vectors) if normalised else vectors).astype(dtype), labels, targets
    )


def _filled(draw, numbers, shape) -> np.ndarray:
    count = int(np.prod(shape))
    return np.array(draw(st.lists(numbers, min_size=count, max_size=count))).reshape(shape)


def _distributions(weights: np.ndarray) -> np.ndarray:
    """Weights divided by their sum; where all are zero, the first vertex."""
    weights = np.where(
        np.all(weights == 0, axis=-1, keepdims=True), np.eye(weights.shape[-1])[0], weights
    )
    return weights / weights.sum(axis=-1, keepdims=True)
