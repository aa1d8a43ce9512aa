"""One program trains every cell of a study: what differs between cells is never compiled."""

import jax

from pgeom.training import early_stopping
from tests.training.conftest import make_cell, trained

OTHERS = [
    make_cell(7),
    make_cell(8, learning_rate=3e-3),
    make_cell(9, planned=7),
    make_cell(10, rule=early_stopping.Rule(1, 1)),
    make_cell(11, wanted=(True, False, True)),
]


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
