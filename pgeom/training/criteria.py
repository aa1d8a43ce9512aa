"""What a run is stopped on: the value of an epoch by which the lowest is the best.

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
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pgeom.geometry.scaling import fit_temperature
from pgeom.losses.likelihood import cross_entropy
from pgeom.training.settings import StopOn
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
    fit = fit_temperature(logits, labels, weights=weights)
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
