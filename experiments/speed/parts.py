"""The parts of the speed study by name: what is measured for each, and its table."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pandas as pd

from experiments.show.tables import Grid
from experiments.speed import grids, laps, other_grids, other_laps
from experiments.speed.workshop import Sizes, Workshop


class PartOfStudy(NamedTuple):
    """How the rows of a part are measured, the table of them, and whether contenders agree."""

    measure: Callable[[Workshop, Sizes], Iterator[dict]]
    grid: Callable[[pd.DataFrame], Grid]
    agree: Callable[[pd.DataFrame], bool] = lambda rows: True


PARTS = {
    "throughput": PartOfStudy(laps.throughput, grids.throughput, grids.agree),
    "end-to-end": PartOfStudy(laps.end_to_end, grids.end_to_end),
    "images": PartOfStudy(other_laps.images, other_grids.images, grids.agree),
    "growth": PartOfStudy(laps.growth, grids.growth),
    "estimator": PartOfStudy(other_laps.fits, other_grids.fits),
    "scale": PartOfStudy(other_laps.scale, other_grids.scale),
    "kernels": PartOfStudy(laps.kernels, grids.kernels),
    "first": PartOfStudy(laps.first, grids.first),
}
