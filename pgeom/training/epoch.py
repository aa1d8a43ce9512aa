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
from pgeom.training.mlp import Network, dropout_masks
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
        x, y = member.x[order], member.y[order]
        # every run that has not stopped is at one epoch: they share this epoch's masks
        number = jnp.max(runs.stopping.epoch)
        key = jax.random.fold_in(jax.random.wrap_key_data(member.dropout), number)
        masks = dropout_masks(key, (2, x.shape[0], network.width))

        def step(index, carry, batch):
            parameters, optimiser = carry
            x, y, masks, count = batch
            logits, pull_back = jax.vjp(lambda w: network.logits(w, x, masks), parameters)
            annealing = Annealing(count, member.beta0, member.horizon)
            (gradient,) = pull_back(jax.lax.switch(index, heads, logits, y, annealing))
            direction, optimiser = OPTIMISER.update(gradient, optimiser, parameters)
            return parameters - member.learning_rate * direction, optimiser

        def train(index, run):
            carry = (run.parameters, run.optimiser)
            full, rest, steps = _batches((x, y, masks), run.stopping.epoch, batch_size)
            if full is not None:
                carry, _ = jax.lax.scan(lambda c, b: (step(index, c, b), None), carry, full)
            if rest is not None:
                carry = step(index, carry, rest)
            return _judge(network, member, run, *carry, (run.stopping.epoch + 1) * steps)

        def unless_stopped(numbered):
            index, run = numbered
            return jax.lax.cond(
                run.stopping.stopped, lambda run: run, lambda r: train(index, r), run
            )

        return jax.lax.map(unless_stopped, (jnp.arange(len(builders)), runs))

    return epoch


def _logit_gradient(loss):
    """The gradient of the mean loss of a batch in its logits: all that a head has to give."""
    return jax.grad(lambda logits, y, annealing: jnp.mean(loss(logits, y, annealing)))


def _batches(epoch_data, epoch, batch_size):
    """An epoch's data cut in full batches, stacked, and a last smaller one, with their steps.

    Padding the last batch would cost digits 42% more work. Either part is None if it is empty.
    """
    x, y, masks = epoch_data
    n = x.shape[0]
    full = n // batch_size
    steps = -(-n // batch_size)
    cut = full * batch_size
    first = epoch * steps
    stacked = (
        x[:cut].reshape(full, batch_size, x.shape[1]),
        y[:cut].reshape(full, batch_size),
        jnp.moveaxis(masks[:, :cut].reshape(2, full, batch_size, masks.shape[2]), 1, 0),
        first + jnp.arange(full),
    )
    last = (x[cut:], y[cut:], masks[:, cut:], first + full)
    return (stacked if full else None), (last if cut < n else None), steps


def _judge(network, member, run, parameters, optimiser, step) -> Run:
    """Close an epoch: validation NLL, early stopping, and the checkpoint of a new best."""
    logits = network.logits(parameters, member.validation_x)
    nll = jnp.mean(cross_entropy(logits, member.validation_y))
    rule = early_stopping.Rule(member.minimum, member.patience)
    stopping, improved = early_stopping.update(run.stopping, nll, rule)
    found = Checkpoint(parameters, step)
    best = jax.tree.map(lambda new, old: jnp.where(improved, new, old), found, run.best)
    return Run(parameters, optimiser, stopping, best, nll)
