"""Placement: the members that one call of the program trains, on the devices of a mesh."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int, Shaped

from pgeom.losses.spec import LossSpec
from pgeom.models.model import Model
from pgeom.training import early_stopping, epoch as one_epoch
from pgeom.training.batches import part_rows
from pgeom.training.epoch import Run
from pgeom.training.member import Member, Weights
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
        beta0=zeros(),
        horizon=zeros(),
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
