"""Runs that are not wanted start stopped: they cost nothing and change no other."""

from collections import Counter

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.losses.spec import LossSpec
from tests.training.conftest import (
    EPOCHS,
    make_cell,
    make_programs,
    trained,
)

SOME = np.array([True, False, True])
NONE = np.zeros(3, bool)


def runs(one, chosen):
    """The chosen runs of a cell's results."""
    return jax.tree.map(lambda leaf: leaf[chosen], one)


@pytest.mark.parametrize("batched", [False, True])
def test_the_wanted_runs_are_those_of_a_cell_that_wants_all(programs, batched):
    programs = make_programs(batched=True) if batched else programs
    cells = [make_cell(0), make_cell(1)]
    everything = trained(programs, cells)
    some = trained(programs, [cells[0]._replace(wanted=SOME), cells[1]])
    chex.assert_trees_all_equal(runs(some[0], SOME), runs(everything[0], SOME))
    chex.assert_trees_all_equal(some[1], everything[1])


def test_a_run_that_is_not_wanted_takes_no_step():
    steps = Counter()

    def counted(name):
        def make(stats):
            def loss(logits, labels):
                jax.debug.callback(lambda: steps.update([name]))
                return jnp.sum(logits**2, axis=-1)

            return loss

        return LossSpec(name, name, "Tests", make)

    programs = make_programs(tuple(map(counted, "abc")))
    trained(programs, [make_cell(0, wanted=SOME), make_cell(1, wanted=NONE)])
    jax.effects_barrier()
    assert steps == {"a": EPOCHS * 3, "c": EPOCHS * 3}
    trained(programs, [make_cell(0), make_cell(1, wanted=SOME)])  # the counter does count
    jax.effects_barrier()
    assert steps == {"a": 3 * EPOCHS * 3, "b": EPOCHS * 3, "c": 3 * EPOCHS * 3}
