"""From logits to a record: every metric of a run, raw and after temperature scaling."""

from collections.abc import Callable
from functools import cache
from typing import Any

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


@cache
def _program() -> Callable[..., dict[str, Shaped[Array, " L"]]]:
    """One compiled program for the runs of a member: logits to metrics."""

    def score(
        validation: Float[Array, "L v K"],
        validation_labels: Int[Array, " v"],
        test: Float[Array, "L n K"],
        labels: Int[Array, " n"],
    ) -> dict[str, Shaped[Array, " L"]]:
        probabilities = jax.nn.softmax(test)
        fit = calibration.fit_temperature(validation, validation_labels)
        calibrated = calibration.rescale(test, fit.temperature)
        return {
            "accuracy": metrics.accuracy(probabilities, labels),
            "balanced_accuracy": metrics.balanced_accuracy(probabilities, labels),
            "nll": metrics.nll(test, labels),
            "brier": metrics.brier(probabilities, labels),
            "ece": metrics.ece(probabilities, labels),
            "temperature": fit.temperature,
            "temperature_at_bound": fit.at_bound,
            "calibrated_nll": metrics.nll(calibrated, labels),
            "calibrated_ece": metrics.ece(jax.nn.softmax(calibrated), labels),
        }

    return jax.jit(score)


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
    cut = len(prepared.split.validation.labels)
    scores = _scores(prepared, jnp.asarray(trained.logits), cut)
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


def _scores(
    prepared: PreparedCell, logits: Float[Array, "L m K"], cut: int
) -> dict[str, Shaped[np.ndarray, " L"]]:
    split = prepared.split
    scores = _program()(
        logits[:, :cut], split.validation.labels, logits[:, cut:], split.test.labels
    )
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
