"""Cells on the devices of a mesh."""

import chex
import jax
import numpy as np

from pgeom.training import trainer
from tests.training.conftest import FEATURES, make_cell, make_programs


def test_cells_are_filled_up_with_stopped_copies_of_the_last():
    programs = make_programs(cells_per_device=2)
    cells = [make_cell(0), make_cell(1, wanted=(False, True, True))]
    arrays, runs, orders = trainer.place(cells, programs)
    for place, cell in enumerate([*cells, cells[1], cells[1]]):
        chex.assert_trees_all_equal(
            jax.tree.map(lambda leaf, place=place: np.asarray(leaf)[place], arrays), cell.arrays
        )
        np.testing.assert_array_equal(orders(3)[place], cell.order(3))
        for parameters in (runs.parameters, runs.best):
            np.testing.assert_array_equal(parameters[place], np.stack([cell.initial] * 3))
    idle = [[True] * 3] * 2
    assert runs.stopping.stopped.tolist() == [[False] * 3, [True, False, False], *idle]


def test_what_is_placed_has_the_shapes_that_are_compiled_for(programs):
    features = trainer.share_features(FEATURES, programs.sharding)
    arrays, runs, orders = trainer.place([make_cell(0)], programs)
    compiled = trainer.argument_shapes(programs.settings, programs.sharding)
    chex.assert_trees_all_equal_shapes_and_dtypes((features, arrays, orders(1), runs), compiled)
