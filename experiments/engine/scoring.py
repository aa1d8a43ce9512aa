"""From logits to a record: every metric of a run, raw and after temperature scaling.

Calibrated means the softmax of the logits at the temperature fitted on the validation set, with the
prior of `pgeom.calibration`; `plain_` is the fit without it, as in the paper. `last_` is the last
epoch, all else the epoch that was kept. Runs with a canonical link have a file of their own,
`link_scoring`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from experiments.engine.cells import PreparedCell
from experiments.engine.identity import StudyIdentity
from experiments.engine.link_scoring import score_canonical
from experiments.engine.measures import Fields
from experiments.engine.predictions import PRIOR, Predictions, Scores, calibrated, prefix, raw
from experiments.engine.store import LABELS, Record, json_float
from experiments.engine.study import Study
from pgeom.evaluation import calibration
from pgeom.losses.spec import LossSpec
from pgeom.training.trainer import Trained


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
