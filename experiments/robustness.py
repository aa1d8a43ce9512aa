"""Clean-trained models under corrupted and attacked inputs: `python -m experiments.robustness`.

Perturbations act on pixels in [0, 1], before standardisation, and are the same for all losses of
a seed where they do not look at the model. FGSM and PGD maximise cross-entropy against each model;
APGD maximises a ratio of logit differences, by which a saturated model does not look robust. All
are probes of local sensitivity, no certificates.
"""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp

from experiments.engine.command import Command
from experiments.engine.measures import Measure, Predict, TestPart
from experiments.engine.options import DEFAULTS, Common, Options, make_study
from experiments.engine.study import Study
from pgeom.evaluation import metrics, perturbation
from pgeom.frontend import command_line
from pgeom.frontend.errors import UsageError
from pgeom.losses.spec import Forecast

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


def main(
    dataset: str = "digits",
    losses: tuple[str, ...] = (),
    out: Path = Path("results/robustness"),
    common: Common = DEFAULTS,
) -> None:
    """Perturb the test images of clean data, at random and against each model.

    Args:
        dataset: digits, fashion-mnist, or any other data with features in [0, 1].
        losses: Names such as ce or hpg; all thirteen by default.
        out: The folder for records, tables and figures.
        common: Options of every command.
    """
    command = Command(common, out)
    study = make_probed(common, losses, dataset)
    command.train(study)
    command.finish(lambda: show(study, command))


def make_probed(options: Options, losses: tuple[str, ...], dataset: str = "digits") -> Study:
    """Clean data, with the accuracy under every perturbation in each record."""
    study = make_study("robustness", options, dataset, regimes=("clean",), losses=losses)
    if not study.dataset.unit_range:
        raise UsageError(
            f"--dataset must have every feature in [0, 1], where a perturbation of pixels makes "
            f"sense, got {dataset!r}"
        )
    return replace(study, measure=PERTURBATIONS)


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
    slope = jax.grad(lambda x: len(labels) * perturbation.attack_loss(model, x, labels))(pixels)
    return {**fields, "input_gradient_norm": jnp.mean(jnp.linalg.norm(slope, axis=1))}


PERTURBATIONS = Measure("perturbations", probe)


def _perturbed(model, pixels, labels, key) -> dict[str, jax.Array]:
    """The test pixels under every perturbation of the protocol."""
    names = (*NATURAL, *ATTACKS)
    keys = dict(zip(names, jax.random.split(key, len(names)), strict=True))
    perturbed = {}
    for name in ("gaussian_0.1", "gaussian_0.2"):
        perturbed[name] = perturbation.gaussian(keys[name], pixels, sigma=_level(name))
    name = "salt_and_pepper_0.1"
    perturbed[name] = perturbation.salt_and_pepper(keys[name], pixels, fraction=_level(name))
    for name in FGSM:
        perturbed[name] = perturbation.fgsm(model, pixels, labels, epsilon=_level(name))
    for attack, names in ((perturbation.pgd, PGD), (perturbation.apgd, APGD)):

        def reach(key, epsilon, attack=attack):
            return attack(key, model, pixels, labels, epsilon=epsilon)

        # one loop for all radii: each would be a compilation
        radii, streams = jnp.array([*map(_level, names)]), jnp.stack([keys[name] for name in names])
        perturbed |= dict(zip(names, jax.vmap(reach)(streams, radii), strict=True))
    return perturbed


def _level(name: str) -> float:
    return float(name.rpartition("_")[2])


def make_grids(frame) -> list:
    """One table per kind of perturbation."""
    from experiments.tables.summary import performance

    name = frame["dataset"].iloc[0]
    return [
        performance(frame, f"{name}, clean models: accuracy under {kind}", "clean", columns)
        for kind, columns in (("corruption", NATURAL), ("FGSM", FGSM), ("PGD", PGD), ("APGD", APGD))
    ]


def show(study: Study, command: Command) -> list[Path]:
    """Write the figures and the tables and print the latter, all from records."""
    from experiments import figures
    from experiments.engine.results import read_frame
    from experiments.tables.grid import publish
    from experiments.tables.summary import summarise

    frame, out = read_frame(study, command.out), command.out
    legend = figures.legend(study.losses)
    drawn = figures.natural_corruption(frame, legend, NATURAL, out / "natural-corruption")
    drawn += figures.attacks(frame, legend, RADII, out / "attacks")
    page, fields = out / "tables-robustness.md", (*NATURAL, *ATTACKS, "input_gradient_norm")
    publish(make_grids(frame), summarise(frame, fields), page, command.console, command.json)
    return [page, *drawn]


if __name__ == "__main__":
    command_line.run(main, "experiments.robustness", example="--losses ce brier hpg")
