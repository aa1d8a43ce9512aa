"""The public names of `pgeom`: `pgeom.diagnose` is `public.diagnose`.

They need JAX, NumPy and jaxtyping; what needs more, such as `certify` and `fit`, says so when it is
called.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pgeom import extras, generators, losses
from pgeom.certificates import certify, certify_range, verify
from pgeom.data.dataset import from_arrays
from pgeom.diagnosis import Diagnosis, bounds, check_generator, curvature, diagnose
from pgeom.evaluation import calibration, metrics, significance
from pgeom.evaluation.decomposition import decompose
from pgeom.evaluation.significance import compare
from pgeom.generators import generator
from pgeom.links import canonical_link, fenchel_young, inverse_link
from pgeom.losses.spec import LossSpec
from pgeom.paper import class_structure, margin
from pgeom.paper.objectives import apms, capm, hpg
from pgeom.scores import bregman_divergence, bregman_score, conditional_risk, on_logits, regret
from pgeom.types import ClassStats

if TYPE_CHECKING:
    from pgeom.models.model import Model
    from pgeom.training.fit import Examples
    from pgeom.training.settings import Training
    from pgeom.training.trainer import Trained

__all__ = [
    "ClassStats",
    "Diagnosis",
    "LossSpec",
    "apms",
    "bounds",
    "bregman_divergence",
    "bregman_score",
    "calibration",
    "canonical_link",
    "capm",
    "certify",
    "certify_range",
    "check_generator",
    "class_structure",
    "compare",
    "conditional_risk",
    "curvature",
    "decompose",
    "diagnose",
    "fenchel_young",
    "fit",
    "from_arrays",
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
    "verify",
]


def fit(
    model: "Model",
    loss: LossSpec,
    data: "Examples",
    validation: "Examples | None",
    training: "Training",
    seeds: Sequence[int],
) -> "list[Trained]":
    """Train a model once per seed, by weighted examples: all seeds in one compiled program.

    Args:
      model: such as `pgeom.models.model.MLP(inputs, classes)`.
      loss: what to minimise.
      data: `pgeom.training.fit.Examples(features, labels, weights)`, with every class.
      validation: by whose NLL to stop early and choose the epoch; None keeps the last one.
      training: `pgeom.training.settings.Training`; the batch size is an upper bound.
      seeds: nonnegative integers, of initial weights, batches and dropout.

    Returns:
      The results, in the order of the seeds; they have no logits.

    Raises:
      ModuleNotFoundError: without the packages of the extra `experiments`.
    """
    if message := extras.missing("fit", "experiments"):
        raise ModuleNotFoundError(message)
    from pgeom.training import fit as fitting

    return fitting.fit(model, loss, data, validation, training, seeds)
