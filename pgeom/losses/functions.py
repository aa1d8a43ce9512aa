"""The losses as functions, which `pgeom.losses` hands on."""

from pgeom.losses.likelihood import (
    balanced_softmax,
    brier,
    class_balanced_cross_entropy,
    cross_entropy,
    focal,
    label_smoothing,
    ldam,
    logit_adjustment,
    poly1,
)
from pgeom.losses.noise_robust import (
    active_passive,
    bi_tempered,
    generalized_cross_entropy,
    mean_absolute_error,
    symmetric_cross_entropy,
)

__all__ = [
    "active_passive",
    "balanced_softmax",
    "bi_tempered",
    "brier",
    "class_balanced_cross_entropy",
    "cross_entropy",
    "focal",
    "generalized_cross_entropy",
    "label_smoothing",
    "ldam",
    "logit_adjustment",
    "mean_absolute_error",
    "poly1",
    "symmetric_cross_entropy",
]
