"""Figures: each draws frames of records or logits, and returns the files it wrote."""

from experiments.show.figures.comparisons import (
    clean_ranks,
    critical_difference,
    dumbbells,
    forest,
    metric_heatmaps,
)
from experiments.show.figures.legend import legend
from experiments.show.figures.noise import (
    noise_accuracy,
    noise_confusions,
    noise_nll_confidence,
    reliability,
)
from experiments.show.figures.studies import (
    ablations,
    attacks,
    calibration,
    calibration_gradients,
    longtail,
    longtail_details,
    lr_sensitivity,
    natural_corruption,
    optimization,
    regret_curves,
    regret_heatmaps,
)

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
