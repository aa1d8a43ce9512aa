"""Training: one compiled epoch, sharded over a mesh, and a host loop around it.

The program takes a *crew*: so many members for each device of the mesh. A larger job is a
sequence of crews through the same program: neither another regime, seed, learning rate or
coefficient nor another number of them compiles anything.

The mesh may span several processes. Each of them then calls the same functions with the same
tasks, computes the members of its own devices, and gets the results of all.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from pgeom.compilation import OWN_LOOPS, known
from pgeom.losses.catalogue import Builder
from pgeom.training import epoch as one_epoch
from pgeom.training.early_stopping import EarlyStopping
from pgeom.training.epoch import Checkpoint, Member, Run
from pgeom.training.mlp import Network
from pgeom.types import ClassStats

AXIS = "members"


@dataclass(frozen=True)
class Setup:
    """All that is compiled in: another setup is another program.

    The members of a device are trained one after another, which is fastest on a CPU, where a
    stopped run then costs nothing; or `together`, in one batched program, for an accelerator.
    """

    network: Network
    builders: tuple[Builder, ...]
    batch_size: int
    devices: int
    members: int = 1  # of a device
    together: bool = False

    @property
    def crew(self) -> int:
        """How many members the program takes."""
        return self.devices * self.members


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

    def each_member(function, *stacked):
        if setup.together:
            return jax.vmap(function)(*stacked)
        return jax.lax.map(lambda one: function(*one), stacked)

    def local_epoch(members, orders, runs):
        runs = each_member(run_epoch, members, orders, runs)
        return runs, (runs.stopping.stopped, runs.validation_nll)

    def local_predict(parameters, inputs):
        of_runs = jax.vmap(setup.network.logits, in_axes=(0, None))
        return each_member(of_runs, parameters, inputs)

    def sharded(local, **options):
        spec = PartitionSpec(AXIS)
        local = jax.shard_map(local, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
        return jax.jit(local, compiler_options=known(OWN_LOOPS), **options)

    begun = time.perf_counter()
    members, orders, runs, inputs = _abstract(setup, sizes, sharding)
    epoch = sharded(local_epoch, donate_argnums=2).lower(members, orders, runs).compile()
    predict = sharded(local_predict).lower(runs.best.parameters, inputs).compile()
    return Programs(setup, sharding, epoch, predict, time.perf_counter() - begun)


def train(
    programs: Programs,
    tasks: Sequence[Task],
    epochs: int,
    on_epoch: Callable[[int, np.ndarray], None] = lambda epoch, stopped: None,
) -> list[Trained]:
    """Train a crew: every task with every loss.

    Args:
      programs: compiled for tasks of this shape.
      tasks: the members, no more than a crew has.
      epochs: the most to train; it ends early when all runs have stopped.
      on_epoch: called after each epoch with its number and which runs `[tasks, L]` have stopped.

    Returns:
      The results, in the order of the tasks.
    """
    crew = _crew(tasks, programs.setup, programs.sharding)
    runs, curves = crew.runs, []
    for epoch in range(1, epochs + 1):
        runs, outcome = programs.epoch(crew.members, crew.orders(epoch), runs)
        # Read one epoch behind, so that the devices never wait for the host. Where all had
        # stopped, the epoch already under way passes every run through.
        if curves:
            stopped = _fetch(curves[-1][0])
            on_epoch(epoch - 1, stopped[: len(tasks)])
            if np.all(stopped):
                break
        curves.append(outcome)
    else:
        on_epoch(epochs, _fetch(curves[-1][0])[: len(tasks)])
    logits = _fetch(programs.predict(runs.best.parameters, crew.inputs))
    nll = np.stack([_fetch(values) for _, values in curves], axis=-1)
    best, stopping = jax.tree.map(_fetch, (runs.best, runs.stopping))
    return [_trained(best, stopping, nll, logits, place) for place in range(len(tasks))]


def _trained(best: Checkpoint, stopping: EarlyStopping, nll, logits, place) -> Trained:
    after = np.arange(1, nll.shape[-1] + 1) > stopping.epoch[place][:, None]
    return Trained(
        parameters=best.parameters[place],
        best_step=best.step[place],
        best_epoch=stopping.best_epoch[place],
        stopped_epoch=stopping.epoch[place],
        diverged_epoch=stopping.diverged_epoch[place],
        validation_nll=np.where(after, np.nan, nll[place]),
        logits=logits[place],
    )


def _fetch(value: jax.Array) -> np.ndarray:
    """An array of a crew on this host, also where other processes hold parts of it."""
    if value.is_fully_addressable:
        return np.asarray(value)
    return np.asarray(multihost_utils.process_allgather(value, tiled=True))


def member_bytes(setup: Setup, sizes: Sizes) -> int:
    """About how much memory a device needs for one member, from above.

    What it holds of the member, twice, because a run's old state may outlive its new one; and an
    epoch's shuffled inputs, masks and activations with their gradients.
    """
    sharding = NamedSharding(Mesh(np.array(jax.devices()[:1]), (AXIS,)), PartitionSpec(AXIS))
    held = _abstract(replace(setup, devices=1, members=1), sizes, sharding)
    width = setup.network.inputs + 2 * setup.network.width
    working = 4 * sizes.train * width * np.dtype(np.float32).itemsize
    return working + 2 * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(held))


def _abstract(setup: Setup, sizes: Sizes, sharding: NamedSharding):
    """The shapes of a crew's members, orders, runs and inputs."""
    d, K = setup.network.inputs, setup.network.classes
    n, v, m = sizes

    def shape(*dimensions, dtype=jnp.float32):
        return jax.ShapeDtypeStruct((setup.crew, *dimensions), dtype, sharding=sharding)

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


class _Crew(NamedTuple):
    members: Member
    runs: Run
    inputs: jax.Array
    orders: Callable[[int], jax.Array]


def _crew(tasks: Sequence[Task], setup: Setup, sharding: NamedSharding) -> _Crew:
    """The tasks on their devices; where some are missing, the last again, all its runs stopped."""
    padded = [*tasks, *[tasks[-1]] * (setup.crew - len(tasks))]
    losses = len(setup.builders)

    def sharded(of_member, like):
        """An array of which this process makes only what its own devices hold."""

        def part(index):
            return np.stack([of_member(place) for place in range(setup.crew)[index[0]]])

        return jax.make_array_from_callback((setup.crew, *np.shape(like)), sharding, part)

    def put(*leaves):
        return sharded(lambda place: np.asarray(leaves[place]), leaves[0])

    blank = jax.tree.map(np.asarray, jax.jit(one_epoch.start)(np.zeros(setup.network.size, "f4")))

    def runs_of(task, present):
        stopping = blank.stopping._replace(stopped=np.asarray(not present))
        best = blank.best._replace(parameters=task.initial)
        run = blank._replace(parameters=task.initial, stopping=stopping, best=best)
        return jax.tree.map(lambda leaf: np.broadcast_to(leaf, (losses, *np.shape(leaf))), run)

    runs = [runs_of(task, place < len(tasks)) for place, task in enumerate(padded)]
    return _Crew(
        members=jax.tree.map(put, *[task.member for task in padded]),
        runs=jax.tree.map(put, *runs),
        inputs=put(*[task.inputs for task in padded]),
        orders=lambda epoch: sharded(lambda place: padded[place].order(epoch), tasks[0].member.y),
    )
