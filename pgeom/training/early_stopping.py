"""Early stopping as a pure state machine.

Epochs count from one. A strictly lower value is a new best; a run stops after the first epoch
that is at least `minimum` and at least `patience` past the best. A value that is not a number is
never a best, and the first one is remembered.

>>> import jax.numpy as jnp
>>> state = start()
>>> for value in [0.9, 0.5, 0.7]: state, improved = update(state, jnp.float32(value), PAPER)
>>> int(state.epoch), int(state.best_epoch), bool(state.stopped)
(3, 2, False)
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Rule(NamedTuple):
    """When to stop: neither before `minimum` nor before `patience` epochs without a new best."""

    minimum: int
    patience: int


PAPER = Rule(minimum=12, patience=8)  # that both count from epoch one it does not state
NEVER = Rule(minimum=2**31 - 1, patience=2**31 - 1)


class EarlyStopping(NamedTuple):
    """`epoch` the last one seen, `best_epoch` 0 where there is none, `diverged_epoch` likewise."""

    epoch: jax.Array
    best_value: jax.Array
    best_epoch: jax.Array
    diverged_epoch: jax.Array
    stopped: jax.Array


def start() -> EarlyStopping:
    """Before the first epoch."""
    none = jnp.zeros((), jnp.int32)
    return EarlyStopping(none, jnp.asarray(jnp.inf, jnp.float32), none, none, jnp.asarray(False))


def update(state: EarlyStopping, value: jax.Array, rule: Rule) -> tuple[EarlyStopping, jax.Array]:
    """One more epoch, with its validation value; nothing happens to a run that has stopped.

    Returns:
      The state, and whether this epoch is a new best.
    """
    epoch = state.epoch + 1
    improved = ~state.stopped & (value < state.best_value)
    best_epoch = jnp.where(improved, epoch, state.best_epoch)
    first_bad = ~jnp.isfinite(value) & (state.diverged_epoch == 0)
    after = EarlyStopping(
        epoch=epoch,
        best_value=jnp.where(improved, value, state.best_value),
        best_epoch=best_epoch,
        diverged_epoch=jnp.where(first_bad, epoch, state.diverged_epoch),
        stopped=(epoch >= rule.minimum) & (epoch - best_epoch >= rule.patience),
    )
    return jax.tree.map(lambda old, new: jnp.where(state.stopped, old, new), state, after), improved
