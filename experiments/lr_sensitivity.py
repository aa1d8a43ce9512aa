"""Which learning rate validation NLL would choose: `python -m experiments.lr_sensitivity`."""

from dataclasses import replace
from pathlib import Path

from experiments.engine.command import Command
from experiments.engine.options import DEFAULTS, Common, make_study
from experiments.engine.study import Study
from experiments.shell import command_line
from experiments.shell.errors import UsageError

RATES = (3e-4, 1e-3, 3e-3)


def main(
    dataset: str = "digits",
    regimes: tuple[str, ...] = (),
    losses: tuple[str, ...] = (),
    out: Path = Path("results/lr_sensitivity"),
    common: Common = DEFAULTS,
) -> None:
    """Train with three learning rates, and count which has the lowest validation NLL.

    Args:
        dataset: digits, breast-cancer, confusion, long-tail, wine, mnist1d or fashion-mnist, or
            the path of a .npz file with arrays X and y, of a .csv or .parquet file, or of a folder
            with IDX files.
        regimes: Such as clean, symmetric-40, pair-flip-40, asymmetric-40, instance-40 or
            long-tail-30; the dataset's own by default.
        losses: Names such as ce or hpg; the paper's general losses by default.
        out: The folder for records, tables and figures.
        common: Options of every command.
    """
    if common.learning_rate != DEFAULTS.learning_rate:
        raise UsageError("lr_sensitivity varies the learning rate itself: give no --learning-rate")
    common.check_words(dataset, regimes=regimes, losses=losses)
    command = Command(common, out)
    studies = vary_rate(make_study("", common, dataset, regimes=regimes, losses=losses))
    command.train(*studies)
    command.finish(lambda: show(studies, command))


def vary_rate(study: Study) -> tuple[Study, ...]:
    """The study at every learning rate."""
    trainings = (replace(study.training, learning_rate=rate) for rate in RATES)
    return tuple(
        replace(study, name=f"learning rate {training.learning_rate:g}", training=training)
        for training in trainings
    )


def show(studies: tuple[Study, ...], command: Command) -> list[Path]:
    """Write the figure and the table and print the latter, all from records."""
    from experiments.engine.results import read_frame
    from experiments.show import summary
    from experiments.show.figures.studies import lr_sensitivity
    from experiments.show.page import publish

    frames = {study.training.learning_rate: read_frame(study, command.out) for study in studies}
    counts = summary.count_selected(frames)
    grid = summary.selection_grid(counts, studies[0].dataset.name)
    grid = grid.with_notes(summary.convergence_notes(summary.select_runs(frames)))
    figures = {"lr-sensitivity": lr_sensitivity(counts)}
    return publish(command, "lr-sensitivity", [grid], counts.reset_index(), figures)


if __name__ == "__main__":
    command_line.run(main, "experiments.lr_sensitivity", example="--dataset digits --losses ce hpg")
