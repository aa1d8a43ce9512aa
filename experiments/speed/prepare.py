"""The digits job: its constants, its data, and the matrix products that are its useful work."""

from pathlib import Path

import numpy as np

from experiments.cells import Cell, network_for, prepare
from experiments.protocol import REGIMES, Training
from experiments.speed.job import Job, Member, Ridges, write
from pgeom.losses import catalogue
from pgeom.training import early_stopping
from pgeom.training.epoch import CLIP, WEIGHT_DECAY
from pgeom.training.mlp import DROPOUT, Network

DATASET = "digits"
ALL_REGIMES = REGIMES[DATASET]
LOSSES = tuple(catalogue.GENERAL)


def digits_job(
    regimes: tuple[str, ...],
    seeds: int,
    epochs: int,
    *,
    losses: tuple[str, ...] = LOSSES,
    stopping: bool = False,
    width: int | None = None,
) -> Job:
    """The protocol's job; by default without early stopping, so that the work is equal."""
    rule = early_stopping.RULE if stopping else early_stopping.NEVER
    training = Training(epochs)
    return Job(
        regimes=regimes,
        seeds=seeds,
        losses=losses,
        epochs=epochs,
        minimum=rule.minimum,
        patience=rule.patience,
        batch_size=training.batch_size,
        learning_rate=training.learning_rate,
        weight_decay=WEIGHT_DECAY,
        clip=CLIP,
        dropout=DROPOUT,
        width=width or network_for(DATASET).width,
        beta0=training.beta0,
        margin=catalogue.MARGIN,
    )


def training_of(job: Job) -> Training:
    rule = {"minimum_epochs": job.minimum, "patience": job.patience}
    return Training(job.epochs, job.batch_size, job.learning_rate, job.beta0, **rule)


def cells_of(job: Job) -> list[Cell]:
    return [Cell(DATASET, regime, seed) for regime in job.regimes for seed in range(job.seeds)]


def write_job(path: Path, job: Job) -> None:
    """The job as a file, with the data of all its members."""
    members = []
    for cell in cells_of(job):
        one = prepare(cell, training_of(job))
        task, split = one.training.member, one.split
        seen = (task.x, task.y, task.validation_x, task.validation_y)
        matrix = np.asarray(catalogue.capm_generator(task.stats).A)
        members.append(Member(*seen, split.test.features, split.test.labels, matrix))
    F = catalogue.hpg_generator(network_for(DATASET).classes)
    ridges = Ridges(*(np.asarray(getattr(F, name)) for name in Ridges._fields))
    write(path, job, Member(*map(np.stack, zip(*members, strict=True))), ridges)


def products(network: Network, n: int, v: int, batch_size: int) -> list[tuple[int, int, int]]:
    """The matrix products of one epoch, (rows, inner, columns): all of the useful work.

    For each batch the three layers forward, their weight gradients, and the gradients of the two
    hidden activations; then the layers forward on the validation examples.
    """
    layers = [
        (network.inputs, network.width),
        (network.width, network.width),
        (network.width, network.classes),
    ]
    found = []
    for rows in (min(batch_size, n - first) for first in range(0, n, batch_size)):
        found += [(rows, inner, columns) for inner, columns in layers]
        found += [(inner, rows, columns) for inner, columns in layers]
        found += [(rows, columns, inner) for inner, columns in layers[1:]]
    return found + [(v, inner, columns) for inner, columns in layers]


def flop(shapes: list[tuple[int, int, int]]) -> int:
    """Floating-point operations of matrix products."""
    return sum(2 * rows * inner * columns for rows, inner, columns in shapes)
