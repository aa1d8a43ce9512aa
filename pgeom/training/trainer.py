"""The trainer: members placed on devices, and the loop around the program.

Placement: the members that one call of the program trains, on the devices of a mesh.

How much memory of its device a member takes, before anything is compiled.

Training: one compiled epoch, sharded over a mesh, and a host loop around it.

One call trains a *group*: so many members per device of the mesh. A larger job is a sequence of
groups through the same program: neither another regime, seed or learning rate nor
another number of them compiles anything, as long as members have equally many examples.

The mesh may span several processes. Each of them then calls the same functions with the same
tasks, computes the members of its own devices, and gets the results of all.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int, Shaped

from pgeom.compilation import CPU_OPTIONS, supported
from pgeom.losses.spec import LossSpec
from pgeom.models.model import Model
from pgeom.training import early_stopping, program as one_epoch
from pgeom.training.early_stopping import EarlyStopping
from pgeom.training.program import (
    Checkpoint,
    Member,
    Run,
    Weights,
    part_rows,
    predict,
    predicted_at_once,
)
from pgeom.training.settings import Optimiser, StopOn
from pgeom.types import AnyArray, ClassStats

AXIS = "members"


@dataclass(frozen=True)
class Setup:
    """All that is compiled in: another setup is another program.

    The members of a device are trained one after another, which is fastest on a CPU, where a
    stopped run then costs nothing; or `batched`, in one vmapped program, for an accelerator.
    """

    model: Model
    losses: tuple[LossSpec, ...]
    batch_size: int
    optimiser: Optimiser
    devices: int
    members_per_device: int = 1
    batched: bool = False
    stop_on: StopOn = "nll"

    @property
    def group_size(self) -> int:
        """How many members one call trains."""
        return self.devices * self.members_per_device

    def part(self, train: int) -> int:
        """How many of so many training examples go through the model at once, in a batch."""
        rows = min(self.batch_size, train)
        return rows if self.batched else part_rows(self.model, rows)


class Task(NamedTuple):
    """A member with what only the host knows of it.

    `initial` is its first parameter vector, shared by all its losses; `order(epoch)` its batch
    order `[n]` in an epoch; `inputs [m]` the rows to predict once it is trained; `wanted [L]` which
    of its losses to train.
    """

    member: Member
    initial: Float[np.ndarray, " P"]
    order: Callable[[int], Int[np.ndarray, " n"]]
    inputs: Int[np.ndarray, " m"]
    wanted: Bool[np.ndarray, " L"]


class Sizes(NamedTuple):
    """How many rows the features of all tasks have, and how many of them a task has for what.

    Its other dimensions are the model's.
    """

    features: int
    train: int
    validation: int
    inputs: int
    weighted: bool = False  # whether examples have weights


def task_sizes(features: Float[np.ndarray, "N d"], task: Task) -> Sizes:
    member = task.member
    used = (len(member.y), len(member.validation_y), len(task.inputs))
    return Sizes(len(features), *used, member.weights is not None)


def shard_members(devices: int) -> NamedSharding:
    """Members spread over so many devices."""
    return NamedSharding(Mesh(np.array(jax.devices()[:devices]), (AXIS,)), PartitionSpec(AXIS))


def everywhere(sharding: NamedSharding) -> NamedSharding:
    """Whole on every device of the same mesh."""
    return NamedSharding(sharding.mesh, PartitionSpec())


def share_features(
    features: Float[np.ndarray, "N d"], sharding: NamedSharding
) -> Float[Array, "N d"]:
    """The features, whole on each device of the mesh."""
    whole = everywhere(sharding)
    return jax.make_array_from_callback(features.shape, whole, lambda index: features[index])


class Shapes(NamedTuple):
    """The shapes of the features, and of a group's members, orders, runs and inputs."""

    features: jax.ShapeDtypeStruct
    members: Member
    orders: jax.ShapeDtypeStruct
    runs: Run
    inputs: jax.ShapeDtypeStruct


def shapes(setup: Setup, sizes: Sizes, sharding: NamedSharding) -> Shapes:
    """The shapes that are compiled for."""

    def stacked(leaf: jax.ShapeDtypeStruct, *inner: int) -> jax.ShapeDtypeStruct:
        dimensions = (setup.group_size, *inner, *leaf.shape)
        return jax.ShapeDtypeStruct(dimensions, leaf.dtype, sharding=sharding)

    def numbers(count: int) -> jax.ShapeDtypeStruct:
        return stacked(jax.ShapeDtypeStruct((count,), jnp.int32))

    parameters = jax.ShapeDtypeStruct((setup.model.size,), jnp.float32)
    run = jax.eval_shape(lambda p: one_epoch.start(p, setup.optimiser), parameters)
    member = jax.eval_shape(lambda: _blank_member(setup.model, sizes))
    dimensions = (sizes.features, setup.model.inputs)
    return Shapes(
        jax.ShapeDtypeStruct(dimensions, jnp.float32, sharding=everywhere(sharding)),
        jax.tree.map(stacked, member),
        numbers(sizes.train),
        jax.tree.map(lambda leaf: stacked(leaf, len(setup.losses)), run),
        numbers(sizes.inputs),
    )


