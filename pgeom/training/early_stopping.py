"""What a run is judged by after an epoch, and a pure state machine that stops it.

Epochs count from one. A strictly lower value is a new best; a run stops after the first epoch
that is at least `minimum` and at least `patience` past the best. A value that is not a number is
never a best, and the first one is remembered.

>>> import jax.numpy as jnp
>>> from pgeom.training.settings import PAPER
>>> state = start()
>>> for value in [0.9, 0.5, 0.7]: state, improved = update(state, jnp.float32(value), PAPER)
>>> int(state.epoch), int(state.best_epoch), bool(state.stopped)
(3, 2, False)
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from pgeom.evaluation.calibration import fit_temperature
from pgeom.losses.likelihood import cross_entropy
from pgeom.training.settings import Rule, StopOn
from pgeom.types import AnyArray, Scalar


class EarlyStopping(NamedTuple):
    """The state of a run, or of a stack of them.

    `epoch` is the last one seen; `best_epoch` is 0 where there is none, `diverged_epoch` likewise.
    """

    epoch: Int[AnyArray, "*stack"]
    best_value: Float[AnyArray, "*stack"]
    best_epoch: Int[AnyArray, "*stack"]
    diverged_epoch: Int[AnyArray, "*stack"]
    stopped: Bool[AnyArray, "*stack"]


def start() -> EarlyStopping:
    """Before the first epoch."""
    none = jnp.zeros((), jnp.int32)
    return EarlyStopping(none, jnp.asarray(jnp.inf, jnp.float32), none, none, jnp.asarray(False))


def update(
    state: EarlyStopping, value: Scalar, rule: Rule
) -> tuple[EarlyStopping, Bool[Array, ""]]:
    """One more epoch, with its validation value; nothing happens to a run that has stopped.

    Returns:
      The state, and whether this epoch is a new best.
    """
    epoch = state.epoch + 1
    improved = (value < state.best_value) & ~state.stopped
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


def epoch_value(
    stop_on: StopOn,
    logits: Float[Array, "v K"],
    labels: Int[AnyArray, " v"],
    weights: Float[AnyArray, " v"],
    loss: Scalar,
    epoch: Int[AnyArray, ""],
) -> Scalar:
    """The value of an epoch, by which the lowest is the best; NaN of one that has diverged.

    >>> logits, labels = jnp.array([[9.0, 0.0], [0.0, 9.0], [9.0, 0.0]]), jnp.array([0, 1, 1])
    >>> epoch_value("accuracy", logits, labels, jnp.ones(3), jnp.float32(3.0), jnp.int32(7))
    Array(-0.6666667, dtype=float32)

    Args:
      stop_on: a criterion, as `pgeom.training.settings.StopOn` has them.
      logits: of the validation examples.
      labels: theirs.
      weights: how much each counts.
      loss: their mean loss, which is finite unless the run has diverged.
      epoch: its number.
    """
    labels, weights = jnp.asarray(labels), jnp.asarray(weights)
    if stop_on == "nll":
        return loss
    if stop_on == "calibrated-nll":
        fit = fit_temperature(logits, labels, prior=1.0, weights=weights)
        return jnp.average(cross_entropy(logits / fit.temperature, labels), weights=weights)
    value = jnp.asarray(epoch, jnp.float32)
    if stop_on == "accuracy":
        right = jnp.argmax(logits, axis=-1) == labels
        value = jnp.average(right.astype(jnp.float32), weights=weights)
    return jnp.where(jnp.isfinite(loss), -value, jnp.nan)
