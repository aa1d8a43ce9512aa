"""One epoch of one member: all its runs, each with its loss, on the same batches and masks.

A *run* is a member with a loss. Runs are trained one after another, each unless it has stopped, and
judged on the validation examples.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from pgeom.losses.likelihood import cross_entropy
from pgeom.losses.spec import LossSpec
from pgeom.models.model import Masks, Model
from pgeom.training import early_stopping
from pgeom.training.batches import cut_batches
from pgeom.training.criteria import CRITERIA, Validation
from pgeom.training.early_stopping import EarlyStopping
from pgeom.training.gradient import Gradient, batch_gradient
from pgeom.training.member import Member, predict
from pgeom.training.settings import Optimiser, StopOn
from pgeom.types import Annealing, AnyArray, ClassStats


class Checkpoint(NamedTuple):
    """The parameters of the best epoch and the loss state they were found in, the APMS step."""

    parameters: Float[AnyArray, "*stack P"]
    step: Int[AnyArray, "*stack"]


class Run(NamedTuple):
    """The state of a run between epochs, or of a stack of runs."""

    parameters: Float[AnyArray, "*stack P"]
    moments: optax.OptState
    stopping: EarlyStopping
    best: Checkpoint
    validation_nll: Float[AnyArray, "*stack"]  # of the last epoch; see `_validation_losses`


def start(parameters: Float[Array, " P"], optimiser: Optimiser) -> Run:
    """A run before its first epoch."""
    best = Checkpoint(parameters, jnp.zeros((), jnp.int32))
    nothing = jnp.asarray(jnp.nan, jnp.float32)
    moments = optimiser.transformation().init(parameters)
    return Run(parameters, moments, early_stopping.start(), best, nothing)


def member_epoch(
    model: Model,
    losses: Sequence[LossSpec],
    batch_size: int,
    optimiser: Optimiser,
    stop_on: StopOn,
    part: int,
) -> Callable[[Float[Array, "N d"], Member, Int[Array, " n"], Run], Run]:
    """The function that trains one epoch.

    Args:
      model: from inputs to logits.
      losses: the L losses of the runs.
      batch_size: the last batch of an epoch has what is left.
      optimiser: of every run.
      stop_on: what makes an epoch the best one.
      part: how many rows of a batch go through the model at once, a divisor of them.

    Returns:
      `epoch(features, member, order[n], runs) -> runs`, with runs stacked `[L, ...]`. A run that
      has stopped is passed through, and costs nothing where the epoch is not vmapped.
    """

    def epoch(
        features: Float[Array, "N d"], member: Member, order: Int[Array, " n"], runs: Run
    ) -> Run:
        batches = cut_batches(member, order, _masks(model, member, order, runs), batch_size)
        steps = batches.y.shape[0]
        gradient = batch_gradient(model, losses, features, member, part)
        step = _make_step(gradient, optimiser, member)
        validate = _validation_losses(losses, member.stats)

        def train(index, run):
            first = run.stopping.epoch * steps
            carry, numbered = (run.parameters, run.moments), (jnp.arange(steps) + first, batches)
            carry, _ = jax.lax.scan(partial(step, index), carry, numbered)
            judge = partial(_judge, model, stop_on, partial(validate, index))
            return judge(features, member, run, *carry, first + steps)

        def unless_stopped(index, runs):
            run = jax.tree.map(lambda leaf: leaf[index], runs)
            run = jax.lax.cond(
                run.stopping.stopped, lambda run: run, lambda r: train(index, r), run
            )
            return jax.tree.map(lambda leaf, new: leaf.at[index].set(new), runs, run)

        # a loop that changes the runs in place: a map would first make new arrays for them
        return jax.lax.fori_loop(0, len(losses), unless_stopped, runs)

    return epoch


def _masks(model: Model, member: Member, order: Int[Array, " n"], runs: Run) -> Masks:
    """The masks of an epoch, for all runs: every one that has not stopped is at one epoch."""
    number = jnp.max(runs.stopping.epoch)
    key = jax.random.fold_in(jax.random.wrap_key_data(jnp.asarray(member.dropout)), number)
    return model.masks(key, order.shape[0])


def _make_step(gradient: Gradient, optimiser: Optimiser, member: Member) -> Callable:
    """`step(index, (parameters, moments), (number, batch))`, of the loss of that index."""
    step_direction = optimiser.transformation().update

    def step(index, carry, numbered):
        (parameters, moments), (number, batch) = carry, numbered
        annealing = Annealing(number, member.beta0, member.horizon)
        slope = gradient(index, annealing, parameters, batch)
        with jax.numpy_dtype_promotion("standard"):  # optax has a float to an integer power
            direction, moments = step_direction(slope, moments, parameters)
        parameters = jax.tree.map(
            lambda w, slope: w - member.learning_rate * slope, parameters, direction
        )
        return (parameters, moments), None

    return step


def _validation_losses(losses: Sequence[LossSpec], stats: ClassStats) -> Callable:
    """`values(index, logits[v, K], labels[v]) -> [v]`, by which the run of a loss is stopped.

    The NLL; of a canonical link, which may give a label the probability zero, the loss itself.
    """
    if all(loss.link == "softmax" for loss in losses):
        return lambda index, logits, labels: cross_entropy(logits, labels)
    start = Annealing(jnp.zeros((), jnp.int32), jnp.zeros(()), jnp.zeros(()))

    def values(loss):
        if loss.link == "softmax":
            return cross_entropy
        return lambda logits, labels: loss.build(stats)(logits, labels, start)

    branches = [values(loss) for loss in losses]
    return lambda index, logits, labels: jax.lax.switch(index, branches, logits, labels)


def _judge(
    model: Model,
    stop_on: StopOn,
    validate: Callable[[Array, AnyArray], Float[Array, " v"]],
    features: Float[Array, "N d"],
    member: Member,
    run: Run,
    parameters: Float[Array, " P"],
    moments: optax.OptState,
    step: Int[Array, ""],
) -> Run:
    """Close an epoch: validation, early stopping, and the checkpoint of a new best.

    Without validation examples every epoch is better than the one before.
    """
    if member.validation_y.shape[0]:
        rows = jnp.asarray(member.validation_rows)
        logits = predict(model, parameters, features, member, rows)
        weights = None if member.weights is None else member.weights.validation
        nll = jnp.average(validate(logits, member.validation_y), weights=weights)
        validation = Validation(logits, member.validation_y, weights, nll, run.stopping.epoch + 1)
        value = CRITERIA[stop_on](validation)
    else:
        nll, value = jnp.nan, -jnp.asarray(run.stopping.epoch, jnp.float32)
    stopping, improved = early_stopping.update(run.stopping, value, member.stopping)
    latest = Checkpoint(parameters, step)
    best = jax.tree.map(lambda new, old: jnp.where(improved, new, old), latest, run.best)
    return Run(parameters, moments, stopping, best, jnp.asarray(nll, jnp.float32))
