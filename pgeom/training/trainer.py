"""The trainer: one compiled epoch, sharded over the devices of a mesh, and a host loop around it.

One call trains so many cells per device of the mesh. A larger job is a sequence of calls of the
same program: neither another regime, seed or learning rate nor another number of them compiles
anything, as long as cells have equally many examples.

The mesh may span several processes. Each of them then calls the same functions with the same
cells, computes those of its own devices, and gets the results of all.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Float, Int

from pgeom.compilation import CPU_OPTIONS, supported
from pgeom.losses.spec import LossSpec
from pgeom.models.model import Model
from pgeom.training import program
from pgeom.training.program import CellArrays, Run, StaticSettings, predicted_at_once
from pgeom.training.settings import Training

AXIS = "cells"


class CellData(NamedTuple):
    """A cell, with what only the host knows of it.

    `initial` is the first parameter vector, shared by all its losses; `order(epoch)` the batch
    order `[n]` in an epoch; `wanted [L]` which of its losses to train.
    """

    arrays: CellArrays
    initial: Float[np.ndarray, " P"]
    order: Callable[[int], Int[np.ndarray, " n"]]
    wanted: Bool[np.ndarray, " L"]


def static_settings(
    model: Model,
    losses: tuple[LossSpec, ...],
    training: Training,
    features: Float[np.ndarray, "N d"],
    cell: CellData,
    **placing,
) -> StaticSettings:
    """What to compile for cells of these shapes; `placing` has the other fields of the settings."""
    shapes = jax.eval_shape(lambda *arrays: arrays, features, cell.arrays)
    compiled = (training.batch_size, training.optimiser, training.stop_on)
    return StaticSettings(model, losses, *compiled, *shapes, **placing)


def shard_cells(devices: int) -> NamedSharding:
    """Cells spread over so many devices."""
    return NamedSharding(Mesh(np.array(jax.devices()[:devices]), (AXIS,)), PartitionSpec(AXIS))


def share_features(
    features: Float[np.ndarray, "N d"], sharding: NamedSharding
) -> Float[Array, "N d"]:
    """The features, whole on each device of the mesh."""
    return jax.make_array_from_callback(
        features.shape, _whole(sharding), lambda index: features[index]
    )


def _whole(sharding):
    """What is whole on every device of the same mesh."""
    return NamedSharding(sharding.mesh, PartitionSpec())


def argument_shapes(settings: StaticSettings, sharding: NamedSharding) -> tuple:
    """The shapes of the features, and of stacked cells, orders and runs."""

    def stacked(leaf, *inner):
        dimensions = (settings.cells, *inner, *leaf.shape)
        return jax.ShapeDtypeStruct(dimensions, leaf.dtype, sharding=sharding)

    parameters = jax.ShapeDtypeStruct((settings.model.size,), jnp.float32)
    run = jax.eval_shape(lambda p: program.start(p, settings.optimiser), parameters)
    return (
        settings.features.update(sharding=_whole(sharding)),
        jax.tree.map(stacked, settings.cell),
        stacked(settings.cell.rows),
        jax.tree.map(lambda leaf: stacked(leaf, len(settings.losses)), run),
    )


def memory_bounds(settings: StaticSettings) -> tuple[int, int]:
    """The bytes that the features take on each device, and an upper bound on those of a cell.

    What a device holds of a cell, twice, because a run's old state may outlive its new one; an
    epoch's masks; and the activations of a part with their gradients, or those of a prediction.
    """
    model, cell = settings.model, settings.cell
    one = replace(settings, devices=1, cells_per_device=1)
    features, *held = argument_shapes(one, shard_cells(1))
    n, predicted = len(cell.rows), max(len(cell.validation_rows), len(cell.inputs))
    masks = jax.eval_shape(lambda key: model.masks(key, n), jax.random.key(0))
    at_once = 4 * settings.part + 2 * min(predicted_at_once(model), predicted)
    working = at_once * model.activations * np.dtype(np.float32).itemsize
    return _bytes(features), working + 2 * _bytes((held, masks))


def _bytes(tree):
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


class Programs(NamedTuple):
    """The compiled programs of some settings."""

    settings: StaticSettings
    sharding: NamedSharding  # of the cells
    epoch: Callable  # (features, cells, orders, runs) -> runs, (which have stopped, their losses)
    predict: Callable  # (features, cells, parameters) -> logits `[cells, L, m, K]` of the inputs


@cache
def compile_programs(settings: StaticSettings) -> Programs:
    """Compile; a second call with the same settings is free."""
    sharding = shard_cells(settings.devices)

    def each_cell(function, *stacked):
        if settings.batched:
            return jax.vmap(function)(*stacked)
        return jax.lax.map(lambda one: function(*one), stacked)

    def local_epoch(features, cells, orders, runs):
        epoch = partial(program.run_epoch, settings, features)
        runs = each_cell(epoch, cells, orders, runs)
        return runs, (runs.stopping.stopped, runs.validation_loss)

    def local_predict(features, cells, parameters):
        return each_cell(partial(program.predict_runs, settings, features), cells, parameters)

    def compiled(local, features, *stacked, **options):
        mesh, spec = sharding.mesh, sharding.spec
        specs = (PartitionSpec(), *(spec for _ in stacked))  # a share of the cells
        local = jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=spec, check_vma=False)
        jitted = jax.jit(local, compiler_options=supported(CPU_OPTIONS), **options)
        return jitted.lower(features, *stacked).compile()

    features, cells, orders, runs = argument_shapes(settings, sharding)
    epoch = compiled(local_epoch, features, cells, orders, runs, donate_argnums=3)
    return Programs(settings, sharding, epoch, compiled(local_predict, features, cells, runs.best))


def place(cells: Sequence[CellData], programs: Programs) -> tuple[CellArrays, Run, Callable]:
    """The arrays, runs and `orders(epoch)` of cells on their devices, filled up with stopped ones.

    All are stacked; what fills them up are copies of the last cell.
    """
    settings, sharding = programs.settings, programs.sharding
    idle = cells[-1]._replace(wanted=np.zeros(len(settings.losses), bool))
    padded = [*cells, *[idle] * (settings.cells - len(cells))]

    def put(trees):
        """The trees of the cells as one, of stacked arrays."""
        if sharding.is_fully_addressable:
            # all leaves at once, which takes a tenth of the time; copied, because runs are donated
            stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *trees)
            return jax.device_put(stacked, sharding, may_alias=False)
        return jax.tree.map(partial(_put_shares, sharding), *trees)

    def orders(epoch):
        arrays = [cell.order(epoch) for cell in padded]
        # left to the program, which places its arguments more quickly than `device_put` does
        return np.stack(arrays) if sharding.is_fully_addressable else put(arrays)

    blank = _blank_run(settings.model.size, settings.optimiser)
    runs = put([_first_runs(blank, cell) for cell in padded])
    return put([cell.arrays for cell in padded]), runs, orders


def _put_shares(sharding, *leaves):
    """The arrays of the cells as one, of which this process makes what its own devices hold."""

    def part(index):
        return np.stack([np.asarray(leaf) for leaf in leaves[index[0]]])

    return jax.make_array_from_callback((len(leaves), *np.shape(leaves[0])), sharding, part)


@cache
def _blank_run(size, optimiser):
    """A run of zeros before its first epoch, made once, on the host."""
    begin = jax.jit(lambda parameters: program.start(parameters, optimiser))
    return jax.tree.map(np.asarray, begin(np.zeros(size, np.float32)))


def _first_runs(blank, cell):
    """The runs `[L, ...]` of a cell before the first epoch; those not wanted have stopped."""
    run = blank._replace(parameters=cell.initial, best=cell.initial)
    losses = len(cell.wanted)
    runs = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (losses, *np.shape(leaf))), run)
    return runs._replace(stopping=runs.stopping._replace(stopped=~cell.wanted))


def fetch(value: Array) -> np.ndarray:
    """A stacked array on this host, also where other processes hold parts of it."""
    if value.is_fully_addressable:
        return np.asarray(value)
    return np.asarray(multihost_utils.process_allgather(value, tiled=True))


class Trained(NamedTuple):
    """The L runs of a cell, from their best epochs, and what the last epoch predicts."""

    parameters: Float[np.ndarray, "L P"]
    best_step: Int[np.ndarray, " L"]  # the optimiser steps up to the best epoch
    best_epoch: Int[np.ndarray, " L"]  # 0 where no epoch had a finite validation loss
    stopped_epoch: Int[np.ndarray, " L"]
    diverged_epoch: Int[np.ndarray, " L"]  # 0 where none
    validation_loss: Float[np.ndarray, "L epochs"]  # NaN after a run has stopped
    logits: Float[np.ndarray, "L m K"]  # of the cell's inputs
    last_logits: Float[np.ndarray, "L m K"]  # of the same, from the last epoch of each run


def train(
    programs: Programs,
    features: Float[Array, "N d"],
    cells: Sequence[CellData],
    epochs: int,
    on_epoch: Callable[[int, Bool[np.ndarray, "cells L"]], None] = lambda epoch, stopped: None,
) -> list[Trained]:
    """Train cells at once, each with the losses it wants.

    Args:
      programs: compiled for features and cells of these shapes.
      features: of which the cells have the rows, as `share_features` places them.
      cells: no more than one call trains.
      epochs: maximum epochs per run; it ends early when all runs have stopped.
      on_epoch: called after each epoch with its number and which runs `[cells, L]` have stopped.

    Returns:
      The results, in the order of the cells.
    """
    arrays, runs, orders = place(cells, programs)
    outcomes = []
    for epoch in range(1, epochs + 1):
        runs, outcome = programs.epoch(features, arrays, orders(epoch), runs)
        # Read one epoch behind, so that the devices never wait for the host. Where all had
        # stopped, the epoch already under way passes every run through.
        if outcomes:
            stopped = fetch(outcomes[-1][0])
            on_epoch(epoch - 1, stopped[: len(cells)])
            if np.all(stopped):
                break
        outcomes.append(outcome)
    else:
        on_epoch(epochs, fetch(outcomes[-1][0])[: len(cells)])
    logits, last_logits = (
        fetch(programs.predict(features, arrays, parameters))
        for parameters in (runs.best, runs.parameters)
    )
    losses = np.stack([fetch(values) for _, values in outcomes], axis=-1)
    best, stopping = jax.tree.map(fetch, (runs.best, runs.stopping))
    after = np.arange(1, losses.shape[-1] + 1) > stopping.epoch[..., None]
    n = len(cells[0].arrays.rows)
    stacked = Trained(
        parameters=best,
        best_step=stopping.best_epoch * -(-n // programs.settings.batch_size),
        best_epoch=stopping.best_epoch,
        stopped_epoch=stopping.epoch,
        diverged_epoch=stopping.diverged_epoch,
        validation_loss=np.where(after, np.nan, losses),
        logits=logits,
        last_logits=last_logits,
    )
    return [Trained(*(array[one] for array in stacked)) for one in range(len(cells))]
