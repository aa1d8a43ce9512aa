"""The metrics of a run with a canonical link: as those of softmax, by the forecast p(z).

The logits by which such a run is scored and stored are log p(z), whose softmax is p(z), so that
tables and figures need not know the link. A sparse link may give a test label the probability zero:
the NLL is then infinite, and null in the record; `zero_rate` says how often. Calibrated means
p(z/T).
"""

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from experiments.engine.predictions import PRIOR, Predictions, Scores, calibrated, prefix, raw
from pgeom.evaluation.calibration import fit_link_temperature
from pgeom.losses.spec import LossSpec
from pgeom.types import ClassStats


def score_canonical(
    loss: LossSpec, stats: ClassStats, best: Predictions, last: Predictions
) -> tuple[dict[str, np.generic], Float[np.ndarray, "n K"]]:
    """The scores of one run from its logits `[1, …]` of two epochs, and log p(z) of the test."""
    scores, log_p = _program(loss)(stats, best, last)
    return {name: np.asarray(values)[0] for name, values in scores.items()}, np.asarray(log_p)[0]


@cache
def _program(loss: LossSpec) -> Callable:
    """One compiled program for the runs of a loss."""

    def score(stats: ClassStats, best: Predictions, last: Predictions):
        link = loss.forecast(stats)

        def forecast(predictions: Predictions, T=1.0) -> Predictions:
            return predictions._replace(test=jnp.log(link(predictions.test / T)))

        def fit(predictions: Predictions, prior: float):
            labels = jnp.asarray(predictions.validation_labels)
            return fit_link_temperature(link, predictions.validation[0], labels, prior=prior)

        fitted, plain, last_fit = fit(best, PRIOR), fit(best, 0.0), fit(last, PRIOR)
        log_p = forecast(best)
        scores: Scores = {
            **raw(log_p),
            "temperature": fitted.temperature[None],
            "temperature_at_bound": fitted.at_bound[None],
            **calibrated(forecast(best, fitted.temperature)),
            "plain_temperature": plain.temperature[None],
            **prefix("plain_", calibrated(forecast(best, plain.temperature))),
            **prefix("last_", raw(forecast(last), brief=True)),
            "last_calibrated_nll": calibrated(forecast(last, last_fit.temperature))[
                "calibrated_nll"
            ],
            "zero_rate": _zero_rate(log_p),
        }
        return scores, log_p.test

    return jax.jit(score)


def _zero_rate(log_p: Predictions) -> Shaped[Array, " 1"]:
    """The share of the test examples whose label has the probability zero."""
    labels = jnp.asarray(log_p.labels)[None, :, None]
    own = jnp.take_along_axis(log_p.test, labels, axis=2)
    return jnp.mean(jnp.where(own == -jnp.inf, 1.0, 0.0), axis=(1, 2))
