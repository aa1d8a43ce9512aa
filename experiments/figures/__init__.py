"""Figures: each draws frames of records or logits, and returns the files it wrote."""

from experiments.figures.clean_models import attacks, calibration, natural_corruption
from experiments.figures.critical_difference import critical_difference
from experiments.figures.diagnostics import calibration_gradients, longtail_details, optimization
from experiments.figures.dumbbells import dumbbells
from experiments.figures.forest import forest
from experiments.figures.legend import legend
from experiments.figures.noise import noise_accuracy
from experiments.figures.noise_details import noise_confusions, noise_nll_confidence
from experiments.figures.overview import clean_ranks, metric_heatmaps
from experiments.figures.regret_curves import regret_curves, regret_heatmaps
from experiments.figures.reliability_diagrams import reliability
from experiments.figures.studies import ablations, longtail, lr_sensitivity

__all__ = [
    "ablations",
    "attacks",
    "calibration",
    "calibration_gradients",
    "clean_ranks",
    "critical_difference",
    "dumbbells",
    "forest",
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
    "regret_curves",
    "regret_heatmaps",
    "reliability",
]
