"""The program of one epoch: members, batches, gradients and the step.

A member: one (regime, seed, learning rate), with its partitions, statistics and random streams.

The features of a dataset are held once, for all members; a member has the numbers of its rows, and
the moments that standardise them.

The batches of an epoch, and how many of their rows go through the model at once.

>>> last_rows(1000, rows=400), last_rows(1000, rows=260)
(200, 260)

The gradient of a batch: the model, the head of a loss, and back.

Losses are heads of one program: a real switch on the index of the loss chooses the gradient on the
logits, and everything else is shared. Examples are gathered from the features as they are needed.

One epoch of one member: all its runs, each with its loss, on the same batches and masks.

A *run* is a member with a loss. Runs are trained one after another, each unless it has stopped, and
judged on the validation examples.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, UInt32

from pgeom.losses.likelihood import cross_entropy
from pgeom.losses.spec import LossSpec
from pgeom.models.model import DenseModel, Masks, Model
from pgeom.training import early_stopping
from pgeom.training.early_stopping import CRITERIA, EarlyStopping, Validation
from pgeom.training.settings import Optimiser, StopOn
from pgeom.types import AnyArray, ClassStats

AT_ONCE = 2**21  # activations of a prediction: more are slower, and take memory


class Weights(NamedTuple):
    """How much each example counts; zero for one that is only there to fill up a batch."""

    train: Float[AnyArray, " n"]
    validation: Float[AnyArray, " v"]


class Member(NamedTuple):
    """What the runs of a member have in common; all of it is data, none of it is compiled in."""

    rows: Int[AnyArray, " n"]  # of the features, for training
    y: Int[AnyArray, " n"]  # their observed labels
    validation_rows: Int[AnyArray, " v"]
    validation_y: Int[AnyArray, " v"]
    mean: Float[AnyArray, " d"]  # of the training rows
    scale: Float[AnyArray, " d"]
    stats: ClassStats
    learning_rate: Float[AnyArray, ""]
    planned_steps: Float[AnyArray, ""]  # over which a loss may be annealed
    stopping: early_stopping.Rule
    dropout: UInt32[AnyArray, "2"]  # key data of the stream of masks
    weights: Weights | None = None  # of the examples; None where all weigh the same


def standardise(
    features: Float[Array, "N d"], member: Member, rows: Int[Array, " n"]
) -> Float[Array, "n d"]:
    """Some rows of the features as the member's model sees them; a missing value is the mean."""
    values = features.at[rows].get(mode="promise_in_bounds")
    mean, scale = jnp.asarray(member.mean)[None], jnp.asarray(member.scale)[None]
    return jnp.where(jnp.isnan(values), 0, (values - mean) / scale)


def predicted_at_once(model: Model) -> int:
    """How many examples are predicted at once."""
    return max(1, AT_ONCE // model.activations)


def predict(
    model: Model,
    parameters: Float[Array, " P"],
    features: Float[Array, "N d"],
    member: Member,
    rows: Int[Array, " n"],
) -> Float[Array, "n K"]:
    """Logits of some rows, without dropout, as many at once as `predicted_at_once` says."""

    def logits(part):
        return model.logits(parameters, standardise(features, member, part))

    n = rows.shape[0]
    if n == 0:  # which not every module can reshape
        return jnp.zeros((0, model.classes), parameters.dtype)
    if n <= (part := predicted_at_once(model)):
        return logits(rows)
    parts = jnp.pad(rows, (0, -n % part)).reshape(-1, part)
    return jax.lax.map(logits, parts).reshape(-1, model.classes)[:n]


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


Gradient = Callable[[Int[Array, ""], Array, Float[Array, " P"], Batch], Float[Array, " P"]]
"""`gradient(index, progress, parameters, batch)`, of the mean loss of that index."""


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

    def gradient(index, progress, parameters, batch):
        one = partial(part_gradient, index, progress, parameters)
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
    heads = [logit_gradient(loss, member.stats) for loss in losses]

    def gradient(index, progress, parameters, batch):
        logits, pull_back = jax.vjp(
            lambda w: _logits(model, w, features, member, batch, last), parameters
        )
        slopes = jax.lax.switch(index, heads, logits, batch.y, progress)
        return pull_back(slopes * batch.shares)[0]

    return gradient


def logit_gradient(
    loss: LossSpec, stats: ClassStats
) -> Callable[[Float[Array, "n K"], Int[Array, " n"], ArrayLike], Float[Array, "n K"]]:
    """`gradient(logits, labels, progress)`, of each example's loss: all that a head has to give."""
    start = loss.build(stats)  # once, and not at every step

    def total(logits, labels, progress):
        now = loss.build(stats, progress) if loss.annealed else start
        return jnp.sum(now(logits, labels))

    return jax.grad(total)


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
        progress = jnp.asarray(number, float) / jnp.asarray(member.planned_steps, float)
        slope = gradient(index, progress, parameters, batch)
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

    def values(loss):
        if loss.link == "softmax":
            return cross_entropy
        return loss.build(stats)

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
