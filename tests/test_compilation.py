"""Options of the compiler: programs that run once stay on one thread."""

import jax
import jax.numpy as jnp
import pytest

from experiments.shell.processes import available_cores
from pgeom.compilation import CPU_OPTIONS, QUICK_OPTIONS, supported

PARTS = "outer_dimension_partitions"  # of a loop, in the text of a compiled program


def compiled(options):
    x = jnp.zeros((2000, 2000))
    return jax.jit(jnp.exp, compiler_options=options).lower(x).compile().as_text()


@pytest.mark.parametrize("options", [CPU_OPTIONS, QUICK_OPTIONS])
def test_no_loop_is_cut_into_parts_for_several_threads(options):
    assert PARTS not in compiled(supported(options))


@pytest.mark.skipif(available_cores() == 1, reason="there is one thread")
def test_loops_would_otherwise_be_cut_into_parts():
    assert PARTS in compiled({})
