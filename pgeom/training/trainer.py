"""Training: one compiled epoch, sharded over a mesh, and a host loop around it.

One call trains a *group*: so many members per device of the mesh. A larger job is a sequence of
groups through the same program: neither another regime, seed, learning rate or coefficient nor
another number of them compiles anything, as long as members have equally many examples.

The mesh may span several processes. Each of them then calls the same functions with the same
tasks, computes the members of its own devices, and gets the results of all.
"""

import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Float, Int

from pgeom.compilation import CPU_OPTIONS, supported
from pgeom.training import epoch as one_epoch
from pgeom.training.early_stopping import EarlyStopping
from pgeom.training.epoch import Checkpoint, Run
from pgeom.training.member import Member, predict
from pgeom.training.placement import (
    Setup,
    Sizes,
    Task,
    assemble,
    fetch,
    shapes,
    shard_members,
)
from pgeom.types import AnyArray


class Trained(NamedTuple):
    """The L runs of a member, from their best checkpoints, and what the last epoch predicts."""

    parameters: Float[np.ndarray, "L P"]
    best_step: Int[np.ndarray, " L"]  # the loss state that goes with the parameters
    best_epoch: Int[np.ndarray, " L"]  # 0 where no epoch had a finite validation NLL
    stopped_epoch: Int[np.ndarray, " L"]
    diverged_epoch: Int[np.ndarray, " L"]  # 0 where none
    validation_nll: Float[np.ndarray, "L epochs"]  # NaN after a run has stopped
    logits: Float[np.ndarray, "L m K"]  # of the task's inputs
    last_logits: Float[np.ndarray, "L m K"]  # of the same, from the last epoch of each run


Outcome = tuple[Bool[Array, "members L"], Float[Array, "members L"]]
"""Of an epoch: which runs have stopped, and the validation NLL of each."""


class Programs(NamedTuple):
    """The compiled programs of a setup, and the seconds it took to compile them."""

    setup: Setup
    sharding: NamedSharding
    epoch: Callable[
        [Float[Array, "N d"], Member, Int[AnyArray, "members n"], Run], tuple[Run, Outcome]
    ]
    predict: Callable[
        [Float[Array, "N d"], Member, Float[AnyArray, "members L P"], Int[Array, "members m"]],
        Float[Array, "members L m K"],
    ]
    compile_seconds: float


@cache
def compile_programs(setup: Setup, sizes: Sizes) -> Programs:
    """Compile for tasks of these sizes; a second call with the same arguments is free."""
    sharding = shard_members(setup.devices)
    run_epoch = one_epoch.member_epoch(
        setup.model,
        setup.losses,
        setup.batch_size,
        setup.optimiser,
        setup.stop_on,
        setup.part(sizes.train),
    )

    def each_member(function, *stacked):
        if setup.batched:
            return jax.vmap(function)(*stacked)
        return jax.lax.map(lambda one: function(*one), stacked)

    def local_epoch(features, members, orders, runs):
        runs = each_member(partial(run_epoch, features), members, orders, runs)
        return runs, (runs.stopping.stopped, runs.validation_nll)

    def local_predict(features, members, parameters, inputs):
        def predict_runs(member, vectors, rows):
            return jax.lax.map(lambda w: predict(setup.model, w, features, member, rows), vectors)

        return each_member(predict_runs, members, parameters, inputs)

    def sharded(local, **options):
        mesh, spec = sharding.mesh, sharding.spec
        specs = (PartitionSpec(), spec, spec, spec)  # whole features, and a share of the members
        local = jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=spec, check_vma=False)
        return jax.jit(local, compiler_options=supported(CPU_OPTIONS), **options)

    begun = time.perf_counter()
    features, members, orders, runs, inputs = shapes(setup, sizes, sharding)
    epoch = sharded(local_epoch, donate_argnums=3).lower(features, members, orders, runs)
    prediction = sharded(local_predict).lower(features, members, runs.best.parameters, inputs)
    compiled = epoch.compile(), prediction.compile()
    return Programs(setup, sharding, *compiled, time.perf_counter() - begun)


def train(
    programs: Programs,
    features: Float[Array, "N d"],
    tasks: Sequence[Task],
    epochs: int,
    on_epoch: Callable[[int, Bool[np.ndarray, "tasks L"]], None] = lambda epoch, stopped: None,
) -> list[Trained]:
    """Train a group: every task with the losses it wants.

    Args:
      programs: compiled for features and tasks of these shapes.
      features: of which the tasks have the rows, as `share_features` places them.
      tasks: the members, no more than a group has.
      epochs: maximum epochs per run; it ends early when all runs have stopped.
      on_epoch: called after each epoch with its number and which runs `[tasks, L]` have stopped.

    Returns:
      The results, in the order of the tasks.
    """
    group = assemble(tasks, programs.setup, programs.sharding)
    runs, curves = group.runs, []
    for epoch in range(1, epochs + 1):
        runs, outcome = programs.epoch(features, group.members, group.orders(epoch), runs)
        # Read one epoch behind, so that the devices never wait for the host. Where all had
        # stopped, the epoch already under way passes every run through.
        if curves:
            stopped = fetch(curves[-1][0])
            on_epoch(epoch - 1, stopped[: len(tasks)])
            if np.all(stopped):
                break
        curves.append(outcome)
    else:
        on_epoch(epochs, fetch(curves[-1][0])[: len(tasks)])
    logits = tuple(
        fetch(programs.predict(features, group.members, parameters, group.inputs))
        for parameters in (runs.best.parameters, runs.parameters)
    )
    nll = np.stack([fetch(values) for _, values in curves], axis=-1)
    best, stopping = jax.tree.map(fetch, (runs.best, runs.stopping))
    return [_trained(best, stopping, nll, logits, place) for place in range(len(tasks))]


def _trained(
    best: Checkpoint,
    stopping: EarlyStopping,
    nll: Float[np.ndarray, "members L epochs"],
    logits: tuple[Float[np.ndarray, "members L m K"], ...],
    place: int,
) -> Trained:
    from_best, from_last = logits
    after = np.arange(1, nll.shape[-1] + 1) > stopping.epoch[place][:, None]
    return Trained(
        parameters=np.asarray(best.parameters[place]),
        best_step=np.asarray(best.step[place]),
        best_epoch=np.asarray(stopping.best_epoch[place]),
        stopped_epoch=np.asarray(stopping.epoch[place]),
        diverged_epoch=np.asarray(stopping.diverged_epoch[place]),
        validation_nll=np.where(after, np.nan, nll[place]),
        logits=from_best[place],
        last_logits=from_last[place],
    )
