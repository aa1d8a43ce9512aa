"""One program trains every cell of a study: what differs between cells is never compiled."""

import chex
import jax
import pytest

from pgeom.training import early_stopping, program
from pgeom.training.trainer import compile_programs
from tests.training.conftest import make_cell, make_programs, trained

OTHERS = [
    make_cell(7),
    make_cell(8, learning_rate=3e-3),
    make_cell(9, planned=7),
    make_cell(10, rule=early_stopping.Rule(1, 1)),
    make_cell(11, wanted=(True, False, True)),
]


@pytest.fixture
def one_trace(monkeypatch):
    """The epoch may be traced once; chex raises at the second time."""
    monkeypatch.setattr(program, "run_epoch", chex.assert_max_traces(program.run_epoch, n=1))
    chex.clear_trace_counter()
    compile_programs.cache_clear()
    yield
    compile_programs.cache_clear()


@pytest.mark.parametrize("batched", [False, True])
def test_the_epoch_is_traced_once_for_all_cells(one_trace, batched):
    programs = make_programs(batched=batched)
    results = trained(programs, OTHERS, epochs=3)
    chex.assert_tree_all_finite([one.parameters for one in results])
    assert make_programs(batched=batched) is programs
    compile_programs.cache_clear()  # a second trace is seen
    with pytest.raises(AssertionError, match="traced > 1 times"):
        make_programs(batched=batched)


def test_another_rate_coefficient_or_rule_compiles_nothing(programs):
    trained(programs, [make_cell(0)])
    compiled = []

    def listener(name, *_, **__):
        if "backend_compile" in name:
            compiled.append(name)

    jax.monitoring.register_event_duration_secs_listener(listener)
    trained(programs, OTHERS, epochs=2)
    assert compiled == []
    jax.jit(lambda x: x + 41)(1.0)  # the listener does hear a compilation
    assert compiled
