"""From logits to a record: every metric of a run, raw and after temperature scaling.

Calibrated means the softmax of the logits at the temperature fitted on the validation set, with the
prior of `pgeom.calibration`; `plain_` is the fit without it, as in the paper. `last_` is the last
epoch, all else the epoch that was kept.

The logits by which a run with a canonical link is scored and stored are log p(z), whose softmax is
p(z), so that tables and figures need not know the link. A sparse link may give a test label the
probability zero: the NLL is then infinite, and null in the record; `zero_rate` says how often.
Calibrated then means p(z/T).
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from experiments.engine.cells import PreparedCell
from experiments.engine.identity import StudyIdentity
from experiments.engine.measures import Fields
from experiments.engine.store import LABELS, Record, json_float
from experiments.engine.study import Study
from pgeom.evaluation import calibration, metrics
from pgeom.evaluation.calibration import Temperature
from pgeom.losses.spec import LossSpec
from pgeom.training.trainer import Trained
from pgeom.types import ClassStats, Forecast

PRIOR = 1.0  # pseudo-examples of a uniform label, beside the validation set
Scores = dict[str, Shaped[Array, " L"]]


class Predictions(NamedTuple):
    """The logits of the L runs of a member, and the labels, of its validation and test examples."""

    validation: Float[Array, "L v K"]
    validation_labels: Int[Array, " v"]
    test: Float[Array, "L n K"]
    labels: Int[Array, " n"]


def raw(predictions: Predictions, *, brief: bool = False) -> Scores:
    """The metrics of the test forecasts; brief leaves out all calibration errors but one."""
    probabilities, labels = jax.nn.softmax(predictions.test), predictions.labels
    scores = {
        "accuracy": metrics.accuracy(probabilities, labels),
        "balanced_accuracy": metrics.balanced_accuracy(probabilities, labels),
        "nll": metrics.nll(predictions.test, labels),
        "brier": metrics.brier(probabilities, labels),
        "ece": metrics.ece(probabilities, labels),
    }
    if brief:
        return scores
    return {
        **scores,
        "classwise_ece": metrics.classwise_ece(probabilities, labels),
        "smooth_ece": metrics.smooth_ece(probabilities, labels),
        "debiased_ece": metrics.debiased_ece(probabilities, labels),
    }


def calibrated(scaled: Predictions) -> Scores:
    """The metrics of the test forecasts at a fitted temperature."""
    return {
        "calibrated_nll": metrics.nll(scaled.test, scaled.labels),
        "calibrated_ece": metrics.ece(jax.nn.softmax(scaled.test), scaled.labels),
    }


def prefix(word: str, scores: Scores) -> Scores:
    """The scores under longer names."""
    return {f"{word}{name}": values for name, values in scores.items()}


WIDEST = 8.0  # of |log T|, once the mean range of the logits is 1
INTERVALS = 32  # of a grid
ROUNDS = 4  # each on a grid that is as wide as two intervals of the one before


def score_canonical(
    loss: LossSpec, stats: ClassStats, best: Predictions, last: Predictions
) -> tuple[dict[str, np.generic], Float[np.ndarray, "n K"]]:
    """The scores of one run from its logits `[1, …]` of two epochs, and log p(z) of the test."""
    scores, log_p = _link_program(loss)(stats, best, last)
    return {name: np.asarray(values)[0] for name, values in scores.items()}, np.asarray(log_p)[0]


@cache
def _link_program(loss: LossSpec) -> Callable:
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


@cache
def _program() -> Callable[[Predictions, Predictions], Scores]:
    """One compiled program for every run of a size: from the logits of two epochs to metrics."""

    def score(best: Predictions, last: Predictions) -> Scores:
        fit = calibration.fit_temperature(best.validation, best.validation_labels, prior=PRIOR)
        plain = calibration.fit_temperature(best.validation, best.validation_labels)
        last_fit = calibration.fit_temperature(last.validation, last.validation_labels, prior=PRIOR)
        return {
            **raw(best),
            "temperature": fit.temperature,
            "temperature_at_bound": fit.at_bound,
            **_calibrated(best, fit.temperature),
            "plain_temperature": plain.temperature,
            **prefix("plain_", _calibrated(best, plain.temperature)),
            **prefix("last_", raw(last, brief=True)),
            "last_calibrated_nll": _calibrated(last, last_fit.temperature)["calibrated_nll"],
        }

    return jax.jit(score)


def _calibrated(predictions: Predictions, temperature: Float[Array, " L"]) -> Scores:
    return calibrated(predictions._replace(test=calibration.rescale(predictions.test, temperature)))


def make_records(
    study: Study,
    identity: StudyIdentity,
    prepared: PreparedCell,
    trained: Trained,
    extra_fields: Fields,
) -> tuple[list[Record], dict[str, np.ndarray]]:
    """The records of a cell's wanted runs, and its arrays: logits by identity, test labels.

    Args:
      study: to which the cell belongs.
      identity: of the study.
      prepared: the cell and its data.
      trained: all L runs of the cell.
      extra_fields: of the study's measure.
    """
    cut, wanted = len(prepared.split.validation.labels), np.flatnonzero(prepared.data.wanted)
    scores = _scores(prepared, trained, wanted.tolist())
    shared = {
        "dataset": study.dataset.name,
        "regime": str(prepared.cell.regime),
        "seed": prepared.cell.seed,
        "realised_noise_rate": round(float(prepared.noise.realised_rate), 6),
        "noise_transition": np.round(prepared.noise.transition, 6).tolist(),
        "realised_validation_noise_rate": round(float(prepared.validation_noise), 6),
    }
    records, arrays = [], {LABELS: prepared.split.test.labels}
    identities, parts = identity.runs(prepared.cell), identity.cell_parts(prepared.cell)
    for place, own in scores.items():
        loss, key = study.losses[place], identities[place]
        records.append(
            {
                "identity": key,
                "made_from": {**parts, "loss": identity.losses[place]},
                **shared,
                "loss": loss.name,
                "label": loss.label,
                **{name: _plain(values[0]) for name, values in own.items()},
                **_history(trained, place),
                **{name: json_float(values[place]) for name, values in extra_fields.items()},
            }
        )
        arrays[key] = trained.logits[place, cut:]
        if loss.link == "canonical":
            fields, arrays[key] = _canonical(loss, prepared, trained, place)
            fields["validation_loss"] = records[-1].pop("validation_nll")
            records[-1] |= fields
    return records, arrays


def _scores(
    prepared: PreparedCell, trained: Trained, places: list[int]
) -> dict[int, dict[str, Shaped[np.ndarray, "1"]]]:
    """The metrics of some runs.

    Each run has a call of its own: computed together, the last digits of one could depend on how
    many others there are, and a run that is replayed alone would differ from its record.
    """
    return jax.device_get(
        {place: _program()(*_epochs(prepared, trained, place)) for place in places}
    )


def _canonical(
    loss: LossSpec, prepared: PreparedCell, trained: Trained, place: int
) -> tuple[dict[str, Any], Float[np.ndarray, "n K"]]:
    """The fields of a run with a canonical link that are not those of softmax, and its log p."""
    epochs = _epochs(prepared, trained, place)
    scores, log_p = score_canonical(loss, prepared.data.arrays.stats, *epochs)
    return {"link": loss.link, **{name: _plain(value) for name, value in scores.items()}}, log_p


def _epochs(
    prepared: PreparedCell, trained: Trained, place: int
) -> tuple[Predictions, Predictions]:
    """What a run predicts after its best epoch, and after its last one."""
    split, cut = prepared.split, len(prepared.split.validation.labels)
    best, last = (z[place : place + 1] for z in (trained.logits, trained.last_logits))

    def predictions(logits: Float[np.ndarray, "1 m K"]) -> Predictions:
        held_out = jnp.asarray(logits[:, :cut]), jnp.asarray(split.validation.labels)
        return Predictions(*held_out, jnp.asarray(logits[:, cut:]), jnp.asarray(split.test.labels))

    return predictions(best), predictions(last)


def _plain(value: np.generic) -> bool | float | None:
    return bool(value) if value.dtype == bool else json_float(value)


def _history(trained: Trained, place: int) -> dict[str, Any]:
    stopped = int(trained.stopped_epoch[place])
    return {
        "best_epoch": int(trained.best_epoch[place]),
        "best_step": int(trained.best_step[place]),
        "stopped_epoch": stopped,
        "diverged_epoch": int(trained.diverged_epoch[place]),
        "validation_nll": [json_float(v) for v in trained.validation_loss[place][:stopped]],
    }
