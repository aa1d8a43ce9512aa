"""Structured proper loss geometries for multiclass classification.

Write a convex generator on the simplex, get a strictly proper loss and its exact guarantees:

>>> import jax.numpy as jnp
>>> import pgeom
>>> def cubic(p): return jnp.sum(p**3)
>>> loss = pgeom.on_logits(pgeom.bregman_score(cubic))
>>> loss(jnp.array([[2.0, 0.0, 1.0]]), jnp.array([0]))
Array([0.29194], dtype=float32)
"""

from pgeom import losses
from pgeom.evaluation import calibration, metrics, significance
from pgeom.evaluation.decomposition import decompose
from pgeom.geometry import bounds, class_structure, curvature, generators, margin
from pgeom.geometry.bregman import bregman_divergence, bregman_score, conditional_risk, regret
from pgeom.geometry.certificates import certify
from pgeom.geometry.closed_forms import generator
from pgeom.geometry.diagnosis import check_generator, diagnose
from pgeom.losses.proper import apms, capm, hpg, on_logits
from pgeom.types import Annealing, ClassStats

__all__ = [
    "Annealing",
    "ClassStats",
    "apms",
    "bounds",
    "bregman_divergence",
    "bregman_score",
    "calibration",
    "capm",
    "certify",
    "check_generator",
    "class_structure",
    "conditional_risk",
    "curvature",
    "decompose",
    "diagnose",
    "generator",
    "generators",
    "hpg",
    "losses",
    "margin",
    "metrics",
    "on_logits",
    "regret",
    "significance",
]
