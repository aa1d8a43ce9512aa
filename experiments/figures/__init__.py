"""Figures: each draws frames of records or logits, and returns the files it wrote."""

from experiments.figures.clean_models import attacks, calibration, natural_corruption
from experiments.figures.diagnostics import calibration_gradients, longtail_details, optimization
from experiments.figures.legend import legend
from experiments.figures.noise import noise_accuracy, reliability
from experiments.figures.noise_details import noise_confusions, noise_nll_confidence
from experiments.figures.overview import clean_ranks, metric_heatmaps
from experiments.figures.studies import ablations, longtail, lr_sensitivity

__all__ = [
    "ablations",
    "attacks",
    "calibration",
    "calibration_gradients",
    "clean_ranks",
    "legend",
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
