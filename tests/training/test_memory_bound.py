"""The bound on the memory that a cell takes."""

from dataclasses import replace

import jax
import numpy as np

from pgeom.training.trainer import memory_bounds, place
from tests.training.conftest import MODEL, make_cell, make_programs, make_settings


def bound(settings):
    return memory_bounds(settings)[1]


def resized(settings, **sizes):
    """The settings for cells that have other numbers of rows."""
    rows = {name: jax.ShapeDtypeStruct((size,), np.int32) for name, size in sizes.items()}
    return replace(settings, cell=settings.cell._replace(**rows))


def test_the_memory_of_a_cell_covers_its_arrays_and_grows_with_them():
    settings = make_settings(devices=1)
    arrays, runs, _ = place([make_cell(0)], make_programs(devices=1))
    held = sum(leaf.nbytes for leaf in jax.tree.leaves((arrays, runs)))
    least = bound(settings)
    assert least > 2 * held + 4 * 16 * MODEL.activations
    assert bound(resized(settings, rows=80, y=80)) > least
    assert bound(make_settings(("ce",), devices=1)) < least
    # of a larger batch: what goes into and out of a layer, and the gradients of both
    assert bound(make_settings(devices=1, batch=32)) - least == 16 * 4 * 4 * MODEL.activations
    # of a hundred more predictions: the rows, twice, and what goes into and out of a layer
    further = bound(resized(settings, inputs=20 + 100)) - least
    assert further >= 100 * 4 * (2 * MODEL.activations + 2)
    several = make_settings(devices=2, cells_per_device=5)
    assert bound(several) == least  # it is of one cell
