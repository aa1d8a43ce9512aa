"""A tiny problem, and one compiled trainer for all the tests that can share it."""

import jax
import numpy as np
import pytest

from pgeom.losses import catalogue
from pgeom.models.model import MLP
from pgeom.training import early_stopping, settings
from pgeom.training.program import CellArrays
from pgeom.training.settings import Training
from pgeom.training.trainer import (
    CellData,
    compile_programs,
    share_features,
    static_settings,
    train,
)
from pgeom.types import ClassStats

MODEL = MLP(inputs=6, classes=3)
LOSSES = ("ce", "capm", "apms")
BATCH = 16
EPOCHS = 4
ALL = (True,) * len(LOSSES)


def make_features(seeds=12):
    """Features that the cells share, sixty rows per seed; the classes differ in the mean."""
    features = np.random.default_rng(0).normal(size=(60 * seeds, 6)).astype(np.float32)
    features[np.arange(60 * seeds), np.arange(60 * seeds) % 3] += 1.5
    return features


FEATURES = make_features()


def make_cell(
    seed, *, learning_rate=1e-2, planned=EPOCHS * 3, rule=settings.PAPER, spoil=False, wanted=ALL
):
    """A cell of 40 + 20 examples: two full batches and a last one of eight."""
    rng = np.random.default_rng(seed)
    rows = np.arange(60 * seed, 60 * seed + 60, dtype=np.int32)
    labels = np.arange(60, dtype=np.int32) % 3
    y, train = labels[:40], FEATURES[rows[:40]]
    members = np.eye(3, dtype=np.float32)[y]
    counts, (mean, scale) = members.sum(axis=0), (train.mean(axis=0), train.std(axis=0))
    x = (train - mean) / scale
    arrays = CellArrays(
        rows=rows[:40],
        y=y,
        validation_rows=rows[40:],
        validation_y=labels[40:],
        inputs=rows[40:],
        mean=np.full(6, np.inf, np.float32) if spoil else mean,
        scale=scale,
        stats=ClassStats(counts, members.T @ x / counts[:, None]),
        learning_rate=np.float32(learning_rate),
        planned_steps=np.float32(planned),
        stopping=early_stopping.Rule(*map(np.int32, rule)),
        dropout=rng.integers(2**32, size=2, dtype=np.uint32),
        weights=np.ones(40, np.float32),
        validation_weights=np.ones(20, np.float32),
    )

    def order(epoch):
        return np.random.default_rng([seed, epoch]).permutation(40).astype(np.int32)

    return CellData(arrays, MODEL.initial(rng), order, np.array(wanted))


def inputs_of(arrays, rows):
    """Rows of the features as the models of a cell see them."""
    return (FEATURES[rows] - arrays.mean) / arrays.scale


def make_settings(losses=LOSSES, devices=2, batch=BATCH, stop_on="nll", **placing):
    specs = tuple(catalogue.LOSSES.get(loss, loss) for loss in losses)
    training = Training(batch_size=batch, stop_on=stop_on)
    return static_settings(
        MODEL, specs, training, FEATURES, make_cell(0), devices=devices, **placing
    )


def make_programs(*arguments, **options):
    return compile_programs(make_settings(*arguments, **options))


def trained(programs, cells, epochs=EPOCHS):
    """The results of the cells, trained one group after another."""
    size = programs.settings.cells
    parts = [cells[first : first + size] for first in range(0, len(cells), size)]
    return [one for part in parts for one in train_group(programs, part, epochs)]


def train_group(programs, cells, *more):
    return train(programs, share_features(FEATURES, programs.sharding), cells, *more)


@pytest.fixture(autouse=True, scope="package")
def promotion_as_optax_needs_it():
    """Optax raises a float to an integer power, which strict promotion refuses."""
    with jax.numpy_dtype_promotion("standard"):
        yield


@pytest.fixture(scope="package")
def programs(promotion_as_optax_needs_it):
    return make_programs()
