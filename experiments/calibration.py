"""Calibration before and after temperature scaling: `python -m experiments.calibration`."""

from pathlib import Path

from experiments.engine.command import Command
from experiments.engine.options import DEFAULTS, Common, make_study
from experiments.engine.study import Study
from experiments.shell import command_line


def main(
    dataset: str = "digits",
    losses: tuple[str, ...] = (),
    out: Path = Path("results/calibration"),
    common: Common = DEFAULTS,
) -> None:
    """Fit a temperature on validation logits of the clean data, and score the test logits.

    Args:
        dataset: A name such as digits or wine, or the path of your own data.
        losses: Names such as ce or hpg; the paper's general losses by default.
        out: The folder for records, tables and figures.
        common: Options of every command.
    """
    common.check_words(dataset, losses=losses)
    command = Command(common, out)
    study = make_study("calibration", common, dataset, regimes=("clean",), losses=losses)
    command.train(study)
    command.finish(lambda: show(study, command))


def show(study: Study, command: Command) -> list[Path]:
    """Write the figure and the table and print the latter, all from records."""
    from experiments.engine.results import read_frame
    from experiments.show.figures import panels, studies
    from experiments.show.metrics import CALIBRATION_ERRORS, TEMPERED, compared
    from experiments.show.page import publish
    from experiments.show.summary import bound_notes, performance, summarise

    frame, name = read_frame(study, command.out), f"{study.dataset.name}, clean"
    tempered = performance(frame, f"{name}: temperature scaling", "clean", TEMPERED)
    errors = performance(frame, f"{name}: calibration errors", "clean", CALIBRATION_ERRORS)
    fields = dict.fromkeys([*(one.name for one in compared(frame)), *TEMPERED, *CALIBRATION_ERRORS])
    grids = [tempered.with_notes(bound_notes(frame)), errors]
    figures = {"calibration": studies.calibration(frame, panels.legend(study.losses))}
    return publish(command, "calibration", grids, summarise(frame, tuple(fields)), figures)


if __name__ == "__main__":
    command_line.run(main, "experiments.calibration", example="--losses ce brier hpg --seeds 10")
