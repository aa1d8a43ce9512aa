"""Everything the report needs: what is missing is trained, and all is read from records."""

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from experiments import ablation, cli, longtail, lr_sensitivity, robustness, runtime, tables
from experiments.cells import Cell
from experiments.jobs import Spent
from experiments.protocol import NOISE_DATASETS, REGIMES
from experiments.records import Store
from pgeom.losses import catalogue


class Study(NamedTuple):
    """The records of one job: where they are, which cells, and one row a run."""

    store: Store
    cells: list[Cell]
    frame: pd.DataFrame

    def of(self, regime: str) -> list[Cell]:
        return [cell for cell in self.cells if cell.regime == regime]


class Results(NamedTuple):
    """All records of the report."""

    seeds: int
    noise: dict[str, Study]  # by dataset
    longtail: dict[str, Study]  # by the way to stop
    robustness: pd.DataFrame
    ablation: pd.DataFrame
    rates: pd.DataFrame
    runtime: pd.DataFrame
    spent: Spent

    @property
    def runs(self) -> pd.DataFrame:
        """The runs of the protocol, of all datasets: what the published tables are about."""
        studies = [*self.noise.values(), self.longtail[longtail.EARLY]]
        frames = [study.frame.astype({"regime": str, "loss": str}) for study in studies]
        return pd.concat(frames, ignore_index=True)


def gather(folder: Path, losses: tuple[str, ...], command: cli.Command) -> Results:
    """Train what is missing in the experiments' folders, and read it all."""
    general = tuple(loss for loss in losses if loss in catalogue.GENERAL)
    noise, spent = _noise(folder / "noise", general, command)
    tail, more = _longtail(folder / "longtail", losses, command)
    probed, probing = _robustness(folder / "robustness", general, command)
    places = [Cell(*where, seed) for where in ablation.CELLS for seed in command.seeds]
    ablating = ablation.train_missing(folder / "ablation", places, command)
    rates, rating = _rates(folder, noise["digits"].cells, general, command)
    clean = noise["digits"].of("clean")
    timed = runtime.time_missing(folder / "runtime", clean, general, command)
    return Results(
        seeds=len(command.seeds),
        noise=noise,
        longtail=tail,
        robustness=probed,
        ablation=ablation.frame_of(folder / "ablation", places, command.training),
        rates=rates,
        runtime=tables.select(timed.runs(), clean, general),
        spent=spent + more + probing + ablating + rating,
    )


def _noise(out: Path, losses, command: cli.Command) -> tuple[dict[str, Study], Spent]:
    studies, spent = {}, Spent()
    for dataset in NOISE_DATASETS:
        cells = [Cell(dataset, name, seed) for name in REGIMES[dataset] for seed in command.seeds]
        store, more = command.train(out, cells, losses)
        studies[dataset] = Study(store, cells, tables.select(store.runs(), cells, losses))
        spent += more
    return studies, spent


def _longtail(out: Path, losses, command: cli.Command) -> tuple[dict[str, Study], Spent]:
    cells = [Cell(longtail.DATASET, longtail.REGIME, seed) for seed in command.seeds]
    stores, spent = longtail.train_missing(out, cells, losses, command)
    studies = {
        name: Study(store, cells, tables.select(store.runs(), cells, losses))
        for name, store in stores.items()
    }
    return studies, spent


def _robustness(out: Path, losses, command: cli.Command) -> tuple[pd.DataFrame, Spent]:
    cells = [Cell("digits", "clean", seed) for seed in command.seeds]
    store, spent = command.train(out, cells, losses, measure=robustness.probe)
    return tables.select(store.runs(), cells, losses), spent


def _rates(folder: Path, cells, losses, command) -> tuple[pd.DataFrame, Spent]:
    # the protocol's own learning rate was trained by the noise experiment
    stores, spent = lr_sensitivity.train_missing(
        folder / "lr_sensitivity", cells, losses, command, primary=folder / "noise"
    )
    return lr_sensitivity.frame_of(stores, cells, losses), spent
