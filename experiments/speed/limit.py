"""The limit of the job: its matrix products alone, on all cores, with nothing in between.

`python -m experiments.speed.limit job.npz` prints GFLOP/s. Every product of an epoch is timed for
itself, of as many matrices as a member has runs, on every device at once; batched or one after
another, by either of the libraries that XLA may hand it to, whichever is fastest.
"""

import itertools
import sys
import time
from collections import Counter
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from experiments.engine import devices as machine
from experiments.speed.job import Job, Member, read
from experiments.speed.prepare import flop, products
from pgeom.compilation import CPU_OPTIONS, supported
from pgeom.models.model import MLP

REPEATS = 15


def limit(job: Job, stack: Member) -> float:
    """GFLOP/s of the products of an epoch."""
    devices = machine.prepare_devices(None)
    mesh = Mesh(np.array(jax.devices()), ("devices",))
    model = MLP(stack.x.shape[2], stack.capm.shape[1], job.width)
    n, v = stack.y.shape[1], stack.validation_y.shape[1]
    shapes, runs = products(model, n, v, job.batch_size), len(job.losses)
    seconds = 0.0
    for (rows, inner, columns), times in Counter(shapes).items():
        left = np.ones((devices * runs, rows, inner), np.float32)
        right = np.ones((devices * runs, inner, columns), np.float32)
        ways = itertools.product((_batched, _in_turn), ({}, supported(CPU_OPTIONS)))
        seconds += times * min(_seconds(*way, mesh, left, right) for way in ways)
    return flop(shapes) * runs * devices / seconds / 1e9


def _batched(left, right):
    return jnp.matmul(left, right)


def _in_turn(left, right):
    return jax.lax.map(lambda pair: jnp.dot(*pair), (left, right))


def _seconds(multiply, options: dict, mesh: Mesh, left, right) -> float:
    """The median time of a product on all devices at once."""
    spec = PartitionSpec("devices")
    sharded = jax.shard_map(multiply, mesh=mesh, in_specs=spec, out_specs=spec)
    program = jax.jit(sharded, compiler_options=options)
    placed = jax.device_put((left, right), jax.NamedSharding(mesh, spec))
    jax.block_until_ready(program(*placed))
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        jax.block_until_ready(program(*placed))
        times.append(time.perf_counter() - begun)
    return float(np.median(times))


if __name__ == "__main__":
    print(limit(*read(Path(sys.argv[1]))[:2]))
