"""The public names of `pgeom`, which hands them on: `pgeom.diagnose` is `public.diagnose`."""

from pgeom import generators, losses
from pgeom.certificates import certify
from pgeom.diagnosis import bounds, check_generator, curvature, diagnose
from pgeom.evaluation import calibration, metrics, significance
from pgeom.evaluation.decomposition import decompose
from pgeom.generators import generator
from pgeom.links import canonical_link, fenchel_young, inverse_link
from pgeom.paper import class_structure, margin
from pgeom.paper.objectives import apms, capm, hpg
from pgeom.scores import bregman_divergence, bregman_score, conditional_risk, on_logits, regret
from pgeom.types import Annealing, ClassStats

__all__ = [
    "Annealing",
    "ClassStats",
    "apms",
    "bounds",
    "bregman_divergence",
    "bregman_score",
    "calibration",
    "canonical_link",
    "capm",
    "certify",
    "check_generator",
    "class_structure",
    "conditional_risk",
    "curvature",
    "decompose",
    "diagnose",
    "fenchel_young",
    "generator",
    "generators",
    "hpg",
    "inverse_link",
    "losses",
    "margin",
    "metrics",
    "on_logits",
    "regret",
    "significance",
]
