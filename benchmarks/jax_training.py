"""The jobs in JAX: by pgeom's trainer, or one loss at a time, vmapped over seeds, as is usual.

Neither cache nor devices are set up but for pgeom's trainer: the other runs as JAX comes.
"""

import time
from dataclasses import replace
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.jobs import CLASSES, IMAGE, Arrays, Job, load_stacks, products
from benchmarks.processes import peak_bytes
from experiments.engine.cells import prepare
from experiments.engine.devices import prepare_devices
from pgeom.compilation import CPU_OPTIONS, supported
from pgeom.evaluation import metrics
from pgeom.losses.catalogue import GENERAL
from pgeom.models.flax_module import FlaxModel
from pgeom.paper.class_structure import class_stats
from pgeom.training.settings import Optimiser, Training
from pgeom.training.trainer import (
    compile_programs,
    shard_cells,
    share_features,
    static_settings,
    train,
)

TIMED = 15  # repetitions of a matrix product
UNIFORM = nn.initializers.variance_scaling(1 / 3, "fan_in", "uniform")  # within ±1/√fan_in


def train_by_pgeom(fields: list, devices: int | None = None, convolve: str = "patches") -> dict:
    """All losses of a cell in one program, one cell per device.

    Args:
      fields: of a `Job`.
      devices: all cores by default.
      convolve: by "patches" times a matrix, or by "flax", with the convolution of Flax.
    """
    job = Job(*fields)
    study, devices = job.study, prepare_devices(devices)
    features = study.dataset.standardised
    if convolve == "flax":
        network = FlaxNetwork(*job.layers)
        study = replace(study, model=FlaxModel(network, IMAGE, CLASSES))
    # the others are given their data ready, too
    prepared, trained = [prepare(study, cell) for cell in study.cells], []
    begun = time.perf_counter()
    settings = (study.model, study.losses, study.training, features, prepared[0].data)
    programs = compile_programs(static_settings(*settings, devices=devices))
    compiled = time.perf_counter()
    shared, cells = share_features(features, programs.sharding), [one.data for one in prepared]
    for first in range(0, len(cells), devices):
        trained += train(programs, shared, cells[first : first + devices], job.epochs)
    times = {"seconds": time.perf_counter() - compiled, "compiling": compiled - begun}
    nll = [
        metrics.nll(runs.logits[:, len(one.split.validation.labels) :], one.split.test.labels)
        for one, runs in zip(prepared, trained, strict=True)
    ]
    return times | {"nll": float(np.mean(nll)), "peak_bytes": peak_bytes()}


class FlaxNetwork(nn.Module):
    """Convolutions of stride 2, if any, and dense layers with dropout, as Flax has them."""

    channels: tuple[int, ...]
    widths: tuple[int, ...]
    rate: float

    @nn.compact
    def __call__(self, x, train: bool):
        x = x[..., None] if self.channels else x
        for channels in self.channels:
            x = nn.relu(nn.Conv(channels, (3, 3), strides=2, padding=1, kernel_init=UNIFORM)(x))
        x = x.reshape(len(x), -1)
        for width in self.widths:
            x = nn.Dropout(self.rate, deterministic=not train)(
                nn.relu(nn.Dense(width, kernel_init=UNIFORM)(x))
            )
        return nn.Dense(CLASSES, kernel_init=UNIFORM)(x)


def train_loss_by_loss(fields: list) -> dict:
    """Three programs per loss, vmapped over the seeds of a regime, and a loop over epochs."""
    job = Job(*fields)
    stacks, seconds, compiling, nll = load_stacks(job), 0.0, 0.0, []
    keys = jax.random.split(jax.random.key(0), job.seeds)
    for loss in job.losses:
        begun = time.perf_counter()
        programs = [
            jax.jit(jax.vmap(partial(step, job, loss))) for step in (_start, _epoch, _score)
        ]
        _train_stack(programs, 1, stacks[0], keys)  # which compiles
        compiled = time.perf_counter()
        nll += [_train_stack(programs, job.epochs, stack, keys) for stack in stacks]
        compiling += compiled - begun
        seconds += time.perf_counter() - compiled
    return {"seconds": seconds, "compiling": compiling, "nll": float(np.mean(nll))}


def _train_stack(programs: list, epochs: int, stack: Arrays, keys: jax.Array) -> np.ndarray:
    start, epoch, score = programs
    state = start(stack, keys)
    for _ in range(epochs):
        state = epoch(stack, state)
    return np.asarray(score(stack, state))


def _optimiser() -> optax.GradientTransformation:
    adamw = optax.adamw(Training.learning_rate, weight_decay=Optimiser.weight_decay)
    return optax.chain(optax.clip_by_global_norm(Optimiser.clip), adamw)


def _start(job: Job, loss: str, cell: Arrays, key: jax.Array):
    """Weights, moments and a key; and the best weights, with their NLL."""
    weights = FlaxNetwork(*job.layers).init(key, cell.x[:1], False)
    best_nll = jnp.full((), jnp.inf, jnp.float32)
    return (weights, _optimiser().init(weights), key), weights, best_nll


def _epoch(job: Job, loss: str, cell: Arrays, state):
    examples, rows, model = len(cell.y), job.training.batch_size, FlaxNetwork(*job.layers)
    full, per_example = examples // rows, GENERAL[loss].build(class_stats(cell.x, cell.y, CLASSES))

    def step(state, chosen):
        weights, moments, key = state
        key, dropout = jax.random.split(key)

        def objective(weights):
            logits = model.apply(weights, cell.x[chosen], True, rngs={"dropout": dropout})
            return jnp.mean(per_example(jnp.asarray(logits), cell.y[chosen]))

        updates, moments = _optimiser().update(jax.grad(objective)(weights), moments, weights)
        return (optax.apply_updates(weights, updates), moments, key), None

    (*rest, key), best, best_nll = state
    key, shuffle = jax.random.split(key)
    order = jax.random.permutation(shuffle, examples)
    state, _ = jax.lax.scan(step, (*rest, key), order[: full * rows].reshape(full, rows))
    state, _ = step(state, order[full * rows :])
    nll = metrics.nll(model.apply(state[0], cell.validation_x, False), cell.validation_y)
    best = jax.tree.map(partial(jnp.where, nll < best_nll), state[0], best)
    return state, best, jnp.minimum(nll, best_nll)


def _score(job: Job, loss: str, cell: Arrays, state) -> jax.Array:
    return metrics.nll(FlaxNetwork(*job.layers).apply(state[1], cell.test_x, False), cell.test_y)


def limit(fields: list) -> float:
    """GFLOP/s of the job's matrix products alone, on all cores, with nothing in between.

    Each product of an epoch is timed by itself, of as many matrices as a cell has runs, on every
    device at once.
    """
    job, devices = Job(*fields), prepare_devices(None)
    spread, matrices = shard_cells(devices), devices * len(job.losses)
    multiply = jax.jit(jnp.matmul, compiler_options=supported(CPU_OPTIONS))
    seconds = operations = 0.0
    for rows, inner, columns in products(job):
        pair = np.ones((matrices, rows, inner), "f"), np.ones((matrices, inner, columns), "f")
        pair, times = jax.device_put(pair, spread), []
        for _ in range(TIMED):
            begun = time.perf_counter()
            multiply(*pair).block_until_ready()
            times.append(time.perf_counter() - begun)
        seconds += float(np.median(times))
        operations += 2 * matrices * rows * inner * columns
    return operations / seconds / 1e9
