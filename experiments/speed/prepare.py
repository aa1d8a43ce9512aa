"""The jobs: their constants, their data, and the matrix products that are the useful work.

Nearly everything is about the digits job. The one of images is a convolutional network and the
cross-entropy on some of Fashion-MNIST.
"""

import math
from functools import cache
from pathlib import Path

import numpy as np

from experiments.engine.cells import prepare
from experiments.engine.study import Study
from experiments.speed.job import Job, Member, Ridges, write
from pgeom.data import sources
from pgeom.data.dataset import Dataset, from_arrays
from pgeom.data.regimes import Regime
from pgeom.losses import structured
from pgeom.losses.catalogue import GENERAL, MARGIN
from pgeom.models.cnn import CNN
from pgeom.models.model import MLP
from pgeom.training.settings import NEVER, PAPER, Rule, Training

DATASET, FASHION = "digits", "fashion-mnist"
IMAGE, IMAGE_BATCH = (28, 28), 256
ALL_REGIMES = ("clean", "symmetric-20", "symmetric-40", "pair-flip-40")
LOSSES = tuple(GENERAL)


def digits_model(width: int | None = None) -> MLP:
    """The network of the job, by default as wide as the protocol has it."""
    digits = sources.load(DATASET)
    return MLP(digits.features.shape[1], digits.num_classes, width)


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
    rule = PAPER if stopping else NEVER
    training, model = Training(epochs), digits_model(width)
    return Job(
        regimes=regimes,
        seeds=seeds,
        losses=losses,
        epochs=epochs,
        minimum=int(rule.minimum),
        patience=int(rule.patience),
        batch_size=training.batch_size,
        learning_rate=training.learning_rate,
        weight_decay=training.optimiser.weight_decay,
        clip=training.optimiser.clip,
        dropout=model.dropout,
        width=model.width,
        beta0=GENERAL["apms"].constants["beta0"],
        margin=MARGIN,
    )


def images_job(trained: int, seeds: int, epochs: int) -> Job:
    """Cross-entropy on so many training images, three fifths of those that there are."""
    job = digits_job(ALL_REGIMES[:1], seeds, epochs, losses=("ce",))
    model = CNN(IMAGE, 10)
    network = {"dropout": model.dropout, "width": model.hidden, "channels": model.channels}
    return job._replace(images=math.ceil(trained / 0.6), batch_size=IMAGE_BATCH, **network)


@cache
def some_images(count: int) -> Dataset:
    """The first images of Fashion-MNIST, which are in no particular order."""
    whole = sources.load(FASHION)
    part = {"image_shape": whole.image_shape, "dtype": np.float32}
    return from_arrays(FASHION, whole.features[:count], whole.labels[:count], **part)


def make_study(job: Job) -> Study:
    """The job as a study."""
    rule = Rule(job.minimum, job.patience)
    dataset = some_images(job.images) if job.images else sources.load(DATASET)
    return Study(
        name="speed",
        dataset=dataset,
        regimes=tuple(map(Regime.parse, job.regimes)),
        seeds=tuple(range(job.seeds)),
        losses=tuple(GENERAL[loss] for loss in job.losses),
        model=CNN(IMAGE, dataset.num_classes) if job.images else digits_model(job.width),
        training=Training(job.epochs, job.batch_size, job.learning_rate, rule),
    )


def write_job(path: Path, job: Job) -> None:
    """The job as a file, with the data of all its members."""
    study, members = make_study(job), []
    for cell in study.cells:
        prepared = prepare(study, cell)
        train, validation, test, *_ = prepared.split
        matrix = np.asarray(structured.capm_generator(prepared.data.arrays.stats).A)
        observed = (train.features, prepared.noise.labels)
        held_out = (validation.features, validation.labels, test.features, test.labels)
        members.append(Member(*observed, *held_out, matrix))
    F = structured.hpg_generator(study.model.classes)
    ridges = Ridges(*(np.asarray(getattr(F, name)) for name in Ridges._fields))
    write(path, job, Member(*map(np.stack, zip(*members, strict=True))), ridges)


def products(model: MLP, n: int, v: int, batch_size: int) -> list[tuple[int, int, int]]:
    """The matrix products of one epoch, (rows, inner, columns): all of the useful work.

    For each batch the three layers forward, their weight gradients, and the gradients of the two
    hidden activations; then the layers forward on the validation examples.
    """
    layers = [
        (model.inputs, model.width),
        (model.width, model.width),
        (model.width, model.classes),
    ]
    shapes = []
    for rows in (min(batch_size, n - first) for first in range(0, n, batch_size)):
        shapes += [(rows, inner, columns) for inner, columns in layers]
        shapes += [(inner, rows, columns) for inner, columns in layers]
        shapes += [(rows, columns, inner) for inner, columns in layers[1:]]
    return shapes + [(v, inner, columns) for inner, columns in layers]


def flop(shapes: list[tuple[int, int, int]]) -> int:
    """Floating-point operations of matrix products."""
    return sum(2 * rows * inner * columns for rows, inner, columns in shapes)
