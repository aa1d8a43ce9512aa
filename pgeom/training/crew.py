"""A crew: the members that a program takes at once, on the devices of a mesh."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from pgeom.losses.catalogue import Builder
from pgeom.training import epoch as one_epoch
from pgeom.training.epoch import Member, Run
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


def sharding_over(devices: int) -> NamedSharding:
    """Members spread over so many devices."""
    return NamedSharding(Mesh(np.array(jax.devices()[:devices]), (AXIS,)), PartitionSpec(AXIS))


def member_bytes(setup: Setup, sizes: Sizes) -> int:
    """About how much memory a device needs for one member, from above.

    What it holds of the member, twice, because a run's old state may outlive its new one; and an
    epoch's shuffled inputs, masks and activations with their gradients.
    """
    held = shapes(replace(setup, devices=1, members=1), sizes, sharding_over(1))
    width = setup.network.inputs + 2 * setup.network.width
    working = 4 * sizes.train * width * np.dtype(np.float32).itemsize
    return working + 2 * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(held))


def shapes(setup: Setup, sizes: Sizes, sharding: NamedSharding):
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


class Crew(NamedTuple):
    """The arrays of a crew, sharded; `orders(epoch)` are its batch orders."""

    members: Member
    runs: Run
    inputs: jax.Array
    orders: Callable[[int], jax.Array]


def assemble(tasks: Sequence[Task], setup: Setup, sharding: NamedSharding) -> Crew:
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
    return Crew(
        members=jax.tree.map(put, *[task.member for task in padded]),
        runs=jax.tree.map(put, *runs),
        inputs=put(*[task.inputs for task in padded]),
        orders=lambda epoch: sharded(lambda place: padded[place].order(epoch), tasks[0].member.y),
    )


def fetch(value: jax.Array) -> np.ndarray:
    """An array of a crew on this host, also where other processes hold parts of it."""
    if value.is_fully_addressable:
        return np.asarray(value)
    return np.asarray(multihost_utils.process_allgather(value, tiled=True))
