"""Clean-trained models under corrupted and attacked inputs: `python -m experiments.robustness`.

Perturbations act on pixels in [0, 1], before standardisation, and are the same for all losses of
a seed where they do not look at the model. FGSM and PGD maximise cross-entropy against each model;
APGD maximises a ratio of logit differences, by which a saturated model does not look robust. All
are probes of local sensitivity, no certificates.
"""

from dataclasses import replace
from pathlib import Path

from experiments.engine.command import Command
from experiments.engine.options import DEFAULTS, Common, Options, make_study
from experiments.engine.study import Study
from experiments.shell import command_line
from experiments.shell.errors import UsageError


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
    common.check_words(dataset, losses=losses)
    command = Command(common, out)
    study = make_probed(common, losses, dataset)
    command.train(study)
    command.finish(lambda: show(study, command))


def make_probed(options: Options, losses: tuple[str, ...], dataset: str = "digits") -> Study:
    """Clean data, with the accuracy under every perturbation in each record."""
    from experiments.engine.measures import PERTURBATIONS

    study = make_study("robustness", options, dataset, regimes=("clean",), losses=losses)
    if not study.dataset.unit_range:
        raise UsageError(
            f"--dataset must have every feature in [0, 1], where a perturbation of pixels makes "
            f"sense, got {dataset!r}"
        )
    return replace(study, measure=PERTURBATIONS)


def make_grids(frame) -> list:
    """One table per kind of perturbation."""
    from experiments.engine.measures import APGD, FGSM, NATURAL, PGD
    from experiments.show.metrics import BALANCED, headline
    from experiments.show.summary import performance

    name, natural = frame["dataset"].iloc[0], NATURAL
    if headline(frame) is BALANCED:  # of the clean inputs alone: nothing else is recorded
        natural = {"accuracy": NATURAL["accuracy"], "balanced_accuracy": "Clean, balanced ↑"}
        natural |= NATURAL
    return [
        performance(frame, f"{name}, clean models: accuracy under {kind}", "clean", columns)
        for kind, columns in (("corruption", natural), ("FGSM", FGSM), ("PGD", PGD), ("APGD", APGD))
    ]


def show(study: Study, command: Command) -> list[Path]:
    """Write the figures and the tables and print the latter, all from records."""
    from experiments.engine.measures import ATTACKS, NATURAL, RADII
    from experiments.engine.results import read_frame
    from experiments.show import figures
    from experiments.show.summary import summarise
    from experiments.show.tables import publish

    frame, out = read_frame(study, command.out), command.out
    legend = figures.legend(study.losses)
    drawn = figures.natural_corruption(frame, legend, NATURAL, out / "natural-corruption")
    drawn += figures.attacks(frame, legend, RADII, out / "attacks")
    page, fields = out / "tables-robustness.md", (*NATURAL, *ATTACKS, "input_gradient_norm")
    publish(make_grids(frame), summarise(frame, fields), page, command.console, command.json)
    return [page, *drawn]


if __name__ == "__main__":
    command_line.run(main, "experiments.robustness", example="--losses ce brier hpg")
