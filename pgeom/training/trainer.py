"""Training: one compiled epoch, sharded over a mesh, and a host loop around it.

The program takes as many members as the mesh has devices. A larger job is a sequence of such
crews through the same program: neither another regime, seed, learning rate or coefficient nor
another number of them compiles anything.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from pgeom.losses.catalogue import Builder
from pgeom.training import epoch as one_epoch
from pgeom.training.epoch import Member, Run
from pgeom.training.mlp import Network
from pgeom.types import ClassStats

AXIS = "members"


@dataclass(frozen=True)
class Setup:
    """All that is compiled in: another setup is another program."""

    network: Network
    builders: tuple[Builder, ...]
    batch_size: int
    devices: int


class Task(NamedTuple):
    """A member with what only the host knows of it.

    `initial` is its first parameter vector, shared by all its losses; `order(epoch)` its batch
    order `[n]` in an epoch; `inputs [m, d]` what to predict once it is trained.
    """

    member: Member
    initial: np.ndarray
    order: Callable[[int], np.ndarray]
    inputs: np.ndarray


class Sizes(NamedTuple):
    """How many examples a task has; its other dimensions are the network's."""

    train: int
    validation: int
    inputs: int


def sizes_of(task: Task) -> Sizes:
    return Sizes(len(task.member.y), len(task.member.validation_y), len(task.inputs))


class Trained(NamedTuple):
    """The L runs of a member, from their best checkpoints."""

    parameters: np.ndarray  # [L, P]
    best_step: np.ndarray  # [L], the loss state that goes with the parameters
    best_epoch: np.ndarray  # [L]; 0 where no epoch had a finite validation NLL
    stopped_epoch: np.ndarray  # [L]
    diverged_epoch: np.ndarray  # [L]; 0 where none
    validation_nll: np.ndarray  # [L, epochs], NaN after a run has stopped
    logits: np.ndarray  # [L, m, K], of the task's inputs


class Progress(NamedTuple):
    """Where a job stands: called after every epoch."""

    finished_runs: int
    all_runs: int
    share: float  # of the planned epochs


class Programs(NamedTuple):
    """The compiled programs of a setup, and the seconds it took to compile them."""

    setup: Setup
    sharding: NamedSharding
    epoch: Callable
    predict: Callable
    compile_seconds: float


@cache
def compile_programs(setup: Setup, sizes: Sizes) -> Programs:
    """Compile for tasks of these sizes; a second call with the same finds the first one's."""
    mesh = Mesh(np.array(jax.devices()[: setup.devices]), (AXIS,))
    sharding = NamedSharding(mesh, PartitionSpec(AXIS))
    run_epoch = one_epoch.member_epoch(setup.network, setup.builders, setup.batch_size)

    def local_epoch(members, orders, runs):
        runs = jax.lax.map(lambda local: run_epoch(*local), (members, orders, runs))
        return runs, (runs.stopping.stopped, runs.validation_nll)

    def local_predict(parameters, inputs):
        one = jax.vmap(setup.network.logits, in_axes=(0, None))
        return jax.lax.map(lambda local: one(*local), (parameters, inputs))

    def sharded(local):
        spec = PartitionSpec(AXIS)
        return jax.shard_map(local, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)

    begun = time.perf_counter()
    members, orders, runs, inputs = _abstract(setup, sizes, sharding)
    epoch = jax.jit(sharded(local_epoch), donate_argnums=2).lower(members, orders, runs).compile()
    predict = jax.jit(sharded(local_predict)).lower(runs.best.parameters, inputs).compile()
    return Programs(setup, sharding, epoch, predict, time.perf_counter() - begun)


