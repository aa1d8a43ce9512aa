"""The batches of an epoch, and how many of their rows go through the model at once.

>>> last_rows(1000, rows=400), last_rows(1000, rows=260)
(200, 260)
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pgeom.models.dense import DenseModel
from pgeom.models.model import Masks, Model
from pgeom.training.member import Member

CHEAP_PADDING = 0.05  # of the examples of an epoch
CACHED = 3 * 2**18  # activations of which a core reads most from its caches


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


def part_rows(model: Model, rows: int) -> int:
    """How many rows of a batch go through the model at once: all, or a divisor of them.

    What a convolutional network holds of a batch for its gradient outgrows the caches of a CPU: in
    parts of 64, images take an eighth less time. A batch stays whole where the gradients to be
    added up outweigh that, where it has no fitting divisor, and for a model that may look at its
    batch as a whole, such as a Flax module.
    """
    most = CACHED // model.activations
    part = max((one for one in range(1, min(most, rows) + 1) if rows % one == 0), default=rows)
    few_parameters = model.size < part * model.activations
    fits = isinstance(model, DenseModel) and few_parameters and 2 * part > most
    return part if fits else rows


def cut_parts(batch: Batch, rows: int) -> Batch:
    """A batch cut in parts of so many rows, stacked; only in its last part are examples missing."""
    parts = batch.y.shape[0] // rows
    whole = (batch.rows, batch.y, batch.masks, batch.shares)
    numbers, y, masks, shares = jax.tree.map(
        lambda array: array.reshape(parts, rows, *array.shape[1:]), whole
    )
    sizes = jnp.clip(batch.size - rows * jnp.arange(parts), 0, rows)
    return Batch(numbers, y, masks, sizes, shares)


def last_rows(n: int, rows: int) -> int:
    """How many rows of the last part of an epoch go through the model: its examples alone, or all.

    To choose between parts of two sizes copies all that the gradient needs of a forward pass,
    which a long epoch pays at every step: a convolutional network is slower by a sixth.
    """
    last = n - (-(-n // rows) - 1) * rows
    return rows if rows - last < CHEAP_PADDING * n else last
