"""Figures: each reads records and logits, and returns the files it wrote."""

from experiments.figures.diagnostics import calibration_gradients, longtail_details, optimization
from experiments.figures.noise import noise_accuracy, reliability
from experiments.figures.noise_details import noise_confusions, noise_nll_confidence
from experiments.figures.overview import clean_ranks, metric_heatmaps
from experiments.figures.probes import attacks, calibration, natural_corruption
from experiments.figures.studies import ablations, longtail, lr_sensitivity
from experiments.figures.style import FAMILIES, LOOKS

__all__ = [
    "FAMILIES",
    "LOOKS",
    "ablations",
    "attacks",
    "calibration",
    "calibration_gradients",
    "clean_ranks",
    "longtail",
    "longtail_details",
    "lr_sensitivity",
    "metric_heatmaps",
    "natural_corruption",
    "noise_accuracy",
    "noise_confusions",
    "noise_nll_confidence",
    "optimization",
    "reliability",
]
