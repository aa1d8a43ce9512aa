"""What a run is judged by, and when it stops.

What a run is stopped on: the value of an epoch by which the lowest is the best.

- `nll`: the validation NLL, as in the paper.
- `calibrated-nll`: the validation NLL at the temperature fitted to it. A network may become
  overconfident long before it has learnt to tell the classes apart; that alone then does not end
  its training (Berta et al., 2025, "Rethinking early stopping: refine, then calibrate").
- `accuracy`: minus the validation accuracy; of several equal epochs the first is kept.
- `none`: the latest epoch is the best one, so that nothing is selected and nothing stops.

>>> import jax.numpy as jnp
>>> from pgeom.training.settings import STOP_ON
>>> logits, labels = jnp.array([[9.0, 0.0], [0.0, 9.0], [9.0, 0.0]]), jnp.array([0, 1, 1])
>>> validation = Validation(logits, labels, None, jnp.float32(3.0), jnp.int32(7))
>>> [round(float(CRITERIA[name](validation)), 3) for name in STOP_ON]
[3.0, 0.64, -0.667, -7.0]

Early stopping as a pure state machine.

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

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from pgeom.evaluation.calibration import fit_temperature
from pgeom.losses.likelihood import cross_entropy
from pgeom.training.settings import Rule, StopOn
from pgeom.types import AnyArray


class Validation(NamedTuple):
    """What is known of a run on its validation examples after an epoch."""

    logits: Float[Array, "v K"]
    labels: Int[AnyArray, " v"]
    weights: Float[AnyArray, " v"] | None
    nll: Float[Array, ""]
    epoch: Int[AnyArray, ""]


def _calibrated_nll(validation: Validation) -> Float[Array, ""]:
    logits, labels, weights, _, _ = validation
    labels = jnp.asarray(labels)
    weights = None if weights is None else jnp.asarray(weights)
    fit = fit_temperature(logits, labels, prior=1.0, weights=weights)
    return jnp.average(cross_entropy(logits / fit.temperature, labels), weights=weights)


def _minus_accuracy(validation: Validation) -> Float[Array, ""]:
    right = jnp.argmax(validation.logits, axis=-1) == validation.labels
    accuracy = jnp.average(right.astype(jnp.float32), weights=validation.weights)
    return _while_finite(validation, -accuracy)


def _minus_epoch(validation: Validation) -> Float[Array, ""]:
    return _while_finite(validation, -jnp.asarray(validation.epoch, jnp.float32))


def _while_finite(validation: Validation, value: Float[Array, ""]) -> Float[Array, ""]:
    """The value, or NaN where the run has diverged: such an epoch is never the best."""
    return jnp.where(jnp.isfinite(validation.nll), value, jnp.nan)


CRITERIA: dict[StopOn, Callable[[Validation], Float[Array, ""]]] = {
    "nll": lambda validation: validation.nll,
    "calibrated-nll": _calibrated_nll,
    "accuracy": _minus_accuracy,
    "none": _minus_epoch,
}


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
    state: EarlyStopping, value: Float[Array, ""], rule: Rule
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
