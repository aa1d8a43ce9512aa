"""Clean digits models under corrupted and attacked inputs: `python -m experiments.robustness`.

Perturbations act on pixels in [0, 1], before standardisation, and are the same for all losses of
a seed where they do not look at the model. The attacks maximise cross-entropy against each model:
probes of local sensitivity, no certificates.
"""

from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from experiments import cli
from experiments.cells import Cell, PreparedCell, network_for
from experiments.protocol import chosen
from experiments.records import Store
from pgeom.data.regimes import stream
from pgeom.evaluation import metrics, perturbation
from pgeom.losses import catalogue
from pgeom.training.trainer import Trained

NATURAL = {
    "accuracy": "Clean ↑",
    "gaussian_0.1": "Gauss .1 ↑",
    "gaussian_0.2": "Gauss .2 ↑",
    "salt_and_pepper_0.1": "S&P .1 ↑",
}
FGSM = {"fgsm_0.05": "FGSM .05 ↑", "fgsm_0.1": "FGSM .1 ↑", "fgsm_0.2": "FGSM .2 ↑"}
PGD = {"pgd_0.1": "PGD .1 ↑", "pgd_0.2": "PGD .2 ↑"}
ATTACKS = {**FGSM, **PGD}


def main(
    losses: tuple[str, ...] = (),
    out: Path = Path("results/robustness"),
    common: cli.Common = cli.DEFAULTS,
) -> None:
    """Perturb the test pixels of clean digits, at random and against each model.

    Args:
        losses: Names such as ce or hpg; all thirteen if none are given.
        out: The folder for records, tables and figures.
        common: Options of every command.
    """
    losses = chosen("loss", losses, tuple(catalogue.GENERAL))
    command = cli.begin(common, out)
    cells = [Cell("digits", "clean", seed) for seed in command.seeds]
    store, spent = command.train(out, cells, losses, measure=probe)
    asked = len(cells) * len(losses)
    cli.finish(command, spent, asked, out, lambda: report(store, cells, losses, command))


def probe(prepared: PreparedCell, trained: Trained) -> dict[str, np.ndarray]:
    """The accuracy of each run under each perturbation, and its mean input-gradient norm."""
    split = prepared.split
    pixels = np.clip(split.test.features * split.scale + split.mean, 0, 1)
    seed = stream("perturbation", *prepared.cell).integers(2**31)
    found = _program(prepared.cell.dataset)(
        trained.parameters, pixels, split.test.labels, split.mean, split.scale, jax.random.key(seed)
    )
    return {name: np.asarray(values) for name, values in found.items()}


@cache
def _program(dataset: str):
    """One compiled program for all the runs of a cell."""
    network = network_for(dataset)

    def probe_run(parameters, pixels, labels, mean, scale, key):
        def model(x):
            return network.logits(parameters, (x - mean[None]) / scale[None])

        inputs = _perturbed(model, pixels, labels, key)
        found = {
            name: metrics.accuracy(jax.nn.softmax(model(x)), labels) for name, x in inputs.items()
        }
        slope = jax.grad(lambda x: len(labels) * perturbation.attack_loss(model, x, labels))(pixels)
        return {**found, "input_gradient_norm": jnp.mean(jnp.linalg.norm(slope, axis=1))}

    return jax.jit(jax.vmap(probe_run, in_axes=(0, None, None, None, None, None)))


def _perturbed(model, pixels, labels, key) -> dict[str, jax.Array]:
    """The test pixels under every perturbation of the protocol."""
    keys = dict(zip((*NATURAL, *ATTACKS), jax.random.split(key, 9), strict=True))
    perturbed = {}
    for name in ("gaussian_0.1", "gaussian_0.2"):
        perturbed[name] = perturbation.gaussian(keys[name], pixels, sigma=_level(name))
    name = "salt_and_pepper_0.1"
    perturbed[name] = perturbation.salt_and_pepper(keys[name], pixels, fraction=_level(name))
    for name in FGSM:
        perturbed[name] = perturbation.fgsm(model, pixels, labels, epsilon=_level(name))
    for name in PGD:
        attack = (keys[name], model, pixels, labels)
        perturbed[name] = perturbation.pgd(*attack, epsilon=_level(name))
    return perturbed


def _level(name: str) -> float:
    return float(name.rpartition("_")[2])


def grids_of(frame) -> list:
    """A table a kind of perturbation."""
    from experiments import tables

    return [
        tables.performance(frame, f"digits, clean models: accuracy under {kind}", "clean", columns)
        for kind, columns in (("corruption", NATURAL), ("FGSM", FGSM), ("PGD", PGD))
    ]


def report(store: Store, cells, losses, command: cli.Command) -> list[Path]:
    """Print the tables and write them and the figures, all from records."""
    from experiments import figures, tables

    frame = tables.select(store.runs(), cells, losses)
    grids = grids_of(frame)
    page = store.folder / "tables-robustness.md"
    fields = (*NATURAL, *ATTACKS, "input_gradient_norm")
    tables.publish(grids, tables.summary(frame, fields), page, command.console, command.json)
    written = figures.natural_corruption(frame, NATURAL, store.folder / "natural-corruption")
    return [page, *written, *figures.attacks(frame, store.folder / "attacks")]


if __name__ == "__main__":
    cli.start(main, "experiments.robustness")
