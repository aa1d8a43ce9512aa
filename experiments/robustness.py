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
        losses: Names such as ce or hpg; the paper's general losses by default.
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


def show(study: Study, command: Command) -> list[Path]:
    """Write the figures and the tables and print the latter, all from records."""
    from experiments.engine.measures import ATTACKS, NATURAL, RADII
    from experiments.engine.results import read_frame
    from experiments.show.figures import panels, studies
    from experiments.show.items import robustness_grids
    from experiments.show.page import publish
    from experiments.show.summary import summarise

    frame, legend = read_frame(study, command.out), panels.legend(study.losses)
    figures = {
        "natural-corruption": studies.natural_corruption(frame, legend, NATURAL),
        "attacks": studies.attacks(frame, legend, RADII),
    }
    summary = summarise(frame, (*NATURAL, *ATTACKS, "input_gradient_norm"))
    return publish(command, "robustness", robustness_grids(frame), summary, figures)


if __name__ == "__main__":
    command_line.run(main, "experiments.robustness", example="--losses ce brier hpg")
