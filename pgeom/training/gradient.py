"""The gradient of a batch: the model, the head of a loss, and back.

Losses are heads of one program: a real switch on the index of the loss chooses the gradient on the
logits, and everything else is shared. Examples are gathered from the features as they are needed.
"""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pgeom.losses.spec import LossSpec
from pgeom.models.model import Model
from pgeom.training.batches import Batch, cut_parts, last_rows
from pgeom.training.member import Member, standardise
from pgeom.types import Annealing, CatalogueLoss

Gradient = Callable[[Int[Array, ""], Annealing, Float[Array, " P"], Batch], Float[Array, " P"]]
"""`gradient(index, annealing, parameters, batch)`, of the mean loss of that index."""


def batch_gradient(
    model: Model,
    losses: Sequence[LossSpec],
    features: Float[Array, "N d"],
    member: Member,
    part: int,
) -> Gradient:
    """The gradient of batches of which so many rows, `part`, go through the model at once."""
    last = last_rows(member.rows.shape[0], part)
    part_gradient = _part_gradient(model, losses, features, member, last)

    def gradient(index, annealing, parameters, batch):
        one = partial(part_gradient, index, annealing, parameters)
        if part == batch.y.shape[0]:
            return one(batch)
        parts = cut_parts(batch, part)

        def add(number, total):
            return total + one(jax.tree.map(lambda leaf: leaf[number], parts))

        # a last batch may be over before its last part
        return jax.lax.fori_loop(0, -(-batch.size // part), add, jnp.zeros_like(parameters))

    return gradient


def _part_gradient(
    model: Model,
    losses: Sequence[LossSpec],
    features: Float[Array, "N d"],
    member: Member,
    last: int,
) -> Gradient:
    """What a part adds to the gradient of its batch.

    Of the last part of an epoch, the first `last` rows go through the model.
    """
    heads = [logit_gradient(loss.build(member.stats)) for loss in losses]

    def gradient(index, annealing, parameters, batch):
        logits, pull_back = jax.vjp(
            lambda w: _logits(model, w, features, member, batch, last), parameters
        )
        slopes = jax.lax.switch(index, heads, logits, batch.y, annealing)
        return pull_back(slopes * batch.shares)[0]

    return gradient


def logit_gradient(
    loss: CatalogueLoss,
) -> Callable[[Float[Array, "n K"], Int[Array, " n"], Annealing], Float[Array, "n K"]]:
    """The gradient of each example's loss in its logits: all that a head has to give."""
    return jax.grad(lambda logits, y, annealing: jnp.sum(loss(logits, y, annealing)))


def _logits(
    model: Model,
    parameters: Float[Array, " P"],
    features: Float[Array, "N d"],
    member: Member,
    batch: Batch,
    last: int,
) -> Float[Array, "B K"]:
    """Logits `[B, K]` of a part.

    The last part of an epoch, smaller by far, goes through the model alone, without its
    padding, which would cost digits 42% more work. The heads see them, for almost nothing,
    so that each loss is compiled once, for parts of one shape.
    """
    size = batch.y.shape[0]

    def first_examples(count, w):
        rows, masks = jax.tree.map(lambda array: array[:count], (batch.rows, batch.masks))
        logits = model.logits(w, standardise(features, member, rows), masks)
        return jnp.pad(logits, ((0, size - count), (0, 0)))

    if last == size:
        return first_examples(size, parameters)
    branches = (partial(first_examples, last), partial(first_examples, size))
    return jax.lax.cond(batch.size < size, *branches, parameters)
