"""How long a run takes with each loss: `python -m experiments.runtime`.

Every loss is trained alone, in a program of its own on one device, on the same cells. Neither
compiling nor the first epoch, which warms the program up, is part of the time.
"""

from dataclasses import replace
from pathlib import Path

from experiments.engine.command import Command
from experiments.engine.options import DEFAULTS, Common, Options, make_study
from experiments.engine.study import Study
from experiments.shell import command_line


def main(
    dataset: str = "digits",
    losses: tuple[str, ...] = (),
    out: Path = Path("results/runtime"),
    common: Common = DEFAULTS,
) -> None:
    """Time each loss alone on the same cells of the clean data, compiling apart.

    Args:
        dataset: A name such as digits or wine, or the path of your own data.
        losses: Names such as ce or hpg; the paper's general losses by default.
        out: The folder for records and the table.
        common: Options of every command.
    """
    common.check_words(dataset, losses=losses)
    command = Command(common, out)
    study = make_timed(common, losses, dataset)
    command.train(study)
    command.finish(lambda: show(study, command))


def make_timed(options: Options, losses: tuple[str, ...], dataset: str = "digits") -> Study:
    """Clean data, every run by itself."""
    study = make_study("runtime", options, dataset, regimes=("clean",), losses=losses)
    return replace(study, timed=True)


def show(study: Study, command: Command) -> list[Path]:
    """Write the table and print it, from records."""
    from experiments.engine.results import read_frame
    from experiments.show.metrics import select
    from experiments.show.page import publish
    from experiments.show.summary import performance, summarise

    frame, columns = read_frame(study, command.out), select("seconds")
    grid = performance(frame, f"{study.dataset.name}, clean: each loss alone", "clean", columns)
    return publish(command, "runtime", [grid], summarise(frame, tuple(columns)))


if __name__ == "__main__":
    command_line.run(main, "experiments.runtime", example="--losses ce brier hpg")
