"""One epoch of one member: all its runs, each with its loss, on the same batches and masks.

A *member* is one (regime, seed, learning rate): its partitions, class statistics, batch order and
random streams. A *run* is a member with a loss. Losses are heads of one program: a real switch on
the index of the loss chooses the gradient on the logits, and everything else is shared.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, UInt32

from pgeom.losses.likelihood import cross_entropy
from pgeom.losses.spec import LossSpec
from pgeom.models.model import Masks, Model
from pgeom.training import early_stopping
from pgeom.training.early_stopping import EarlyStopping
from pgeom.training.settings import Optimiser
from pgeom.types import Annealing, ClassStats


class Member(NamedTuple):
    """What the runs of a member have in common; all of it is data, none of it is compiled in."""

    x: Float[Array, "n d"]  # the training inputs
    y: Int[Array, " n"]  # their observed labels
    validation_x: Float[Array, "v d"]
    validation_y: Int[Array, " v"]  # clean
    stats: ClassStats
    learning_rate: Float[Array, ""]
    beta0: Float[Array, ""]  # of APMS
    horizon: Float[Array, ""]  # of APMS, in steps
    stopping: early_stopping.Rule
    dropout: UInt32[Array, "2"]  # key data of the stream of masks


class Checkpoint(NamedTuple):
    """The parameters of the best epoch and the loss state they were found in, the APMS step."""

    parameters: jax.Array
    step: jax.Array


class Run(NamedTuple):
    """The state of a run between epochs."""

    parameters: jax.Array
    moments: optax.OptState
    stopping: EarlyStopping
    best: Checkpoint
    validation_nll: jax.Array  # of the last epoch


def start(parameters: Float[Array, " P"], optimiser: Optimiser) -> Run:
    """A run before its first epoch."""
    best = Checkpoint(parameters, jnp.zeros((), jnp.int32))
    nothing = jnp.asarray(jnp.nan, jnp.float32)
    moments = optimiser.transformation().init(parameters)
    return Run(parameters, moments, early_stopping.start(), best, nothing)


def member_epoch(
    model: Model, losses: Sequence[LossSpec], batch_size: int, optimiser: Optimiser
) -> Callable[[Member, jax.Array, Run], Run]:
    """The function that trains one epoch.

    Args:
      model: from inputs to logits.
      losses: the L losses of the runs.
      batch_size: the last batch of an epoch has what is left.
      optimiser: of every run.

    Returns:
      `epoch(member, order[n], runs) -> runs`, with runs stacked `[L, ...]`. A run that has
      stopped is passed through, and costs nothing where the epoch is not vmapped.
    """
    step_direction = optimiser.transformation().update

    def epoch(member: Member, order: jax.Array, runs: Run) -> Run:
        heads = [logit_gradient(loss.build(member.stats)) for loss in losses]
        # every run that has not stopped is at one epoch: they share this epoch's masks
        number = jnp.max(runs.stopping.epoch)
        key = jax.random.fold_in(jax.random.wrap_key_data(member.dropout), number)
        masks = model.masks(key, order.shape[0])
        batches = _batches(member.x[order], member.y[order], masks, batch_size)
        steps, rows = batches.y.shape
        last = order.shape[0] - (steps - 1) * rows

        def train(index, run):
            first = run.stopping.epoch * steps

            def step(carry, numbered):
                (parameters, moments), (place, batch) = carry, numbered
                logits, pull_back = jax.vjp(lambda w: _logits(model, w, batch, last), parameters)
                annealing = Annealing(first + place, member.beta0, member.horizon)
                slopes = jax.lax.switch(index, heads, logits, batch.y, annealing)
                (gradient,) = pull_back(slopes / batch.size)
                direction, moments = step_direction(gradient, moments, parameters)
                return (parameters - member.learning_rate * direction, moments), None

            carry = (run.parameters, run.moments)
            carry, _ = jax.lax.scan(step, carry, (jnp.arange(steps), batches))
            return _judge(model, member, run, *carry, first + steps)

        def unless_stopped(numbered):
            index, run = numbered
            return jax.lax.cond(
                run.stopping.stopped, lambda run: run, lambda r: train(index, r), run
            )

        return jax.lax.map(unless_stopped, (jnp.arange(len(losses)), runs))

    return epoch


def logit_gradient(loss):
    """The gradient of each example's loss in its logits: all that a head has to give."""
    return jax.grad(lambda logits, y, annealing: jnp.sum(loss(logits, y, annealing)))


class _Batch(NamedTuple):
    """The rows of one step, of which the first `size` are examples."""

    x: jax.Array  # [B, d]
    y: jax.Array  # [B]
    masks: Masks
    size: jax.Array  # of x's dtype, to divide by


def _batches(x, y, masks, batch_size: int) -> _Batch:
    """An epoch's data cut in batches, stacked; the last one is padded with zeros."""
    n = x.shape[0]
    rows = min(batch_size, n)
    steps = -(-n // rows)

    def stacked(array):
        widths = [(0, steps * rows - n)] + [(0, 0)] * (array.ndim - 1)
        return jnp.pad(array, widths).reshape(steps, rows, *array.shape[1:])

    sizes = jnp.minimum(rows, n - rows * jnp.arange(steps)).astype(x.dtype)
    return _Batch(*jax.tree.map(stacked, (x, y, masks)), sizes)


def _logits(model: Model, parameters, batch: _Batch, last: int) -> jax.Array:
    """Logits `[B, K]` of a batch.

    The last batch of an epoch, smaller by far, goes through the model alone, without its
    padding, which would cost digits 42% more work. The heads see them, for almost nothing,
    so that each loss is compiled once, for batches of one shape.
    """
    rows = batch.y.shape[0]
    if last == rows:
        return model.logits(parameters, batch.x, batch.masks)

    def last_batch(w):
        x, masks = jax.tree.map(lambda array: array[:last], (batch.x, batch.masks))
        logits = model.logits(w, x, masks)
        return jnp.pad(logits, ((0, rows - last), (0, 0)))

    def full_batch(w):
        return model.logits(w, batch.x, batch.masks)

    return jax.lax.cond(batch.size < rows, last_batch, full_batch, parameters)


def _judge(model: Model, member: Member, run: Run, parameters, moments, step) -> Run:
    """Close an epoch: validation NLL, early stopping, and the checkpoint of a new best."""
    logits = model.logits(parameters, member.validation_x)
    nll = jnp.mean(cross_entropy(logits, member.validation_y))
    stopping, improved = early_stopping.update(run.stopping, nll, member.stopping)
    latest = Checkpoint(parameters, step)
    best = jax.tree.map(lambda new, old: jnp.where(improved, new, old), latest, run.best)
    return Run(parameters, moments, stopping, best, nll)