def _blank_member(model: Model, sizes: Sizes) -> Member:
    """A member of zeros."""
    d, K = model.inputs, model.classes
    n, v = sizes.train, sizes.validation

    def zeros(*dimensions: int, dtype: DTypeLike = jnp.float32) -> Array:
        return jnp.zeros(dimensions, dtype)

    return Member(
        rows=zeros(n, dtype=jnp.int32),
        y=zeros(n, dtype=jnp.int32),
        validation_rows=zeros(v, dtype=jnp.int32),
        validation_y=zeros(v, dtype=jnp.int32),
        mean=zeros(d),
        scale=zeros(d),
        stats=ClassStats(zeros(K), zeros(K, d)),
        learning_rate=zeros(),
        planned_steps=zeros(),
        stopping=early_stopping.Rule(zeros(dtype=jnp.int32), zeros(dtype=jnp.int32)),
        dropout=zeros(2, dtype=jnp.uint32),
        weights=Weights(zeros(n), zeros(v)) if sizes.weighted else None,
    )


class Group(NamedTuple):
    """The arrays of the members that are trained together; `orders(epoch)` are batch orders."""

    members: Member
    runs: Run
    inputs: Int[Array, "members m"]
    orders: Callable[[int], Int[AnyArray, "members n"]]


def assemble(tasks: Sequence[Task], setup: Setup, sharding: NamedSharding) -> Group:
    """The tasks on their devices, padded with stopped copies of the last one."""
    idle = tasks[-1]._replace(wanted=np.zeros(len(setup.losses), bool))
    padded = [*tasks, *[idle] * (setup.group_size - len(tasks))]

    def put(trees):
        """The trees of the members as one, of stacked arrays."""
        if sharding.is_fully_addressable:
            # all leaves at once, which takes a tenth of the time; copied, because runs are donated
            stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *trees)
            return jax.device_put(stacked, sharding, may_alias=False)
        return jax.tree.map(partial(_put_shares, sharding), *trees)

    def orders(epoch):
        arrays = [task.order(epoch) for task in padded]
        # left to the program, which places its arguments more quickly than `device_put` does
        return np.stack(arrays) if sharding.is_fully_addressable else put(arrays)

    blank = _blank_run(setup.model.size, setup.optimiser)
    return Group(
        members=put([task.member for task in padded]),
        runs=put([_first_runs(blank, task) for task in padded]),
        inputs=put([task.inputs for task in padded]),
        orders=orders,
    )


def _put_shares(sharding: NamedSharding, *leaves: np.ndarray) -> Array:
    """The arrays of the members as one, of which this process makes what its own devices hold."""

    def part(index):
        return np.stack([np.asarray(leaf) for leaf in leaves[index[0]]])

    return jax.make_array_from_callback((len(leaves), *np.shape(leaves[0])), sharding, part)


@cache
def _blank_run(size: int, optimiser: Optimiser) -> Run:
    """A run of zeros before its first epoch, made once, on the host."""
    begin = jax.jit(lambda parameters: one_epoch.start(parameters, optimiser))
    return jax.tree.map(np.asarray, begin(np.zeros(size, np.float32)))


def _first_runs(blank: Run, task: Task) -> Run:
    """The runs `[L, ...]` of a task before the first epoch; those not wanted have stopped."""
    best = blank.best._replace(parameters=task.initial)
    run = blank._replace(parameters=task.initial, best=best)
    losses = len(task.wanted)
    runs = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (losses, *np.shape(leaf))), run)
    return runs._replace(stopping=runs.stopping._replace(stopped=~task.wanted))


def fetch(value: Shaped[Array, "*shape"]) -> Shaped[np.ndarray, "*shape"]:
    """An array of a group on this host, also where other processes hold parts of it."""
    if value.is_fully_addressable:
        return np.asarray(value)
    return np.asarray(multihost_utils.process_allgather(value, tiled=True))


def member_bytes(setup: Setup, sizes: Sizes) -> int:
    """Upper bound on the memory that one member takes on its device, the features apart.

    What it holds of the member, twice, because a run's old state may outlive its new one; an
    epoch's masks; and the activations of a part with their gradients, or those of a prediction.
    """
    _, *held = shapes(replace(setup, devices=1, members_per_device=1), sizes, shard_members(1))
    at_once = 4 * setup.part(sizes.train)
    at_once += 2 * min(predicted_at_once(setup.model), max(sizes.validation, sizes.inputs))
    working = at_once * setup.model.activations * np.dtype(np.float32).itemsize
    masks = jax.eval_shape(lambda key: setup.model.masks(key, sizes.train), jax.random.key(0))
    return working + 2 * _bytes((held, masks))


def feature_bytes(setup: Setup, sizes: Sizes) -> int:
    """The memory that the features take on each device."""
    return _bytes(shapes(setup, sizes, shard_members(setup.devices))[0])


def _bytes(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


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
