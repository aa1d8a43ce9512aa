"""What an experiment measures of a run beyond the usual scores: accuracy under perturbations.

>>> [*NATURAL][1], [*APGD]
('gaussian_0.1', ['apgd_0.05', 'apgd_0.1', 'apgd_0.2'])
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pgeom.evaluation import attacks, metrics
from pgeom.losses.spec import LossSpec
from pgeom.models.model import Model
from pgeom.types import AnyArray, ClassStats, Forecast

Predict = Callable[[Float[Array, "n d"]], Float[Array, "n K"]]


class TestPart(NamedTuple):
    """The test examples as a model sees them, and the moments by which they were standardised."""

    __test__ = False  # pytest takes the name for that of a test

    features: Float[AnyArray, "n d"]
    labels: Int[AnyArray, " n"]
    mean: Float[AnyArray, " d"]
    scale: Float[AnyArray, " d"]


@dataclass(frozen=True)
class Measure:
    """`compute(predict, forecast, test, key) -> {field: scalar}` of one run, under a name.

    `predict(x)` gives logits, and `forecast(logits)` the probabilities that the run's link makes of
    them.
    """

    name: str
    compute: Callable[[Predict, Forecast, TestPart, jax.Array], Mapping[str, Float[Array, ""]]]


def find_fields(
    measure: Measure,
    model: Model,
    loss: LossSpec | None,
    parameters: Float[AnyArray, " P"],
    test: TestPart,
    key: jax.Array,
    stats: ClassStats | None,
) -> Mapping[str, Float[Array, ""]]:
    """What a measure finds of a run.

    Args:
      measure: of the study.
      model: of the run.
      loss: one with a canonical link; None is softmax, which has one program for all losses.
      parameters: of the epoch that was kept.
      test: the test examples.
      key: for what is random, the same for all runs of a cell.
      stats: of the training part, for a loss that needs them.
    """
    softmax = loss is None or stats is None
    forecast = jax.nn.softmax if softmax else loss.forecast(stats)
    return measure.compute(lambda x: model.logits(parameters, x), forecast, test, key)


measure_run = jax.jit(find_fields, static_argnums=(0, 1, 2))


NATURAL = {
    "accuracy": "Clean ↑",
    "gaussian_0.1": "Gauss .1 ↑",
    "gaussian_0.2": "Gauss .2 ↑",
    "salt_and_pepper_0.1": "S&P .1 ↑",
}
RADII = ("0.05", "0.1", "0.2")
FGSM, PGD, APGD = (
    {f"{name.lower()}_{radius}": f"{name} {radius.removeprefix('0')} ↑" for radius in RADII}
    for name in ("FGSM", "PGD", "APGD")
)
ATTACKS = {**FGSM, **PGD, **APGD}


def probe(
    predict: Predict, forecast: Forecast, test: TestPart, key: jax.Array
) -> dict[str, jax.Array]:
    """The accuracy of a run under each perturbation, and its mean input-gradient norm.

    The attacks ascend on functions of the logits, which never saturate; what counts is the class
    that the forecast makes of them.
    """
    mean, scale = test.mean[None], test.scale[None]
    pixels, labels = jnp.clip(test.features * scale + mean, 0, 1), jnp.asarray(test.labels)

    def model(x):
        return predict((x - mean) / scale)

    inputs = _perturbed(model, pixels, labels, key)
    fields = {name: metrics.accuracy(forecast(model(x)), labels) for name, x in inputs.items()}
    slope = jax.grad(lambda x: len(labels) * attacks.attack_loss(model, x, labels))(pixels)
    return {**fields, "input_gradient_norm": jnp.mean(jnp.linalg.norm(slope, axis=1))}


PERTURBATIONS = Measure("perturbations", probe)
MEASURES = {PERTURBATIONS.name: PERTURBATIONS}  # by which records name theirs


def _perturbed(model, pixels, labels, key) -> dict[str, jax.Array]:
    """The test pixels under every perturbation of the protocol."""
    names = (*NATURAL, *ATTACKS)
    keys = dict(zip(names, jax.random.split(key, len(names)), strict=True))
    inputs = {
        "gaussian_0.1": attacks.gaussian(keys["gaussian_0.1"], pixels, sigma=0.1),
        "gaussian_0.2": attacks.gaussian(keys["gaussian_0.2"], pixels, sigma=0.2),
        "salt_and_pepper_0.1": attacks.salt_and_pepper(
            keys["salt_and_pepper_0.1"], pixels, fraction=0.1
        ),
    }
    radii = [float(radius) for radius in RADII]
    for name, radius in zip(FGSM, radii, strict=True):
        inputs[name] = attacks.fgsm(model, pixels, labels, epsilon=radius)
    for attack, names in ((attacks.pgd, PGD), (attacks.apgd, APGD)):

        def reach(key, epsilon, attack=attack):
            return attack(key, model, pixels, labels, epsilon=epsilon)

        # one loop for all radii: each would be a compilation
        reached = jax.vmap(reach)(jnp.stack([keys[name] for name in names]), jnp.array(radii))
        inputs |= dict(zip(names, reached, strict=True))
    return inputs
