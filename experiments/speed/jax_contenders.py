"""The job in JAX: by pgeom's trainer; or one loss at a time, vmapped over seeds, as is usual.

`python -m experiments.speed.jax_contenders trainer job.npz` prints a lap as JSON. Neither cache
nor devices are set up here but for the trainer: the other runs as JAX comes.
"""

import json
import math
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.engine import devices as machine
from experiments.engine.cells import prepare
from experiments.engine.study import Study
from experiments.speed.job import Job, Lap, Member, Ridges, read
from experiments.speed.memory import peak_bytes
from experiments.speed.prepare import make_study
from pgeom.evaluation import metrics
from pgeom.losses.catalogue import GENERAL
from pgeom.losses.spec import LossSpec
from pgeom.models.cnn import CNN
from pgeom.models.flax_module import FlaxModel
from pgeom.training import early_stopping
from pgeom.training.trainer import compile_programs, share_features, static_settings, train
from pgeom.types import ClassStats


def trainer(job: Job, devices: int | None = None) -> Lap:
    """pgeom: all losses of a member in one program, one member per device."""
    return _train(make_study(job), job, devices)


def flax_convolution(job: Job) -> Lap:
    """The same trainer, with a network whose convolutions are those of Flax."""
    study = make_study(job)
    shape, classes = study.dataset.image_shape, study.dataset.num_classes
    assert shape is not None  # it is a job of images
    network = ConvolutionalNetwork(classes, job.width, job.dropout)
    return _train(replace(study, model=FlaxModel(network, shape, classes)), job, None)


def _train(study: Study, job: Job, devices: int | None) -> Lap:
    """The lap of pgeom's trainer with a study."""
    training, cells = study.training, study.cells
    devices = machine.prepare_devices(devices)
    features = study.dataset.standardised
    prepared = [
        prepare(study, cell) for cell in cells
    ]  # the others are given their data ready, too
    begun = time.perf_counter()
    first = prepared[0].data
    chosen = (study.model, study.losses, training, features, first)
    programs = compile_programs(static_settings(*chosen, devices=devices))
    compiled, nll = time.perf_counter(), []
    shared = share_features(features, programs.sharding)
    for first in range(0, len(cells), devices):
        group = prepared[first : first + devices]
        results = train(programs, shared, [one.data for one in group], job.epochs)
        for one, trained in zip(group, results, strict=True):
            test = trained.logits[:, len(one.split.validation.labels) :]
            nll.append(_nll(test, one.split.test.labels))
    seconds = time.perf_counter() - compiled
    return Lap(seconds, compiled - begun, float(np.mean(nll)), peak_bytes())


def _nll(logits, labels) -> np.ndarray:
    """Test NLLs `[L]` of logits `[L, n, K]`, on the host."""
    top = logits.max(axis=-1)
    total = np.log(np.sum(np.exp(logits - top[..., None]), axis=-1)) + top
    return np.mean(total - logits[:, np.arange(len(labels)), labels], axis=-1)


def one_loss(job: Job, stack: Member, ridges: Ridges) -> Lap:
    """One program per loss, vmapped over the seeds of a regime."""
    cuts = [slice(first, first + job.seeds) for first in range(0, len(stack.y), job.seeds)]
    groups = [Member(*(part[cut] for part in stack)) for cut in cuts]
    seconds, compiling, nll = 0.0, 0.0, []
    for loss in job.losses:
        begun = time.perf_counter()
        start, epoch, score = _programs(job, GENERAL[loss], groups[0])
        compiled = time.perf_counter()
        for group in groups:
            state = start(group, jax.random.split(jax.random.key(0), job.seeds))
            for _ in range(job.epochs):
                state = epoch(group, state)
                if np.all(state["stopping"].stopped):
                    break
            nll.append(np.asarray(score(group, state)))
        compiling += compiled - begun
        seconds += time.perf_counter() - compiled
    return Lap(seconds, compiling, float(np.mean(nll)))


class MLP(nn.Module):
    """The network with dropout as Flax has it."""

    width: int
    classes: int
    rate: float

    @nn.compact
    def __call__(self, x, training: bool):
        for _ in range(2):
            x = nn.relu(nn.Dense(self.width, kernel_init=_uniform)(x))
            x = nn.Dropout(self.rate, deterministic=not training)(x)
        return nn.Dense(self.classes, kernel_init=_uniform)(x)


