"""One program trains every member of a study: what differs between members is never compiled."""

import chex
import jax
import pytest

from pgeom.training import early_stopping, program
from pgeom.training.trainer import compile_programs
from tests.training.conftest import make_programs, make_task, trained

OTHERS = [
    make_task(7),
    make_task(8, learning_rate=3e-3),
    make_task(9, planned=7),
    make_task(10, rule=early_stopping.Rule(1, 1)),
    make_task(11, wanted=(True, False, True)),
]


@pytest.fixture
def one_trace(monkeypatch):
    """The epoch may be traced once; chex raises at the second time."""
    member_epoch = program.member_epoch

    def counted(*arguments):
        return chex.assert_max_traces(member_epoch(*arguments), n=1)

    monkeypatch.setattr(program, "member_epoch", counted)
    chex.clear_trace_counter()
    compile_programs.cache_clear()
    yield
    compile_programs.cache_clear()


@pytest.mark.parametrize("batched", [False, True])
def test_the_epoch_is_traced_once_for_all_members(one_trace, batched):
    programs = make_programs(batched=batched)
    results = trained(programs, OTHERS, epochs=3)
    chex.assert_tree_all_finite([one.parameters for one in results])
    assert make_programs(batched=batched) is programs
    compile_programs.cache_clear()  # a second trace is seen
    with pytest.raises(AssertionError, match="traced > 1 times"):
        make_programs(batched=batched)


def test_another_member_rate_coefficient_or_rule_compiles_nothing(programs):
    trained(programs, [make_task(0)])
    compiled = []

    def listener(name, *_, **__):
        if "backend_compile" in name:
            compiled.append(name)

    jax.monitoring.register_event_duration_secs_listener(listener)
    trained(programs, OTHERS, epochs=2)
    assert compiled == []
    jax.jit(lambda x: x + 41)(1.0)  # the listener does hear a compilation
    assert compiled
