"""The canonical link against softmax: `python -m experiments.links`.

Brier, CAPM, HPG and Tsallis on the paper's cells, each trained and scored twice on the same seeds,
batches and initial weights: by softmax, and by the canonical link of its own generator.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tyro

from experiments.engine.command import Command
from experiments.engine.linked import LINKED, TSALLIS
from experiments.engine.options import DEFAULTS, Common, Options, make_study
from experiments.engine.study import Study
from experiments.longtail import DATASET
from experiments.noise import PAPER_DATASETS
from experiments.shell import command_line
from experiments.shell.errors import UsageError
from pgeom.losses.catalogue import LOSSES
from pgeom.messages import separated

KNOWN = {name: LOSSES[name] for name in ("brier", "capm", "hpg")} | {TSALLIS.name: TSALLIS}
HUNDRED_SEEDS = replace(DEFAULTS, seeds=("100",))
CELLS = (*PAPER_DATASETS, DATASET)


def main(
    dataset: Annotated[tuple[str, ...], tyro.conf.arg(aliases=("--datasets",))] = CELLS,
    regimes: tuple[str, ...] = (),
    losses: tuple[str, ...] = (),
    out: Path = Path("results/links"),
    common: Common = HUNDRED_SEEDS,
) -> None:
    """Train proper losses by softmax and by their canonical link, and compare the two.

    Args:
        dataset: Names such as digits, or the path of your own data; the paper's four by default.
        regimes: Of --dataset, such as clean or symmetric-40; its own by default.
        losses: Of brier, capm, hpg and tsallis; all four by default.
        out: The folder for records and tables.
        common: Options of every command.
    """
    if common.generators or common.own_losses:
        raise UsageError("links trains given losses: no --generators, no --own-losses")
    common.require_softmax("links")
    if regimes and dataset == CELLS:
        raise UsageError("--regimes needs --dataset here")
    for name in dataset:
        if "," in name and not Path(name).exists():
            raise UsageError(f"unknown dataset {name!r}; {separated(name)}")
        common.check_words(name, regimes=regimes, losses=losses, known=KNOWN)
    command = Command(common, out)
    studies = make_studies(common, dataset, losses, regimes)
    command.train(*studies)
    command.finish(lambda: show(studies, command))


def make_studies(
    options: Options,
    dataset: tuple[str, ...] = CELLS,
    losses: tuple[str, ...] = (),
    regimes: tuple[str, ...] = (),
) -> list[Study]:
    """One study per dataset, with each loss under both links."""
    studies = []
    for name in dataset or CELLS:
        study = make_study("links", options, name, regimes=regimes, losses=losses, known=KNOWN)
        linked = [
            replace(loss.with_canonical_link(), name=f"{loss.name}{LINKED}")
            for loss in study.losses
        ]
        studies.append(replace(study, losses=(*study.losses, *linked)))
    return studies


def show(studies: list[Study], command: Command) -> list[Path]:
    """Write the table and print it, from records."""
    from experiments.show.items import link_grids
    from experiments.show.links import compare_links, read_links
    from experiments.show.page import publish

    runs = read_links(studies, command.out)
    return publish(command, "links", link_grids(runs), compare_links(runs))


if __name__ == "__main__":
    command_line.run(main, "experiments.links", example="--dataset digits --seeds 20")
