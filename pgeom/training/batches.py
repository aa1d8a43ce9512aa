"""The batches of an epoch, and how many rows of the last one go through the model.

>>> last_rows(1000, rows=400, steps=3), last_rows(1000, rows=260, steps=4)
(200, 260)
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pgeom.models.model import Masks
from pgeom.training.member import Member

CHEAP_PADDING = 0.05  # of the examples of an epoch


class Batch(NamedTuple):
    """The rows of one step, of which the first `size` are examples, or of a stack of steps."""

    rows: Int[Array, "*steps B"]
    y: Int[Array, "*steps B"]
    masks: Masks
    size: Int[Array, "*steps"]
    shares: Float[Array, "*steps B 1"]  # of each example in the mean of its batch


def cut_batches(member: Member, order: Int[Array, " n"], masks: Masks, batch_size: int) -> Batch:
    """An epoch's data cut in batches, stacked; the last one is padded with zeros."""
    n = order.shape[0]
    rows = min(batch_size, n)
    steps = -(-n // rows)

    def stacked(array):
        widths = [(0, steps * rows - n)] + [(0, 0)] * (array.ndim - 1)
        return jnp.pad(array, widths).reshape(steps, rows, *array.shape[1:])

    weights = jnp.ones(n) if member.weights is None else member.weights.train[order]
    weights = stacked(weights)[..., None]
    sizes = jnp.minimum(rows, n - rows * jnp.arange(steps))
    numbers, y, masks = jax.tree.map(stacked, (member.rows[order], member.y[order], masks))
    return Batch(numbers, y, masks, sizes, weights / jnp.sum(weights, axis=1, keepdims=True))


def last_rows(n: int, rows: int, steps: int) -> int:
    """How many rows of the last batch go through the model: its examples alone, or all.

    To choose between batches of two sizes copies all that the gradient needs of a forward pass,
    which a long epoch pays at every step: a convolutional network is slower by a sixth.
    """
    last = n - (steps - 1) * rows
    return rows if rows - last < CHEAP_PADDING * n else last
