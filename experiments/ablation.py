"""What each part of the candidates does: `python -m experiments.ablation`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.engine.command import Command
from experiments.engine.options import DEFAULTS, Common, Options, make_study
from experiments.engine.study import Study
from experiments.shell import command_line
from experiments.shell.errors import UsageError
from pgeom.losses.catalogue import LOSSES
from pgeom.losses.spec import LossSpec

if TYPE_CHECKING:
    import pandas as pd

CELLS = {"digits": ("symmetric-40",), "confusion": ("clean", "pair-flip-40")}
CAPM = (
    LOSSES["capm"],
    LOSSES["capm"].variant("capm-no-graph", "CAPM, no graph", gamma=0.0),
    LOSSES["capm"].variant("capm-no-tail", "CAPM, no tail", delta=0.0),
    LOSSES["capm"].variant("capm-no-low-rank", "CAPM, no low rank", low_rank=False),
    LOSSES["capm"].variant("capm-identity", "CAPM, identity", gamma=0.0, delta=0.0, low_rank=False),
)
HPG = tuple(
    LOSSES["hpg"].variant(f"hpg-{ridges}", f"HPG, {ridges}", ridges=ridges)
    for ridges in (0, 2, 4, 8, 16)
)
OWN = "losses of your own"
BETA0 = (0.0, 0.05, 0.1, 0.2, 0.5)
APMS = tuple(
    LOSSES["apms"].variant(f"apms-{beta0:g}", f"APMS, {beta0:g}", beta0=beta0) for beta0 in BETA0
)


def main(
    dataset: str | None = None,
    regimes: tuple[str, ...] = (),
    out: Path = Path("results/ablation"),
    common: Common = DEFAULTS,
) -> None:
    """Take the candidates apart: CAPM's terms, HPG's ridges, APMS's initial coefficient.

    Args:
        dataset: A name such as digits or wine, or the path of your own data; by default the
            paper's: digits with symmetric-40, confusion clean and with pair-flip-40.
        regimes: Of --dataset, such as clean or symmetric-40; its own by default.
        out: The folder for records, tables and figures.
        common: Options of every command.
    """
    if regimes and dataset is None:
        raise UsageError("--regimes needs --dataset here")
    common.check_words(dataset, regimes=regimes)
    command = Command(common, out)
    studies = make_studies(common, CELLS if dataset is None else {dataset: regimes})
    command.train(*studies)
    command.finish(lambda: show(studies, command))


def families(own: tuple[LossSpec, ...] = ()) -> dict[str, tuple[LossSpec, ...]]:
    """The variants of each candidate, and the losses of the user's own, if there are any."""
    variants = {"CAPM terms": CAPM, "HPG ridges": HPG, "APMS β₀": APMS}
    return variants | ({OWN: own} if own else {})


def make_studies(
    options: Options, cells: Mapping[str, tuple[str, ...]] | None = None
) -> list[Study]:
    """One study per dataset, of every variant and the losses of the user's own.

    Args:
      options: of the command.
      cells: the regimes of each dataset, by default the paper's.
    """
    studies = []
    for dataset, regimes in (CELLS if cells is None else cells).items():
        base = make_study("ablation", options, dataset, regimes=regimes, losses=("ce",))
        studies.append(replace(base, losses=(*CAPM, *HPG, *APMS, *base.losses[1:])))
    return studies


def read_places(studies: list[Study], folder: Path) -> "pd.DataFrame":
    """The records of every variant, with the place of each: its dataset and regime."""
    from experiments.engine.results import read_frames

    frame = read_frames(studies, folder)
    return frame.assign(place=frame["dataset"] + ", " + frame["regime"])


def show(studies: list[Study], command: Command) -> list[Path]:
    """Write the figure and the tables and print the latter, all from records."""
    from experiments.show.figures.studies import ablations
    from experiments.show.items import ablation_grids
    from experiments.show.metrics import headline
    from experiments.show.page import publish
    from experiments.show.summary import summarise

    frame = read_places(studies, command.out)
    summary = summarise(frame, (headline(frame).name, "nll"), by=("place", "loss"))
    shown = families(studies[0].losses[len(CAPM) + len(HPG) + len(APMS) :])
    figures = {"ablations": ablations(frame, shown)}
    return publish(command, "ablation", ablation_grids(frame, shown), summary, figures)


if __name__ == "__main__":
    command_line.run(main, "experiments.ablation", example="--seeds 10")
