"""Which loss recovers probabilities, where they are known: `python -m experiments.known_truth`.

The data are Gaussian mixtures, `mixture-CLASSES-EXAMPLES`, whose posterior and noise channel are
exact, so that regret is measured and not estimated. A linear model is well specified for their
clean labels: what is left of the regret with many of them is due to the loss. Every sample is
trained for as many steps as the largest one, to the end, because early stopping would hide where a
loss leads to.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from experiments.engine.command import Command
from experiments.engine.options import Common, Options, make_study
from experiments.engine.study import Study
from experiments.shell import command_line
from experiments.shell.errors import UsageError, refusals
from pgeom.data.regimes import transition
from pgeom.losses import catalogue
from pgeom.training.settings import PAPER

SIZES = (250, 1000, 4000, 16000)
REGIMES = ("clean", "symmetric-40")
EPOCHS, BATCH_SIZE = 40, 256  # of the largest sample
DEFAULTS = Options(
    seeds=("20",),
    epochs=EPOCHS,
    batch_size=BATCH_SIZE,
    learning_rate=0.01,
    model="linear",
    stop_on="none",
)
HELD = catalogue.LOSSES["apms"].variant("apms_held", "APMS, β held", power=0.01)
HELD = replace(HELD, proper=False)  # its penalty stays
KNOWN = catalogue.GENERAL | {HELD.name: HELD}


def main(
    classes: int = 5,
    sizes: tuple[int, ...] = SIZES,
    regimes: tuple[str, ...] = REGIMES,
    losses: tuple[str, ...] = (),
    out: Path = Path("results/known_truth"),
    common: Common = DEFAULTS,
) -> None:
    """Train every loss on mixtures of several sizes, and measure how far it is from the truth.

    Args:
        classes: Of the mixture, 2 to 10.
        sizes: Numbers of examples, of which 60% are for training.
        regimes: Such as clean, symmetric-40 or pair-flip-40.
        losses: Names such as ce or hpg, or apms_held, whose penalty does not fade; by default all.
        out: The folder for records, tables and figures.
        common: Options of every command. The epochs are those of the largest sample; the others
            have as many steps.
    """
    common.check_words(regimes=regimes, losses=losses, known=KNOWN)
    common.require_softmax("known_truth")
    command = Command(common, out)
    studies = make_studies(common, classes, sizes, regimes, losses)
    command.train(*studies.values())
    command.finish(lambda: show(studies, command))


def make_studies(
    options: Options,
    classes: int,
    sizes: Sequence[int],
    regimes: tuple[str, ...] = REGIMES,
    losses: tuple[str, ...] = (),
) -> dict[int, Study]:
    """The studies by their numbers of examples, the smallest first."""
    if not sizes:
        raise UsageError("--sizes must be at least one number of examples")
    studies = {
        size: make_study(
            f"{size} examples",
            options,
            f"mixture-{classes}-{size}",
            regimes=regimes,
            losses=losses,
            known=KNOWN,
        )
        for size in sorted(set(sizes))
    }
    _require_channels(next(iter(studies.values())))
    epochs, batch = options.epochs or EPOCHS, options.batch_size or BATCH_SIZE
    steps = {size: math.ceil(0.6 * size / batch) for size in studies}
    most = epochs * max(steps.values())

    def train_as_long(study: Study, size: int) -> Study:
        epochs = math.ceil(most / steps[size])
        sizes = {"epochs": epochs, "batch_size": batch, "stopping": PAPER}
        return replace(study, training=replace(study.training, **sizes), notes=())

    return {size: train_as_long(study, size) for size, study in studies.items()}


def _require_channels(study: Study) -> None:
    """Refuse a regime whose effect on the posterior is not known."""
    with refusals("--regimes: "):
        for regime in study.regimes:
            transition(regime, study.dataset.num_classes, study.dataset.noise_map)


def show(studies: dict[int, Study], command: Command) -> list[Path]:
    """Write the figure and the tables and print the latter, all from records."""
    from experiments.engine.results import read_frames
    from experiments.show import regrets
    from experiments.show.figures import panels
    from experiments.show.figures.studies import regret_curves
    from experiments.show.page import publish
    from experiments.show.summary import convergence_notes

    frame, largest = regrets.measure_regrets(studies, command.out), studies[max(studies)]
    legend = panels.legend(largest.losses)
    figures = {"regret-sizes": regret_curves(frame, legend)}
    runs = read_frames([*studies.values()], command.out)
    first, *others = regrets.grids(frame)
    grids = [first.with_notes(convergence_notes(runs, largest.training.epochs)), *others]
    return publish(command, "known-truth", grids, regrets.summarise_regrets(frame), figures)


if __name__ == "__main__":
    command_line.run(
        main, "experiments.known_truth", example="--sizes 500 5000 --losses ce gce --seeds 5"
    )
