"""The metrics of forecasts, from logits whose softmax they are."""

from typing import NamedTuple

import jax
from jaxtyping import Array, Float, Int, Shaped

from pgeom.evaluation import metrics

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
