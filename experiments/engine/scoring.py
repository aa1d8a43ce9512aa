"""From logits to a record: every metric of a run, raw and after temperature scaling.

Calibrated means the softmax of the logits at the temperature fitted on the validation set, with the
prior of `pgeom.calibration`; `plain_` is the fit without it, as in the paper. `last_` is the last
epoch, all else the epoch that was kept.
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
from experiments.engine.lines import Record
from experiments.engine.measures import Fields
from experiments.engine.records import json_float
from experiments.engine.study import Study
from pgeom.evaluation import calibration, metrics
from pgeom.training.trainer import Trained

PRIOR = 1.0  # pseudo-examples of a uniform label, beside the validation set
Scores = dict[str, Shaped[Array, " L"]]


class Predictions(NamedTuple):
    """The logits of the L runs of a member, and the labels, of its validation and test examples."""

    validation: Float[Array, "L v K"]
    validation_labels: Int[Array, " v"]
    test: Float[Array, "L n K"]
    labels: Int[Array, " n"]


@cache
def _program() -> Callable[[Predictions, Predictions], Scores]:
    """One compiled program for the runs of a member: from the logits of two epochs to metrics."""

    def score(best: Predictions, last: Predictions) -> Scores:
        fit = calibration.fit_temperature(best.validation, best.validation_labels, prior=PRIOR)
        plain = calibration.fit_temperature(best.validation, best.validation_labels)
        last_fit = calibration.fit_temperature(last.validation, last.validation_labels, prior=PRIOR)
        return {
            **_raw(best),
            **_calibration_errors(best),
            "temperature": fit.temperature,
            "temperature_at_bound": fit.at_bound,
            **_calibrated(best, fit.temperature),
            "plain_temperature": plain.temperature,
            **_prefix("plain_", _calibrated(best, plain.temperature)),
            **_prefix("last_", _raw(last)),
            "last_calibrated_nll": _calibrated(last, last_fit.temperature)["calibrated_nll"],
        }

    return jax.jit(score)


def _raw(predictions: Predictions) -> Scores:
    probabilities, labels = jax.nn.softmax(predictions.test), predictions.labels
    return {
        "accuracy": metrics.accuracy(probabilities, labels),
        "balanced_accuracy": metrics.balanced_accuracy(probabilities, labels),
        "nll": metrics.nll(predictions.test, labels),
        "brier": metrics.brier(probabilities, labels),
        "ece": metrics.ece(probabilities, labels),
    }


def _calibration_errors(predictions: Predictions) -> Scores:
    probabilities, labels = jax.nn.softmax(predictions.test), predictions.labels
    return {
        "classwise_ece": metrics.classwise_ece(probabilities, labels),
        "smooth_ece": metrics.smooth_ece(probabilities, labels),
        "debiased_ece": metrics.debiased_ece(probabilities, labels),
    }


def _calibrated(predictions: Predictions, temperature: Float[Array, " L"]) -> Scores:
    scaled, labels = calibration.rescale(predictions.test, temperature), predictions.labels
    return {
        "calibrated_nll": metrics.nll(scaled, labels),
        "calibrated_ece": metrics.ece(jax.nn.softmax(scaled), labels),
    }


def _prefix(word: str, scores: Scores) -> Scores:
    return {f"{word}{name}": values for name, values in scores.items()}


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
    cut, scores = len(prepared.split.validation.labels), _scores(prepared, trained)
    shared = {
        "dataset": study.dataset.name,
        "regime": str(prepared.cell.regime),
        "seed": prepared.cell.seed,
        "realised_noise_rate": round(float(prepared.noise.realised_rate), 6),
        "noise_transition": np.round(prepared.noise.transition, 6).tolist(),
        "realised_validation_noise_rate": round(float(prepared.validation_noise), 6),
    }
    records, arrays = [], {"labels": prepared.split.test.labels}
    identities, parts = identity.runs(prepared.cell), identity.cell_parts(prepared.cell)
    for place in np.flatnonzero(prepared.task.wanted).tolist():
        loss, key = study.losses[place], identities[place]
        records.append(
            {
                "identity": key,
                "made_from": {**parts, "loss": identity.losses[place]},
                **shared,
                "loss": loss.name,
                "label": loss.label,
                **{name: _plain(values[place]) for name, values in scores.items()},
                **_history(trained, place),
                **{name: json_float(values[place]) for name, values in extra_fields.items()},
            }
        )
        arrays[key] = trained.logits[place, cut:]
    return records, arrays


def _scores(prepared: PreparedCell, trained: Trained) -> dict[str, Shaped[np.ndarray, " L"]]:
    split, cut = prepared.split, len(prepared.split.validation.labels)

    def predictions(logits: Float[np.ndarray, "L m K"]) -> Predictions:
        held_out = jnp.asarray(logits[:, :cut]), jnp.asarray(split.validation.labels)
        return Predictions(*held_out, jnp.asarray(logits[:, cut:]), jnp.asarray(split.test.labels))

    scores = _program()(predictions(trained.logits), predictions(trained.last_logits))
    return jax.tree.map(np.asarray, scores)


def _plain(value: np.generic) -> bool | float | None:
    return bool(value) if value.dtype == bool else json_float(value)


def _history(trained: Trained, place: int) -> dict[str, Any]:
    stopped = int(trained.stopped_epoch[place])
    return {
        "best_epoch": int(trained.best_epoch[place]),
        "best_step": int(trained.best_step[place]),
        "stopped_epoch": stopped,
        "diverged_epoch": int(trained.diverged_epoch[place]),
        "validation_nll": [json_float(v) for v in trained.validation_nll[place][:stopped]],
    }
