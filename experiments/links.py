"""The canonical link against softmax: `python -m experiments.links`.

Brier, CAPM, HPG and Tsallis on the paper's cells, each trained and scored twice on the same seeds,
batches and initial weights: by softmax, and by the canonical link of its own generator.
"""

from dataclasses import replace
from pathlib import Path

from experiments.comparison import NOISE_DATASETS
from experiments.engine.command import Command
from experiments.engine.options import DEFAULTS, Common, Options, make_study
from experiments.engine.study import Study
from experiments.longtail import DATASET, REGIME
from pgeom.frontend import command_line
from pgeom.losses.catalogue import LINKED, LOSSES, TSALLIS

KNOWN = {name: LOSSES[name] for name in ("brier", "capm", "hpg")} | {TSALLIS.name: TSALLIS}
HUNDRED_SEEDS = replace(DEFAULTS, seeds=("100",))
CELLS = (*NOISE_DATASETS, DATASET)


def main(
    datasets: tuple[str, ...] = CELLS,
    losses: tuple[str, ...] = (),
    out: Path = Path("results/links"),
    common: Common = HUNDRED_SEEDS,
) -> None:
    """Train proper losses by softmax and by their canonical link, and compare the two.

    Args:
        datasets: Names such as digits; the paper's four by default.
        losses: Of brier, capm, hpg and tsallis; all four by default.
        out: The folder for records and tables.
        common: Options of every command.
    """
    common.refuse_own_losses("experiments.links")
    for dataset in datasets:
        common.check_words(dataset, losses=losses, known=KNOWN)
    command = Command(common, out)
    studies = make_studies(common, datasets, losses)
    command.train(*studies)
    command.finish(lambda: show(studies, command))


def make_studies(
    options: Options, datasets: tuple[str, ...] = CELLS, losses: tuple[str, ...] = ()
) -> list[Study]:
    """One study per dataset, with each loss under both links."""
    studies = []
    for dataset in datasets or CELLS:
        regimes = (REGIME,) if dataset == DATASET else ()
        study = make_study("links", options, dataset, regimes=regimes, losses=losses, known=KNOWN)
        linked = [
            replace(loss.with_canonical_link(), name=f"{loss.name}{LINKED}")
            for loss in study.losses
        ]
        studies.append(replace(study, losses=(*study.losses, *linked)))
    return studies


def show(studies: list[Study], command: Command) -> list[Path]:
    """Write the table and print it with a sentence, from records."""
    from experiments.tables.grid import publish
    from experiments.tables.link_effects import (
        compare_links,
        links_table,
        read_links,
        summarise_links,
    )

    effects = compare_links(read_links(studies, command.out))
    page = command.out / "tables-links.md"
    publish([links_table(effects)], effects, page, command.console, command.json)
    if not command.json:
        command.console.print(summarise_links(effects), soft_wrap=True)
    return [page]


if __name__ == "__main__":
    command_line.run(main, "experiments.links", example="--datasets digits --seeds 20")