def train(
    programs: Programs,
    tasks: Sequence[Task],
    epochs: int,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Iterator[list[Trained]]:
    """Train every task with every loss, a crew at a time.

    Args:
      programs: compiled for tasks of this shape.
      tasks: the members.
      epochs: the most to train; a crew ends early when all its runs have stopped.
      on_progress: called after each epoch.

    Yields:
      The results of one crew after another, in the order of the tasks.
    """
    setup = programs.setup
    losses = len(setup.builders)
    for first in range(0, len(tasks), setup.devices):
        crew = tasks[first : first + setup.devices]

        def report(share, stopped, first=first, crew=crew):
            finished = first * losses + int(np.sum(stopped[: len(crew)]))
            done = (first + share * len(crew)) / len(tasks)
            on_progress(Progress(finished, len(tasks) * losses, done))

        yield _train_crew(programs, crew, epochs, report)


class _Crew(NamedTuple):
    members: Member
    runs: Run
    inputs: jax.Array
    orders: Callable[[int], jax.Array]


def _train_crew(programs: Programs, tasks, epochs, report) -> list[Trained]:
    crew = _crew(tasks, programs.setup, programs.sharding)
    runs, curves = crew.runs, []
    for epoch in range(1, epochs + 1):
        runs, outcome = programs.epoch(crew.members, crew.orders(epoch), runs)
        # Read one epoch behind, so that the devices never wait for the host. Where all had
        # stopped, the epoch already under way passes every run through.
        if curves:
            stopped = np.asarray(curves[-1][0])
            report((epoch - 1) / epochs, stopped)
            if np.all(stopped):
                break
        curves.append(outcome)
    report(1.0, np.ones_like(curves[-1][0]))
    logits = np.asarray(programs.predict(runs.best.parameters, crew.inputs))
    nll = np.stack([np.asarray(values) for _, values in curves], axis=-1)
    runs = jax.tree.map(np.asarray, runs)
    return [_trained(runs, nll, logits, place) for place in range(len(tasks))]


def _trained(runs: Run, nll, logits, place) -> Trained:
    stopping = runs.stopping
    after = np.arange(1, nll.shape[-1] + 1) > stopping.epoch[place][:, None]
    return Trained(
        parameters=runs.best.parameters[place],
        best_step=runs.best.step[place],
        best_epoch=stopping.best_epoch[place],
        stopped_epoch=stopping.epoch[place],
        diverged_epoch=stopping.diverged_epoch[place],
        validation_nll=np.where(after, np.nan, nll[place]),
        logits=logits[place],
    )


def _abstract(setup: Setup, sizes: Sizes, sharding: NamedSharding):
    """The shapes of a crew's members, orders, runs and inputs."""
    d, K = setup.network.inputs, setup.network.classes
    n, v, m = sizes

    def shape(*dimensions, dtype=jnp.float32):
        return jax.ShapeDtypeStruct((setup.devices, *dimensions), dtype, sharding=sharding)

    members = Member(
        x=shape(n, d),
        y=shape(n, dtype=jnp.int32),
        validation_x=shape(v, d),
        validation_y=shape(v, dtype=jnp.int32),
        stats=ClassStats(shape(K), shape(K, d)),
        learning_rate=shape(),
        beta0=shape(),
        horizon=shape(),
        minimum=shape(dtype=jnp.int32),
        patience=shape(dtype=jnp.int32),
        dropout=shape(2, dtype=jnp.uint32),
    )
    run = jax.eval_shape(one_epoch.start, jax.ShapeDtypeStruct((setup.network.size,), jnp.float32))
    losses = len(setup.builders)
    runs = jax.tree.map(lambda leaf: shape(losses, *leaf.shape, dtype=leaf.dtype), run)
    return members, shape(n, dtype=jnp.int32), runs, shape(m, d)


def _crew(tasks: Sequence[Task], setup: Setup, sharding: NamedSharding) -> _Crew:
    """One task a device; where tasks are missing, the last again, with all its runs stopped."""
    missing = setup.devices - len(tasks)
    padded = [*tasks, *[tasks[-1]] * missing]

    def put(*leaves):
        return jax.device_put(np.stack([np.asarray(leaf) for leaf in leaves]), sharding)

    blank = jax.tree.map(np.asarray, one_epoch.start(jnp.zeros(setup.network.size)))

    def runs_of(task, present):
        stopping = blank.stopping._replace(stopped=np.asarray(not present))
        best = blank.best._replace(parameters=task.initial)
        run = blank._replace(parameters=task.initial, stopping=stopping, best=best)
        losses = len(setup.builders)
        return jax.tree.map(lambda leaf: np.broadcast_to(leaf, (losses, *np.shape(leaf))), run)

    runs = [runs_of(task, place < len(tasks)) for place, task in enumerate(padded)]
    return _Crew(
        members=jax.tree.map(put, *[task.member for task in padded]),
        runs=jax.tree.map(put, *runs),
        inputs=put(*[task.inputs for task in padded]),
        orders=lambda epoch: put(*[task.order(epoch) for task in padded]),
    )
