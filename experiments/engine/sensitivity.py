"""The accuracy of a run under perturbations of its test pixels, by the names of its fields.

>>> [*NATURAL][1], [*APGD]
('gaussian_0.1', ['apgd_0.05', 'apgd_0.1', 'apgd_0.2'])
"""

import jax
import jax.numpy as jnp

from experiments.engine.measures import Measure, Predict, TestPart
from pgeom.evaluation import attacks, metrics
from pgeom.types import Forecast

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
    perturbed = {}
    for name in ("gaussian_0.1", "gaussian_0.2"):
        perturbed[name] = attacks.gaussian(keys[name], pixels, sigma=_level(name))
    name = "salt_and_pepper_0.1"
    perturbed[name] = attacks.salt_and_pepper(keys[name], pixels, fraction=_level(name))
    for name in FGSM:
        perturbed[name] = attacks.fgsm(model, pixels, labels, epsilon=_level(name))
    for attack, names in ((attacks.pgd, PGD), (attacks.apgd, APGD)):

        def reach(key, epsilon, attack=attack):
            return attack(key, model, pixels, labels, epsilon=epsilon)

        # one loop for all radii: each would be a compilation
        radii, streams = jnp.array([*map(_level, names)]), jnp.stack([keys[name] for name in names])
        perturbed |= dict(zip(names, jax.vmap(reach)(streams, radii), strict=True))
    return perturbed


def _level(name: str) -> float:
    return float(name.rpartition("_")[2])
