"""Train one loss on arrays: weighted examples, one or several seeds, and few compilations.

Programs are compiled for batches and numbers of examples that are filled up with examples of weight
zero, so that two training sets of nearly one size, such as the folds of a cross-validation, share
one program.

>>> import numpy as np
>>> from pgeom.losses import catalogue
>>> from pgeom.models.model import Linear
>>> from pgeom.training.settings import Training
>>> x = np.array([[-1.0], [-2.0], [1.0], [2.0]], np.float32)
>>> data = Examples(x, np.array([0, 0, 1, 1]), np.ones(4))
>>> settings = Training(epochs=50, learning_rate=0.1, stopping=NEVER)
>>> (trained,) = fit(Linear(1, 2), catalogue.LOSSES["ce"], data, None, settings, [0])
>>> trained.stopped_epoch, trained.best_epoch
(array([50], dtype=int32), array([50], dtype=int32))
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from pgeom.losses.spec import LossSpec
from pgeom.models.model import Model
from pgeom.paper.class_structure import class_stats
from pgeom.training.program import CellArrays
from pgeom.training.settings import NEVER, Rule, Training
from pgeom.training.trainer import (
    CellData,
    Trained,
    compile_programs,
    share_features,
    static_settings,
    train,
)

SMALLEST = 16  # examples that anything smaller is filled up to


class Examples(NamedTuple):
    """Inputs as the model sees them, labels 0 … K−1, and positive weights."""

    features: Float[np.ndarray, "n d"]
    labels: Int[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]


def fit(
    model: Model,
    loss: LossSpec,
    data: Examples,
    validation: Examples | None,
    training: Training,
    seeds: Sequence[int],
) -> list[Trained]:
    """Train a model once per seed.

    The gradient of a batch is the mean over its examples, by weight. Seeds differ in initial
    weights, batches and dropout.

    Args:
      model: for inputs of the width of the features.
      loss: what to minimise.
      data: every class is present.
      validation: by whose NLL to stop early and choose the epoch; None keeps the last one.
      training: the batch size is an upper bound.
      seeds: nonnegative integers.

    Returns:
      The results, in the order of the seeds; they have no logits.
    """
    n = len(data.labels)
    training = replace(training, batch_size=min(training.batch_size, round_up(n)))
    if validation is None:
        validation = Examples(data.features[:0], data.labels[:0], data.weights[:0])
        training = replace(training, stopping=NEVER)
    filled = fill(data, n + -n % training.batch_size)
    judged = fill(validation, round_up(len(validation.labels)))
    features = np.concatenate([filled.features, judged.features]).astype(np.float32)
    inputs = data.features.astype(np.float32)
    stats = class_stats(inputs, data.labels, model.classes, weights=data.weights)
    arrays = _arrays(filled, judged, stats, training)
    cells = [_cell(arrays, model, n, seed) for seed in seeds]
    placing = {"cells_per_device": len(cells), "batched": jax.default_backend() != "cpu"}
    programs = compile_programs(
        static_settings(model, (loss,), training, features, cells[0], **placing)
    )
    shared = share_features(features, programs.sharding)
    return train(programs, shared, cells, training.epochs)


def round_up(n: int) -> int:
    """The next of the sizes 0, 16, 20, 24, 28, 32, 40, …: four for each power of two.

    >>> [round_up(n) for n in (0, 1, 17, 33, 100)]
    [0, 16, 20, 40, 112]
    """
    if n <= SMALLEST:
        return SMALLEST if n else 0
    quarter = 2 ** (n - 1).bit_length() // 8
    return -(-n // quarter) * quarter


def fill(data: Examples, size: int) -> Examples:
    """The examples, followed by copies of the first one, of weight zero, up to a size."""
    own = np.arange(size) < len(data.labels)
    rows = np.where(own, np.arange(size), 0)
    return Examples(data.features[rows], data.labels[rows], data.weights[rows] * own)


def _arrays(data, validation, stats, training):
    """What all seeds share; the features are those of the data, then those for validation."""
    n, d = data.features.shape
    rows = np.arange(n + len(validation.labels), dtype=np.int32)
    return CellArrays(
        rows=rows[:n],
        y=data.labels.astype(np.int32),
        validation_rows=rows[n:],
        validation_y=validation.labels.astype(np.int32),
        inputs=rows[:0],
        mean=np.zeros(d, np.float32),
        scale=np.ones(d, np.float32),
        stats=stats,
        learning_rate=np.array(training.learning_rate, np.float32),
        planned_steps=np.array(training.epochs * (n // training.batch_size), np.float32),
        stopping=Rule(*(np.array(count, np.int32) for count in training.stopping)),
        dropout=np.zeros(2, np.uint32),
        weights=data.weights.astype(np.float32),
        validation_weights=validation.weights.astype(np.float32),
    )


def _cell(arrays, model, n, seed):
    """The cell of a seed; the examples of weight zero come last in every epoch."""
    first, dropout = np.random.default_rng(seed).spawn(2)
    words = dropout.integers(2**32, size=2, dtype=np.uint32)

    def order(epoch):
        shuffled = np.random.default_rng([seed, epoch]).permutation(n)
        return np.concatenate([shuffled, arrays.rows[n:]]).astype(np.int32)

    wanted = np.ones(1, bool)
    return CellData(arrays._replace(dropout=words), model.initial(first), order, wanted)
