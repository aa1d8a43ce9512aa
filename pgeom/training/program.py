"""One epoch of one cell, as it is compiled: batches, gradients, steps, and the judgement after it.

A *cell* is what runs share: the rows of a dataset, their labels, standardisation and random
streams. A *run* is one loss in it. The runs of a cell are trained one after another on the same
batches and masks, each unless it has stopped. Losses are heads of one program: a real switch on the
index of the loss chooses the gradient on the logits, and everything else is shared.

The features of a dataset are held once, for all cells; a cell has the numbers of its rows, and the
moments that standardise them.

>>> last_rows(1000, rows=400), last_rows(1000, rows=260)
(200, 260)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, UInt32

from pgeom.losses.likelihood import cross_entropy
from pgeom.losses.spec import LossSpec
from pgeom.models.model import DenseModel, Masks, Model
from pgeom.training import early_stopping
from pgeom.training.early_stopping import EarlyStopping
from pgeom.training.settings import Optimiser, Rule, StopOn
from pgeom.types import AnyArray, ClassStats, Rows

AT_ONCE = 2**21  # activations of a prediction: more are slower, and take memory
CHEAP_PADDING = 0.05  # of the examples of an epoch
CACHED = 3 * 2**18  # activations of which a core reads most from its caches


class CellArrays(NamedTuple):
    """What the runs of a cell have in common; all of it is data, none of it is compiled in."""

    rows: Int[AnyArray, " n"]  # of the features, for training
    y: Int[AnyArray, " n"]  # their observed labels
    validation_rows: Int[AnyArray, " v"]
    validation_y: Int[AnyArray, " v"]
    inputs: Int[AnyArray, " m"]  # the rows to predict once the runs are trained
    mean: Float[AnyArray, " d"]  # of the training rows
    scale: Float[AnyArray, " d"]
    stats: ClassStats
    learning_rate: Float[AnyArray, ""]
    planned_steps: Float[AnyArray, ""]  # over which a loss may be annealed
    stopping: Rule
    dropout: UInt32[AnyArray, "2"]  # key data of the stream of masks
    weights: Float[AnyArray, " n"]  # how much each counts; zero if it only fills up a batch
    validation_weights: Float[AnyArray, " v"]


@dataclass(frozen=True)
class StaticSettings:
    """All that is compiled in: another value is another program.

    The cells of a device are trained one after another, which is fastest on a CPU, where a stopped
    run then costs nothing; or `batched`, in one vmapped program, for an accelerator.
    """

    model: Model
    losses: tuple[LossSpec, ...]
    batch_size: int
    optimiser: Optimiser
    stop_on: StopOn
    features: jax.ShapeDtypeStruct  # `[N, d]`, of all cells
    cell: CellArrays  # of shapes
    devices: int = 1
    cells_per_device: int = 1
    batched: bool = False

    @property
    def cells(self) -> int:
        """How many cells one call trains."""
        return self.devices * self.cells_per_device

    @property
    def part(self) -> int:
        """How many examples go through the model at once, in a batch."""
        rows = min(self.batch_size, self.cell.rows.shape[0])
        return rows if self.batched else part_rows(self.model, rows)


def standardise(features, cell, rows):
    """Some rows of the features as the cell's models see them; a missing value is the mean."""
    values = features.at[rows].get(mode="promise_in_bounds")
    mean, scale = jnp.asarray(cell.mean)[None], jnp.asarray(cell.scale)[None]
    return jnp.where(jnp.isnan(values), 0, (values - mean) / scale)


