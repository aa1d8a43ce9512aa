"""What is measured beside the digits job: images, the estimator, and the cost of many seeds."""

from collections.abc import Iterator

from experiments.shell.processes import available_cores
from experiments.speed import estimator
from experiments.speed.prepare import images_job
from experiments.speed.scale_model import Part, fit_host_loop, predict
from experiments.speed.workshop import (
    CHANNELS_FIRST,
    CHANNELS_LAST,
    FLAX,
    OURS,
    Sizes,
    Workshop,
)

IMAGES = 10_000  # to train on
REPEATS = 3
MESH = 8  # simulated devices
PART_SEEDS = 2  # of every cell, by which the model of costs is measured


def images(workshop: Workshop, sizes: Sizes, trained: int = IMAGES) -> Iterator[dict]:
    """Rows of laps of a convolutional network, one seed per core."""
    job = images_job(trained, available_cores(), max(1, sizes.epochs // 5))
    for repeat in range(REPEATS):
        for contender in (CHANNELS_FIRST, CHANNELS_LAST, OURS, FLAX):
            lap, _ = workshop.lap(contender, job)
            yield {
                "contender": contender,
                "repeat": repeat,
                "images_per_second": trained * job.epochs * job.runs / lap.seconds,
                "compiling": lap.compiling,
                "nll": lap.nll,
                "images": trained,
                "epochs": job.epochs,
            }


def fits(workshop: Workshop, sizes: Sizes) -> Iterator[dict]:
    """Rows of first and second fits, each pair in a process of its own."""
    for _ in range(REPEATS):
        for dataset in estimator.DATASETS:
            for name, way in estimator.WAYS.items():
                workshop.say(f"{name} on {dataset}")
                yield workshop.rows("estimator", dataset, way, sizes.epochs)


def scale(workshop: Workshop, sizes: Sizes) -> Iterator[dict]:
    """Rows of the parts of the model of costs, and of a run by which it is checked."""
    workshop.say(f"the parts of the paper's cells, with {PART_SEEDS} seeds")
    parts = workshop.rows("scale", "parts", PART_SEEDS, cache="parts")
    yield from ({"kind": "part", **row} for row in parts)
    workshop.say(f"the host loop on up to {MESH} simulated devices")
    mesh = workshop.rows("scale", "mesh", MESH)
    yield from ({"kind": "mesh", **row} for row in mesh)
    workshop.say(f"{sizes.check_seeds} seeds of the paper's cells")
    # with a cache of its own, so that it compiles, as the parts did
    checked = workshop.rows("scale", "check", sizes.check_seeds, cache="check")
    loop = fit_host_loop([row["devices"] for row in mesh], [row["call"] for row in mesh])
    cost = predict([Part(**row) for row in parts], loop, sizes.check_seeds, checked["devices"])
    yield {"kind": "check", **checked, "predicted": cost.total}
