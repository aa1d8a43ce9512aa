"""The state machine equals a plain loop with the protocol's rule, on every kind of curve."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.training import early_stopping
from pgeom.training.settings import NEVER, PAPER

nan = float("nan")
FALLING = list(np.linspace(1, 0.1, 45))
CURVES = {
    "falls to the end": FALLING,
    "best at four is one too late for twelve": [0.9, 0.5, 0.4, 0.2] + [0.4] * 41,
    "best at five": [0.9, 0.5, 0.4, 0.3, 0.2] + [0.4] * 40,
    "ties do not count": [0.5] * 45,
    "a late minimum is never seen": [0.5] * 20 + [0.1] * 25,
    "steps down every seventh": [1 / (1 + epoch // 7) for epoch in range(45)],
    "nan from the start": [nan] * 45,
    "numbers, then nan": FALLING[:5] + [nan] * 40,
}


def plain_loop(curve, minimum, patience):
    """The rule as the protocol words it: (best epoch, last epoch, first epoch not finite)."""
    best, best_epoch, diverged = float("inf"), 0, 0
    for epoch, value in enumerate(curve, start=1):
        if not np.isfinite(value) and diverged == 0:
            diverged = epoch
        if value < best:
            best, best_epoch = value, epoch
        if epoch >= minimum and epoch - best_epoch >= patience:
            break
    return best_epoch, epoch, diverged


@jax.jit
def machine(curve, rule):
    def step(state, value):
        return early_stopping.update(state, value, rule)

    return jax.lax.scan(step, early_stopping.start(), curve)


@pytest.mark.parametrize("rule", [PAPER, NEVER, early_stopping.Rule(3, 2)])
@pytest.mark.parametrize("name", CURVES)
def test_equals_the_plain_loop(name, rule):
    curve = CURVES[name]
    state, improved = machine(jnp.asarray(curve, jnp.float32), rule)
    found = tuple(int(v) for v in (state.best_epoch, state.epoch, state.diverged_epoch))
    assert found == plain_loop(curve, *rule)
    last_improvement = np.max(np.where(improved, np.arange(1, 46), 0))
    assert last_improvement == state.best_epoch


def test_the_papers_rule_is_the_protocols():
    assert PAPER == (12, 8)
    assert plain_loop(CURVES["best at four is one too late for twelve"], *PAPER)[:2] == (4, 12)
    assert plain_loop(CURVES["best at five"], *PAPER)[:2] == (5, 13)
