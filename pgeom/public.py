"""The public names of `pgeom`, which hands them on: `pgeom.diagnose` is `public.diagnose`."""

from pgeom import losses
from pgeom.evaluation import calibration, metrics, significance
from pgeom.evaluation.decomposition import decompose
from pgeom.geometry import bounds, class_structure, curvature, generators, margin
from pgeom.geometry.bregman import bregman_divergence, bregman_score, conditional_risk, regret
from pgeom.geometry.certificates import certify
from pgeom.geometry.closed_forms import generator
from pgeom.geometry.diagnosis import check_generator, diagnose
from pgeom.geometry.fenchel_young import canonical_link, fenchel_young, inverse_link
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
