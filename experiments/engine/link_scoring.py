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
from jaxtyping import Array, Float, Int, Shaped

from experiments.engine.predictions import PRIOR, Predictions, Scores, calibrated, prefix, raw
from pgeom.evaluation.calibration import Temperature
from pgeom.losses.spec import LossSpec
from pgeom.types import ClassStats, Forecast

WIDEST = 8.0  # of |log T|, once the mean range of the logits is 1
INTERVALS = 32  # of a grid
ROUNDS = 4  # each on a grid that is as wide as two intervals of the one before


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


def link_nll(
    link: Forecast, logits: Float[Array, "n K"], labels: Int[Array, " n"]
) -> Float[Array, " n"]:
    """−log p(z)_y of each example, infinite where that probability is zero."""
    return -jnp.log(jnp.take_along_axis(link(logits), labels[:, None], axis=1)[:, 0])


def fit_link_temperature(
    link: Forecast, logits: Float[Array, "n K"], labels: Int[Array, " n"], *, prior: float
) -> Temperature:
    """The temperature with the lowest NLL of any link, p(z/T).

    argmin_T −Σ_i log p(z_i/T)_{y_i} − prior · (1/K) Σ_k log p(m e_1/T)_k, with the pseudo-example
    of `fit_temperature`. A sparse link gives some classes the probability zero: the NLL of an
    example with such a label is infinite, and so is that of every temperature at which there is
    one. Hotter forecasts have fewer zeros. The NLL need not have one minimum only, so a grid is
    searched before the best of it is refined.

    >>> logits = 6.0 * jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> fit = fit_link_temperature(jax.nn.softmax, logits, jnp.array([0, 0, 1, 0]), prior=0.0)
    >>> round(float(fit.temperature * jnp.log(3.0)), 2)
    6.0

    Args:
      link: `link(logits[n, K]) -> p[n, K]`.
      logits: those of the validation set.
      labels: theirs.
      prior: how many examples the pseudo-example counts for.
    """
    ranges = jnp.ptp(logits, axis=1)
    spread = jnp.mean(ranges)
    unit = jnp.where(spread > 0, spread, 1.0)
    pseudo = jnp.median(ranges) * jnp.eye(1, logits.shape[1], dtype=logits.dtype)

    def nll(log_t):
        T = unit * jnp.exp(log_t)
        data = jnp.sum(link_nll(link, logits / T, labels))
        return data - prior * jnp.mean(jnp.log(link(pseudo / T))) if prior else data

    def search(_, state):
        centre, reach = state
        grid = centre + reach * jnp.linspace(-1, 1, INTERVALS + 1)
        values = jax.lax.map(nll, grid)
        best = jnp.argmin(jnp.where(jnp.isnan(values), jnp.inf, values))
        return grid[best], reach * 2 / INTERVALS

    start = jnp.zeros_like(unit), jnp.full_like(unit, WIDEST)
    log_t, _ = jax.lax.fori_loop(0, ROUNDS, search, start)
    at_bound = jnp.abs(log_t) > WIDEST * (1 - 2 / INTERVALS)
    finite = jnp.isfinite(spread)
    return Temperature(jnp.where(finite, unit * jnp.exp(log_t), jnp.nan), at_bound & finite)
