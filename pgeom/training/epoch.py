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

from pgeom.losses.catalogue import Builder
from pgeom.losses.likelihood import cross_entropy
from pgeom.training import early_stopping
from pgeom.training.early_stopping import EarlyStopping
from pgeom.training.mlp import Masks, Network, dropout_masks
from pgeom.types import Annealing, ClassStats

WEIGHT_DECAY = 1e-4  # on all parameters; the paper does not state on which
CLIP = 5.0  # the global norm of a run's gradient


class Member(NamedTuple):
    """What the runs of a member have in common; all of it is data, none of it is compiled in."""

    x: jax.Array  # [n, d], the training inputs
    y: jax.Array  # [n], their observed labels
    validation_x: jax.Array  # [v, d]
    validation_y: jax.Array  # [v], clean
    stats: ClassStats
    learning_rate: jax.Array
    beta0: jax.Array  # of APMS
    horizon: jax.Array  # of APMS, in steps
    minimum: jax.Array  # of early stopping
    patience: jax.Array
    dropout: jax.Array  # key data of the dropout stream


class Checkpoint(NamedTuple):
    """The parameters of the best epoch and the loss state they were found in, the APMS step."""

    parameters: jax.Array
    step: jax.Array


class Run(NamedTuple):
    """The state of a run between epochs."""

    parameters: jax.Array
    optimiser: optax.OptState
    stopping: EarlyStopping
    best: Checkpoint
    validation_nll: jax.Array  # of the last epoch


OPTIMISER = optax.chain(
    optax.clip_by_global_norm(CLIP),
    optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-8),
    optax.add_decayed_weights(WEIGHT_DECAY),
)


def start(parameters: jax.Array) -> Run:
    """A run before its first epoch."""
    best = Checkpoint(parameters, jnp.zeros((), jnp.int32))
    nothing = jnp.asarray(jnp.nan, jnp.float32)
    return Run(parameters, OPTIMISER.init(parameters), early_stopping.start(), best, nothing)


def member_epoch(
    network: Network, builders: Sequence[Builder], batch_size: int
) -> Callable[[Member, jax.Array, Run], Run]:
    """The function of one epoch.

    Args:
      network: the architecture.
      builders: L losses of the catalogue.
      batch_size: the last batch of an epoch has what is left.

    Returns:
      `epoch(member, order[n], runs) -> runs`, with runs stacked `[L, ...]`. A run that has
      stopped is passed through, and costs nothing where the epoch is not vmapped.
    """

    def epoch(member: Member, order: jax.Array, runs: Run) -> Run:
        heads = [_logit_gradient(build(member.stats)) for build in builders]
        # every run that has not stopped is at one epoch: they share this epoch's masks
        number = jnp.max(runs.stopping.epoch)
        key = jax.random.fold_in(jax.random.wrap_key_data(member.dropout), number)
        masks = dropout_masks(key, order.shape[0], network.width)
        batches = _batches(member.x[order], member.y[order], masks, batch_size)
        steps, rows = batches.y.shape
        last = order.shape[0] - (steps - 1) * rows

        def train(index, run):
            first = run.stopping.epoch * steps

            def step(carry, numbered):
                (parameters, optimiser), (place, batch) = carry, numbered
                logits, pull_back = jax.vjp(lambda w: _logits(network, w, batch, last), parameters)
                annealing = Annealing(first + place, member.beta0, member.horizon)
                of_each = jax.lax.switch(index, heads, logits, batch.y, annealing)
                (gradient,) = pull_back(of_each / batch.size)
                direction, optimiser = OPTIMISER.update(gradient, optimiser, parameters)
                return (parameters - member.learning_rate * direction, optimiser), None

            carry = (run.parameters, run.optimiser)
            carry, _ = jax.lax.scan(step, carry, (jnp.arange(steps), batches))
            return _judge(network, member, run, *carry, first + steps)

        def unless_stopped(numbered):
            index, run = numbered
            return jax.lax.cond(
                run.stopping.stopped, lambda run: run, lambda r: train(index, r), run
            )

        return jax.lax.map(unless_stopped, (jnp.arange(len(builders)), runs))

    return epoch


def _logit_gradient(loss):
    """The gradient of each example's loss in its logits: all that a head has to give."""
    return jax.grad(lambda logits, y, annealing: jnp.sum(loss(logits, y, annealing)))


class _Batch(NamedTuple):
    """The rows of one step, of which the first `size` are examples."""

    x: jax.Array  # [B, d]
    y: jax.Array  # [B]
    masks: Masks
    size: jax.Array  # of x's dtype, to divide by


def _batches(x, y, masks, batch_size: int) -> _Batch:
    """An epoch's data cut in batches, stacked; the last one is filled up with zeros."""
    n = x.shape[0]
    rows = min(batch_size, n)
    steps = -(-n // rows)

    def stacked(rows_of):
        widths = [(0, steps * rows - n)] + [(0, 0)] * (rows_of.ndim - 1)
        return jnp.pad(rows_of, widths).reshape(steps, rows, *rows_of.shape[1:])

    sizes = jnp.minimum(rows, n - rows * jnp.arange(steps)).astype(x.dtype)
    return _Batch(*jax.tree.map(stacked, (x, y, masks)), sizes)


def _logits(network: Network, parameters, batch: _Batch, last: int) -> jax.Array:
    """Logits `[B, K]` of a batch.

    The last batch of an epoch, smaller by far, goes through the network alone, without the rows
    that fill it up: they would cost digits 42% more work. The heads see them, for almost nothing,
    so that each loss is compiled once, for batches of one shape.
    """
    rows = batch.y.shape[0]
    if last == rows:
        return network.logits(parameters, batch.x, batch.masks)

    def of_last(w):
        x, masks = jax.tree.map(lambda rows_of: rows_of[:last], (batch.x, batch.masks))
        logits = network.logits(w, x, masks)
        return jnp.pad(logits, ((0, rows - last), (0, 0)))

    def of_full(w):
        return network.logits(w, batch.x, batch.masks)

    return jax.lax.cond(batch.size < rows, of_last, of_full, parameters)


def _judge(network, member, run, parameters, optimiser, step) -> Run:
    """Close an epoch: validation NLL, early stopping, and the checkpoint of a new best."""
    logits = network.logits(parameters, member.validation_x)
    nll = jnp.mean(cross_entropy(logits, member.validation_y))
    rule = early_stopping.Rule(member.minimum, member.patience)
    stopping, improved = early_stopping.update(run.stopping, nll, rule)
    found = Checkpoint(parameters, step)
    best = jax.tree.map(lambda new, old: jnp.where(improved, new, old), found, run.best)
    return Run(parameters, optimiser, stopping, best, nll)
