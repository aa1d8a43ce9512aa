"""Figures: each reads records and logits, and returns the files it wrote."""

from experiments.figures.noise import noise_accuracy, reliability
from experiments.figures.probes import attacks, calibration, natural_corruption
from experiments.figures.studies import ablations, longtail, lr_sensitivity

__all__ = [
    "ablations",
    "attacks",
    "calibration",
    "longtail",
    "lr_sensitivity",
    "natural_corruption",
    "noise_accuracy",
    "reliability",
]
