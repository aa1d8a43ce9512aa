"""From logits to a record: every metric of a run, raw and after temperature scaling."""

from collections.abc import Mapping
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from experiments.cells import PreparedCell
from experiments.records import short
from pgeom.evaluation import calibration, metrics
from pgeom.training.trainer import Trained


@cache
def _program():
    """One compiled program for the runs of a member: logits `[L, n, K]` to metrics `[L]`."""

    def score(validation, validation_labels, test, labels):
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


def records_of(
    prepared: PreparedCell, losses: tuple[str, ...], trained: Trained, own: Mapping
) -> tuple[list[dict], dict[str, np.ndarray]]:
    """The records of a cell's runs, and its arrays: test logits by loss, and the test labels.

    `own` are the experiment's own fields, a value for each run.
    """
    split = prepared.split
    cut = len(split.validation.labels)
    logits = jnp.asarray(trained.logits)
    scores = _program()(
        logits[:, :cut], split.validation.labels, logits[:, cut:], split.test.labels
    )
    scores = jax.tree.map(np.asarray, scores)
    shared = {
        **prepared.cell._asdict(),
        "realised_noise_rate": round(float(prepared.noise.realised_rate), 6),
        "noise_transition": np.round(prepared.noise.transition, 6).tolist(),
    }
    runs = []
    for place, loss in enumerate(losses):
        values = {name: value[place] for name, value in scores.items()}
        stopped = int(trained.stopped_epoch[place])
        at_bound = bool(values.pop("temperature_at_bound"))
        run = {
            **shared,
            "loss": loss,
            **{name: short(value) for name, value in values.items()},
            "temperature_at_bound": at_bound,
            "best_epoch": int(trained.best_epoch[place]),
            "best_step": int(trained.best_step[place]),
            "stopped_epoch": stopped,
            "diverged_epoch": int(trained.diverged_epoch[place]),
            **{field: short(of_runs[place]) for field, of_runs in own.items()},
            "validation_nll": [short(v) for v in trained.validation_nll[place][:stopped]],
        }
        runs.append(run)
    arrays = {loss: trained.logits[place, cut:] for place, loss in enumerate(losses)}
    return runs, {**arrays, "labels": split.test.labels}