class ConvolutionalNetwork(nn.Module):
    """The layers of `pgeom.models.cnn.CNN` as Flax has them."""

    classes: int
    width: int
    rate: float

    @nn.compact
    def __call__(self, x, train: bool):
        x = x.reshape(len(x), *x.shape[1:], 1)
        for channels in CNN.channels:
            start = {"kernel_init": _uniform, "bias_init": partial(_uniform_bias, 9 * x.shape[-1])}
            convolve = nn.Conv(channels, (3, 3), strides=2, padding=1, **start)
            x = nn.relu(convolve(x))
        x = x.reshape(len(x), -1)
        for units in (self.width, self.classes):
            start = {"kernel_init": _uniform, "bias_init": partial(_uniform_bias, x.shape[-1])}
            x = nn.Dense(units, **start)(x)
            if units == self.width:
                x = nn.Dropout(self.rate, deterministic=not train)(nn.relu(x))
        return x


def _uniform_bias(fan_in: int, key, shape, dtype=jnp.float32):
    return jax.random.uniform(key, shape, dtype, -(fan_in**-0.5), fan_in**-0.5)


def _uniform(key, shape, dtype=jnp.float32):
    bound = math.prod(shape[:-1]) ** -0.5
    return jax.random.uniform(key, shape, dtype, -bound, bound)


def _programs(job: Job, loss: LossSpec, group: Member):
    """The compiled first state, epoch and test score of a loss, each vmapped over members."""
    model = MLP(job.width, group.capm.shape[-1], job.dropout)
    optimiser = optax.chain(
        optax.clip_by_global_norm(job.clip),
        optax.adamw(job.learning_rate, weight_decay=job.weight_decay),
    )
    epoch = partial(_epoch, job, model, optimiser, loss)
    start = partial(_start, model, optimiser)

    def score(member, state):
        return metrics.nll(model.apply(state["best"], member.test_x, training=False), member.test_y)

    keys = jax.random.split(jax.random.key(0), job.seeds)
    begin = jax.jit(jax.vmap(start)).lower(group, keys).compile()
    state = begin(group, keys)
    compiled = (jax.jit(jax.vmap(one)).lower(group, state).compile() for one in (epoch, score))
    return (begin, *compiled)


def _start(model, optimiser, member: Member, key) -> dict:
    key, init = jax.random.split(key)
    weights = model.init(init, member.x[:1], training=False)
    stopping, count = early_stopping.start(), jnp.zeros((), jnp.int32)
    state = {"weights": weights, "optimiser": optimiser.init(weights), "best": weights}
    return {**state, "stopping": stopping, "key": key, "count": count}


def _epoch(job: Job, model, optimiser, spec: LossSpec, member: Member, state: dict) -> dict:
    examples, rows = len(member.y), job.batch_size
    hot = jax.nn.one_hot(member.y, model.classes)
    stats = ClassStats(hot.sum(0), hot.T @ member.x / hot.sum(0)[:, None])
    planned_steps = float(job.epochs * -(-examples // rows))

    def step(state, batch):
        x, y = batch
        key, dropout = jax.random.split(state["key"])
        loss = spec.build(stats, jnp.asarray(state["count"], float) / planned_steps)

        def objective(weights):
            logits = model.apply(weights, x, training=True, rngs={"dropout": dropout})
            return jnp.mean(loss(logits, y))

        gradient = jax.grad(objective)(state["weights"])
        updates, moments = optimiser.update(gradient, state["optimiser"], state["weights"])
        weights = optax.apply_updates(state["weights"], updates)
        moved = {"weights": weights, "optimiser": moments, "key": key}
        return {**state, **moved, "count": state["count"] + 1}, None

    key, shuffle = jax.random.split(state["key"])
    order = jax.random.permutation(shuffle, examples)
    x, y, cut = member.x[order], member.y[order], examples // rows * rows
    full = (x[:cut].reshape(-1, rows, x.shape[1]), y[:cut].reshape(-1, rows))
    state, _ = jax.lax.scan(step, {**state, "key": key}, full)
    if cut < examples:
        state, _ = step(state, (x[cut:], y[cut:]))
    logits = model.apply(state["weights"], member.validation_x, training=False)
    rule = early_stopping.Rule(job.minimum, job.patience)
    nll = metrics.nll(logits, member.validation_y)
    stopping, improved = early_stopping.update(state["stopping"], nll, rule)
    best = jax.tree.map(partial(jnp.where, improved), state["weights"], state["best"])
    return {**state, "stopping": stopping, "best": best}


if __name__ == "__main__":
    name, path, *devices = sys.argv[1:]
    given = read(Path(path))
    ways = {"one_loss": lambda: one_loss(*given), "flax": lambda: flax_convolution(given[0])}
    lap = ways.get(name, lambda: trainer(given[0], *map(int, devices)))()
    print(json.dumps(lap._asdict()))
