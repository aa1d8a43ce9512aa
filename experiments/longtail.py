"""Seventeen losses on a 30:1 long tail: `python -m experiments.longtail`.

Every loss is trained twice, with the protocol's early stopping and without any, because the
published tie of cross-entropy and the candidates near .16 is an effect of stopping: their
validation NLL is best in the second or third epoch, long before they have learnt anything.
"""

from dataclasses import replace
from pathlib import Path

from experiments.engine.command import Command
from experiments.engine.options import DEFAULTS, Common, Options, make_study
from experiments.engine.study import Study
from pgeom.frontend import command_line
from pgeom.losses import catalogue
from pgeom.training import settings

DATASET, REGIME = "long-tail", "long-tail-30"
METRICS = {
    "balanced_accuracy": "Balanced acc. ↑",
    "nll": "NLL ↓",
    "brier": "Brier ↓",
    "ece": "ECE ↓",
}


def main(
    dataset: str = DATASET,
    regime: str = REGIME,
    losses: tuple[str, ...] = (),
    out: Path = Path("results/longtail"),
    common: Common = DEFAULTS,
) -> None:
    """Train every loss on a long-tailed sample, with and without early stopping.

    Args:
        dataset: A name such as digits or wine, or the path of your own data.
        regime: The ratio of the largest class to the smallest, as in long-tail-30.
        losses: Names such as ce or ldam; all seventeen by default.
        out: The folder for records, tables and figures.
        common: Options of every command.
    """
    common.check_words(dataset, regimes=(regime,), losses=losses, known=catalogue.LOSSES)
    command = Command(common, out)
    studies = make_studies(common, losses, dataset, regime)
    command.train(*studies)
    command.finish(lambda: show(studies, command))


def make_studies(
    options: Options, losses: tuple[str, ...], dataset: str = DATASET, regime: str = REGIME
) -> tuple[Study, Study]:
    """The protocol's study, and the same one without early stopping."""
    chosen = {"regimes": (regime,), "losses": losses, "known": catalogue.LOSSES}
    stopped = make_study("early stopping", options, dataset, **chosen)
    training = replace(stopped.training, stopping=settings.NEVER)
    return stopped, replace(stopped, name="trained to the end", training=training)


def ways_to_stop(frames: dict) -> dict:
    """What figures and tables compare: by name, the runs and the field with their score.

    Whether training stops early or not, the checkpoint of least validation NLL is kept; of the runs
    that were trained to the end the last epoch is shown, too, where it was recorded.
    """
    from experiments.figures.studies import Series

    stopped, free = frames.values()
    ways = {
        "stopped early, best checkpoint": Series(stopped, "balanced_accuracy"),
        "trained to the end, best checkpoint": Series(free, "balanced_accuracy"),
    }
    if "last_balanced_accuracy" in free:
        ways["trained to the end, last epoch"] = Series(free, "last_balanced_accuracy")
    return ways


def show(studies: tuple[Study, Study], command: Command) -> list[Path]:
    """Write the figure and the tables and print the latter, all from records."""
    import pandas as pd

    from experiments import figures
    from experiments.engine.results import read_frame
    from experiments.tables.grid import publish
    from experiments.tables.paired_tests import significance
    from experiments.tables.summary import performance, summarise

    regime = str(studies[0].regimes[0])
    frames = {study.name: read_frame(study, command.out) for study in studies}
    grids = [
        performance(frame, f"{regime}, {name}", regime, METRICS) for name, frame in frames.items()
    ]
    tests = significance(frames[studies[0].name], regime, regime)
    summary = pd.concat(
        summarise(frame, tuple(METRICS)).assign(stopping=name) for name, frame in frames.items()
    )
    legend, chance = figures.legend(studies[0].losses), 1 / studies[0].dataset.num_classes
    drawn = figures.longtail(ways_to_stop(frames), legend, chance, command.out / "longtail")
    page = command.out / "tables-longtail.md"
    publish([*grids, tests], summary, page, command.console, command.json)
    return [page, *drawn]


if __name__ == "__main__":
    command_line.run(
        main, "experiments.longtail", example="--losses ce logit_adjustment ldam --seeds 10"
    )
