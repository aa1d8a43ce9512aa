"""What is trained: a job, its arrays, and the matrix products that are its useful work."""

import math
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from experiments.engine.cells import prepare
from experiments.engine.study import Study
from pgeom.data import sources
from pgeom.data.dataset import Dataset, from_arrays
from pgeom.data.regimes import Regime
from pgeom.losses.catalogue import GENERAL
from pgeom.models.cnn import CNN
from pgeom.models.model import MLP
from pgeom.training.settings import NEVER, PAPER, Training

# those that need nothing but logits and labels
LOSSES = ("ce", "label_smoothing", "brier", "mae", "focal", "gce", "sce", "apl", "poly1")
REGIMES = ("clean", "symmetric-20", "symmetric-40", "pair-flip-40")
PIXELS, CLASSES = 64, 10  # of the digits
IMAGE, IMAGE_BATCH = (28, 28), 256  # of Fashion-MNIST, with as many classes


class Job(NamedTuple):
    """So many seeds of some regimes with some losses, by the protocol of the paper.

    Attributes:
      seeds: how many.
      epochs: maximum epochs per run.
      regimes: of the labels.
      losses: by name, each of which is trained with every seed of every regime.
      stopping: whether runs stop early. Without it the work is the same for everyone.
      width: of the hidden layers; None for the protocol's.
      images: so many training images of Fashion-MNIST and a convolutional network, instead of the
        digits.
    """

    seeds: int
    epochs: int
    regimes: tuple[str, ...] = REGIMES[:1]
    losses: tuple[str, ...] = LOSSES
    stopping: bool = False
    width: int | None = None
    images: int = 0

    @property
    def runs(self) -> int:
        return len(self.regimes) * self.seeds * len(self.losses)

    @property
    def training(self) -> Training:
        batch_size = IMAGE_BATCH if self.images else Training.batch_size
        return Training(self.epochs, batch_size, stopping=PAPER if self.stopping else NEVER)

    @property
    def model(self) -> MLP | CNN:
        return CNN(IMAGE, CLASSES) if self.images else MLP(PIXELS, CLASSES, self.width)

    @property
    def layers(self) -> tuple[tuple[int, ...], tuple[int, ...], float]:
        """The channels of convolutions, the widths of hidden layers, and the rate of dropout."""
        model = self.model
        if isinstance(model, CNN):
            return model.channels, (model.hidden,), model.dropout
        return (), (model.width, model.width), model.dropout

    @property
    def study(self) -> Study:
        dataset = first_images(self.images) if self.images else sources.load("digits")
        return Study(
            name="benchmark",
            dataset=dataset,
            regimes=tuple(map(Regime.parse, self.regimes)),
            seeds=tuple(range(self.seeds)),
            losses=tuple(GENERAL[loss] for loss in self.losses),
            model=self.model,
            training=self.training,
        )


@cache
def first_images(trained: int) -> Dataset:
    """So many images of Fashion-MNIST that three fifths of them are for training.

    They are in no particular order.
    """
    whole, count = sources.load("fashion-mnist"), math.ceil(trained / 0.6)
    part = {"image_shape": IMAGE, "dtype": np.float32}
    return from_arrays("fashion-mnist", whole.features[:count], whole.labels[:count], **part)


class Arrays(NamedTuple):
    """The data of a cell, or of a stack of them, for those who do not train by pgeom."""

    x: np.ndarray
    y: np.ndarray
    validation_x: np.ndarray
    validation_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def load_cells(job: Job) -> list[Arrays]:
    """The cells of a job, seeds within regimes."""
    study, cells = job.study, []
    for cell in study.cells:
        prepared = prepare(study, cell)
        train, validation, test, *_ = prepared.split
        observed = (train.features, prepared.noise.labels)
        held_out = (validation.features, validation.labels, test.features, test.labels)
        cells.append(Arrays(*observed, *held_out))
    return cells


def load_stacks(job: Job) -> list[Arrays]:
    """The cells of each regime as one stack."""
    cells = load_cells(job)
    stacks = [cells[first : first + job.seeds] for first in range(0, len(cells), job.seeds)]
    return [Arrays(*map(np.stack, zip(*stack, strict=True))) for stack in stacks]


def products(job: Job) -> list[tuple[int, int, int]]:
    """The matrix products of one epoch of a run, (rows, inner, columns): all of the useful work.

    For each batch the three layers forward, their weight gradients, and the gradients of the two
    hidden activations; then the layers forward on the validation examples.
    """
    cell, batch_size = load_cells(job._replace(seeds=1))[0], job.training.batch_size
    n, v, (_, hidden, _) = len(cell.y), len(cell.validation_y), job.layers
    layers, shapes = list(pairwise((PIXELS, *hidden, CLASSES))), []
    for rows in (min(batch_size, n - first) for first in range(0, n, batch_size)):
        shapes += [(rows, inner, columns) for inner, columns in layers]
        shapes += [(inner, rows, columns) for inner, columns in layers]
        shapes += [(rows, columns, inner) for inner, columns in layers[1:]]
    return shapes + [(v, inner, columns) for inner, columns in layers]


def useful_gflop(job: Job) -> float:
    """Of a job of digits, if it is trained to its last epoch."""
    operations = sum(2 * rows * inner * columns for rows, inner, columns in products(job))
    return operations * job.runs * job.epochs / 1e9
