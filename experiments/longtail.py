"""Seventeen losses on a long tail: `python -m experiments.longtail`.

Every loss is trained twice, with the protocol's early stopping and without any, because the
published tie of cross-entropy and the candidates near .16 is an effect of stopping: their
validation NLL is best in the second or third epoch, long before they have learnt anything.

The tail is 30:1, or the one that data has by itself: classes that are uneven already are taken as
they are.
"""

from dataclasses import replace
from pathlib import Path

from experiments.engine.command import Command
from experiments.engine.options import (
    DEFAULTS,
    Common,
    Options,
    choose_training,
    make_study,
    parse_kinds,
    parse_regimes,
)
from experiments.engine.study import Study
from experiments.shell import command_line
from pgeom.data.regimes import CLEAN, Regime
from pgeom.losses import catalogue
from pgeom.training import settings

DATASET, REGIME, OPTION = "long-tail", "long-tail-30", "--regime"


def main(
    dataset: str = DATASET,
    regime: str | None = None,
    losses: tuple[str, ...] = (),
    out: Path = Path("results/longtail"),
    common: Common = DEFAULTS,
) -> None:
    """Train every loss on a long-tailed sample, with and without early stopping.

    Args:
        dataset: A name such as digits or wine, or the path of your own data.
        regime: The ratio of the largest class to the smallest, as in long-tail-30, the default; or
            clean for the classes as they are, the default where they are uneven.
        losses: Names such as ce or ldam; all seventeen by default.
        out: The folder for records, tables and figures.
        common: Options of every command.
    """
    common.check_words(dataset, losses=losses, known=catalogue.LOSSES)
    parse_kinds((regime or REGIME,), option=OPTION)
    command = Command(common, out)
    studies = make_studies(common, losses, dataset, regime)
    command.train(*studies)
    command.finish(lambda: show(studies, command))


def make_studies(
    options: Options, losses: tuple[str, ...], dataset: str = DATASET, regime: str | None = None
) -> tuple[Study, Study]:
    """The protocol's study, and the same one without early stopping."""
    asked = {"losses": losses, "known": catalogue.LOSSES}
    stopped = make_study("early stopping", options, dataset, **asked)
    stopped = replace(stopped, regimes=_choose_regime(stopped, regime))
    stopped = choose_training(stopped, options)
    training = replace(stopped.training, stopping=settings.NEVER)
    return stopped, replace(stopped, name="trained to the end", training=training)


def _choose_regime(study: Study, regime: str | None) -> tuple[Regime]:
    """The regime asked for, or the tail that a dataset has by itself, or else that of the paper."""
    wanted = regime or (CLEAN if study.dataset.is_uneven else REGIME)
    (chosen,) = parse_regimes((wanted,), study.dataset, study.seeds[0], option=OPTION)
    return (chosen,)


def _describe(study: Study) -> str:
    """The regime and, where it leaves the classes as they are, how large these are."""
    (regime,), sizes = study.regimes, study.dataset.class_sizes
    if regime.kind != CLEAN:
        return str(regime)
    return f"{regime}, classes as they are ({sizes.max():,} to {sizes.min():,} examples)"


def show(studies: tuple[Study, Study], command: Command) -> list[Path]:
    """Write the figure and the tables and print the latter, all from records."""
    import pandas as pd

    from experiments.engine.results import read_frame
    from experiments.show.contrasts import against_reference
    from experiments.show.figures import panels
    from experiments.show.figures.studies import longtail
    from experiments.show.page import publish
    from experiments.show.summary import performance, summarise, ways_to_stop

    regime, title = str(studies[0].regimes[0]), _describe(studies[0])
    frames = {study.name: read_frame(study, command.out) for study in studies}
    grids: list = []
    for name, frame in frames.items():
        grids.append(performance(frame, f"{title}, {name}", regime))
        grids.append(against_reference(frame, f"{title}, {name}"))
    summary = pd.concat(summarise(frame).assign(stopping=name) for name, frame in frames.items())
    legend, chance = panels.legend(studies[0].losses), 1 / studies[0].dataset.num_classes
    figures = {"longtail": longtail(ways_to_stop(frames), legend, chance)}
    return publish(command, "longtail", grids, summary, figures)


if __name__ == "__main__":
    command_line.run(
        main, "experiments.longtail", example="--losses ce logit_adjustment ldam --seeds 10"
    )
