"""A tiny problem, and one compiled trainer for all the tests that can share it."""

import jax
import numpy as np
import pytest

from pgeom.losses import catalogue
from pgeom.models.mlp import MLP
from pgeom.training import early_stopping
from pgeom.training.epoch import Member
from pgeom.training.placement import Setup, Task, task_sizes
from pgeom.training.settings import Optimiser
from pgeom.training.trainer import compile_programs, train
from pgeom.types import ClassStats

MODEL = MLP(inputs=6, classes=3)
LOSSES = ("ce", "capm", "apms")
BATCH = 16
EPOCHS = 4
ALL = (True,) * len(LOSSES)


def make_task(
    seed, *, learning_rate=1e-2, beta0=0.2, rule=early_stopping.PAPER, spoil=False, wanted=ALL
):
    """A member of 40 + 20 examples: two full batches and a last one of eight."""
    rng = np.random.default_rng(seed)
    labels = np.arange(60, dtype=np.int32) % 3
    features = rng.normal(size=(60, 6)).astype(np.float32)
    features[np.arange(60), labels] += 1.5
    x, y = features[:40], labels[:40]
    members = np.eye(3, dtype=np.float32)[y]
    counts = members.sum(axis=0)
    member = Member(
        x=np.where(spoil, np.nan, x).astype(np.float32),
        y=y,
        validation_x=features[40:],
        validation_y=labels[40:],
        stats=ClassStats(counts, members.T @ x / counts[:, None]),
        learning_rate=np.float32(learning_rate),
        beta0=np.float32(beta0),
        horizon=np.float32(EPOCHS * 3),
        stopping=early_stopping.Rule(*map(np.int32, rule)),
        dropout=rng.integers(2**32, size=2, dtype=np.uint32),
    )

    def order(epoch):
        return np.random.default_rng([seed, epoch]).permutation(40).astype(np.int32)

    return Task(member, MODEL.initial(rng), order, features[40:], np.array(wanted))


def make_setup(losses=LOSSES, devices=2, batch=BATCH, **placing):
    specs = tuple(catalogue.LOSSES.get(loss, loss) for loss in losses)
    return Setup(MODEL, specs, batch, Optimiser(), devices, **placing)


def make_programs(*arguments, **options):
    return compile_programs(make_setup(*arguments, **options), task_sizes(make_task(0)))


def trained(programs, tasks, epochs=EPOCHS):
    """The results of the tasks, trained group by group."""
    size = programs.setup.group_size
    parts = [tasks[first : first + size] for first in range(0, len(tasks), size)]
    return [one for part in parts for one in train(programs, part, epochs)]


@pytest.fixture(autouse=True, scope="package")
def promotion_as_optax_needs_it():
    """Optax raises a float to an integer power, which strict promotion refuses."""
    with jax.numpy_dtype_promotion("standard"):
        yield


@pytest.fixture(scope="package")
def programs(promotion_as_optax_needs_it):
    return make_programs()
