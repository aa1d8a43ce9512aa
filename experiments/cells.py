"""Cells: a dataset under a regime with a seed, made into the task of one member.

>>> task = prepare(Cell("breast-cancer", "symmetric-20", seed=0), Training())
>>> task.training.member.x.shape, 0.1 < task.noise.realised_rate < 0.3
((341, 30), True)
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from experiments.protocol import Training
from pgeom.data import label_noise, regimes, sources, splits
from pgeom.data.regimes import stream
from pgeom.training.crew import Task
from pgeom.training.epoch import Member
from pgeom.training.mlp import Network
from pgeom.types import ClassStats


class Cell(NamedTuple):
    """What the runs of a member have in common, by name."""

    dataset: str
    regime: str
    seed: int


class PreparedCell(NamedTuple):
    """A cell with its data.

    The task's inputs are the validation examples followed by the test examples.
    """

    cell: Cell
    split: splits.Split
    noise: label_noise.NoisyLabels
    training: Task


@cache
def load(dataset: str) -> sources.Source:
    """A source, read once."""
    return sources.load(dataset)


def network_for(dataset: str) -> Network:
    source = load(dataset)
    return Network(source.features.shape[1], source.num_classes)


def prepare(cell: Cell, training: Training) -> PreparedCell:
    """Split, thin or corrupt, standardise, and draw the random streams of a cell."""
    source = load(cell.dataset)
    split, noise = regimes.partition(source, cell.regime, cell.seed)
    network = network_for(cell.dataset)
    steps = -(-len(noise.labels) // training.batch_size)
    member = Member(
        x=split.train.features,
        y=noise.labels,
        validation_x=split.validation.features,
        validation_y=split.validation.labels,
        stats=_class_stats(split.train.features, noise.labels, source.num_classes),
        learning_rate=np.float32(training.learning_rate),
        beta0=np.float32(training.beta0),
        horizon=np.float32(training.epochs * steps),
        minimum=np.int32(training.minimum_epochs),
        patience=np.int32(training.patience),
        dropout=stream("dropout", *cell).integers(2**32, size=2, dtype=np.uint32),
    )
    inputs = np.concatenate([split.validation.features, split.test.features])
    task = Task(member, network.initial(stream("init", *cell)), _order(cell, len(member.y)), inputs)
    return PreparedCell(cell, split, noise, task)


def _order(cell: Cell, n: int):
    return lambda epoch: stream("order", *cell, epoch).permutation(n).astype(np.int32)


def _class_stats(features, labels, K: int) -> ClassStats:
    """`class_structure.class_stats` on the host, where it compiles nothing."""
    members = np.eye(K, dtype=features.dtype)[labels]
    counts = members.sum(axis=0)
    return ClassStats(counts, members.T @ features / counts[:, None])