def predicted_at_once(model: Model) -> int:
    """How many examples are predicted at once."""
    return max(1, AT_ONCE // model.activations)


def predict(
    model: Model,
    parameters: Float[Array, " P"],
    features: Float[Array, "N d"],
    cell: CellArrays,
    rows: Int[AnyArray, " n"],
) -> Rows:
    """Logits of some rows, without dropout, as many at once as `predicted_at_once` says."""

    def logits(part):
        return model.logits(parameters, standardise(features, cell, part))

    rows = jnp.asarray(rows)
    n = rows.shape[0]
    if n == 0:  # which not every module can reshape
        return jnp.zeros((0, model.classes), parameters.dtype)
    if n <= (part := predicted_at_once(model)):
        return logits(rows)
    parts = jnp.pad(rows, (0, -n % part)).reshape(-1, part)
    return jax.lax.map(logits, parts).reshape(-1, model.classes)[:n]


def predict_runs(settings, features, cell, parameters):
    """Logits `[L, m, K]` of the inputs of a cell, of parameters `[L, P]`."""
    return jax.lax.map(
        lambda w: predict(settings.model, w, features, cell, cell.inputs), parameters
    )


class Batch(NamedTuple):
    """The rows of one step, of which the first `size` are examples, or of a stack of steps."""

    rows: Int[Array, "*steps B"]
    y: Int[Array, "*steps B"]
    masks: Masks
    weights: Float[Array, "*steps B"]
    size: Int[Array, "*steps"]


def cut(batch: Batch, rows: int) -> Batch:
    """A batch cut in parts of so many rows, stacked; the last one is padded with zeros."""
    n = batch.y.shape[0]
    parts = -(-n // rows)

    def stacked(array):
        widths = [(0, parts * rows - n)] + [(0, 0)] * (array.ndim - 1)
        return jnp.pad(array, widths).reshape(parts, rows, *array.shape[1:])

    return Batch(
        rows=stacked(batch.rows),
        y=stacked(batch.y),
        masks=jax.tree.map(stacked, batch.masks),
        weights=stacked(batch.weights),
        size=jnp.clip(batch.size - rows * jnp.arange(parts), 0, rows),
    )


def cut_epoch(cell: CellArrays, order: Array, masks: Masks, batch_size: int) -> Batch:
    """The batches of an epoch, stacked, in which weights sum to one."""
    n = order.shape[0]
    size = jnp.asarray(n)
    epoch = Batch(cell.rows[order], cell.y[order], masks, cell.weights[order], size)
    batches = cut(epoch, min(batch_size, n))
    shares = batches.weights / jnp.sum(batches.weights, axis=1, keepdims=True)
    return batches._replace(weights=shares)


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


def last_rows(n: int, rows: int) -> int:
    """How many rows of the last part of an epoch go through the model: its examples alone, or all.

    To choose between parts of two sizes copies all that the gradient needs of a forward pass,
    which a long epoch pays at every step: a convolutional network is slower by a sixth.
    """
    last = n - (-(-n // rows) - 1) * rows
    return rows if rows - last < CHEAP_PADDING * n else last


def batch_gradient(
    model: Model,
    losses: Sequence[LossSpec],
    features: Float[Array, "N d"],
    cell: CellArrays,
    part: int,
) -> Callable[..., Float[Array, " P"]]:
    """`gradient(index, progress, parameters, batch)`, of the mean loss of that index.

    Of a batch, so many rows, `part`, go through the model at once.
    """
    last = last_rows(cell.rows.shape[0], part)
    heads = [logit_gradient(loss, cell.stats) for loss in losses]

    def part_gradient(index, progress, parameters, batch):
        logits, pull_back = jax.vjp(
            lambda w: _logits(model, w, features, cell, batch, last), parameters
        )
        slopes = jax.lax.switch(index, heads, logits, batch.y, progress)
        return pull_back(slopes * batch.weights[:, None])[0]

    def gradient(index, progress, parameters, batch):
        one = partial(part_gradient, index, progress, parameters)
        if part == batch.y.shape[0]:
            return one(batch)
        parts = cut(batch, part)
        # a last batch may be over before its last part
        return jax.lax.fori_loop(
            0,
            -(-batch.size // part),
            lambda number, total: total + one(_take(parts, number)),
            jnp.zeros_like(parameters),
        )

    return gradient


def logit_gradient(loss: LossSpec, stats: ClassStats) -> Callable[..., Rows]:
    """`gradient(logits, labels, progress)`, of each example's loss: all that a head has to give."""
    start = loss.build(stats)  # once, and not at every step

    def total(logits, labels, progress):
        now = loss.build(stats, progress) if loss.annealed else start
        return jnp.sum(now(logits, labels))

    return jax.grad(total)


def _logits(model, parameters, features, cell, batch, last):
    """Logits `[B, K]` of a part.

    The last part of an epoch, smaller by far, goes through the model alone, without its
    padding, which would cost digits 42% more work. The heads see them, for almost nothing,
    so that each loss is compiled once, for parts of one shape.
    """
    size = batch.y.shape[0]

    def first_examples(count, w):
        rows, masks = jax.tree.map(lambda array: array[:count], (batch.rows, batch.masks))
        logits = model.logits(w, standardise(features, cell, rows), masks)
        return jnp.pad(logits, ((0, size - count), (0, 0)))

    if last == size:
        return first_examples(size, parameters)
    branches = (partial(first_examples, last), partial(first_examples, size))
    return jax.lax.cond(batch.size < size, *branches, parameters)


class Run(NamedTuple):
    """The state of a run between epochs, or of a stack of runs."""

    parameters: Float[AnyArray, "*stack P"]
    moments: optax.OptState
    stopping: EarlyStopping
    best: Float[AnyArray, "*stack P"]  # the parameters of the best epoch
    validation_loss: Float[AnyArray, "*stack"]  # of the last epoch


def start(parameters: Float[Array, " P"], optimiser: Optimiser) -> Run:
    """A run before its first epoch."""
    nothing = jnp.asarray(jnp.nan, jnp.float32)
    moments = optimiser.transformation().init(parameters)
    return Run(parameters, moments, early_stopping.start(), parameters, nothing)


def run_epoch(
    settings: StaticSettings,
    features: Float[Array, "N d"],
    cell: CellArrays,
    order: Int[Array, " n"],
    runs: Run,
) -> Run:
    """Train one epoch of the runs of a cell.

    Args:
      settings: what is static.
      features: of the dataset.
      cell: what the runs share.
      order: of the training examples.
      runs: stacked `[L, ...]`, one per loss. A run that has stopped is passed through, and costs
        nothing where the epoch is not vmapped.
    """
    number = jnp.max(runs.stopping.epoch)  # every run that has not stopped is at one epoch
    key = jax.random.fold_in(jax.random.wrap_key_data(jnp.asarray(cell.dropout)), number)
    masks = settings.model.masks(key, order.shape[0])
    batches = cut_epoch(cell, order, masks, settings.batch_size)
    gradient = batch_gradient(settings.model, settings.losses, features, cell, settings.part)
    judge = _make_judge(settings, features, cell)

    def unless_stopped(index, runs):
        run = _take(runs, index)
        train = partial(_train_run, settings.optimiser, cell, batches, gradient, judge, index)
        run = jax.lax.cond(run.stopping.stopped, lambda run: run, train, run)
        return jax.tree.map(lambda leaf, new: leaf.at[index].set(new), runs, run)

    # a loop that changes the runs in place: a map would first make new arrays for them
    return jax.lax.fori_loop(0, len(settings.losses), unless_stopped, runs)


def _train_run(optimiser, cell, batches, gradient, judge, index, run):
    """One epoch of the run of a loss."""
    steps = batches.y.shape[0]
    step_direction = optimiser.transformation().update

    def step(carry, numbered):
        (parameters, moments), (number, batch) = carry, numbered
        progress = jnp.asarray(number, float) / jnp.asarray(cell.planned_steps, float)
        slope = gradient(index, progress, parameters, batch)
        with jax.numpy_dtype_promotion("standard"):  # optax has a float to an integer power
            direction, moments = step_direction(slope, moments, parameters)
        return (parameters - cell.learning_rate * direction, moments), None

    numbers = jnp.arange(steps) + run.stopping.epoch * steps
    carry = run.parameters, run.moments
    (parameters, moments), _ = jax.lax.scan(step, carry, (numbers, batches))
    loss, value = judge(index, parameters, run.stopping.epoch + 1)
    stopping, improved = early_stopping.update(run.stopping, value, cell.stopping)
    best = jnp.where(improved, parameters, run.best)
    return Run(parameters, moments, stopping, best, jnp.asarray(loss, jnp.float32))


def _make_judge(settings, features, cell):
    """`judge(index, parameters, epoch)`: the validation loss of a run, and the epoch's value.

    The loss is the NLL; of a canonical link, which may give a label the probability zero, the loss
    that is trained. Without validation examples every epoch is better than the one before.
    """
    losses = [
        loss.build(cell.stats) if loss.link == "canonical" else cross_entropy
        for loss in settings.losses
    ]

    def judge(index, parameters, epoch):
        labels, weights = cell.validation_y, cell.validation_weights
        if not labels.shape[0]:
            return jnp.nan, -jnp.asarray(epoch, jnp.float32)
        logits = predict(settings.model, parameters, features, cell, cell.validation_rows)
        if all(loss is cross_entropy for loss in losses):
            values = cross_entropy(logits, labels)
        else:
            values = jax.lax.switch(index, losses, logits, labels)
        loss = jnp.average(values, weights=weights)
        arguments = (logits, labels, weights, loss, epoch)
        return loss, early_stopping.epoch_value(settings.stop_on, *arguments)

    return judge


def _take(tree, index):
    """One of what is stacked in the leaves of a tree."""
    return jax.tree.map(lambda leaf: leaf[index], tree)
