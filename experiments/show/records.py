"""Everything the report needs: what is missing is trained, and all is read from records."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments import (
    ablation,
    comparison,
    known_truth,
    links,
    longtail,
    lr_sensitivity,
    robustness,
    runtime,
)
from experiments.engine.cells import prepare
from experiments.engine.command import Command
from experiments.engine.identity import identify
from experiments.engine.options import Options, make_study
from experiments.engine.results import TestLogits, read_frame, read_logits
from experiments.engine.store import Store
from experiments.engine.study import Study
from experiments.show.evidence import Evidence, weigh
from experiments.show.figures.legend import Legend, legend
from experiments.show.links import read_links
from experiments.show.regrets import Displacement, measure_regrets, predict_displacement
from experiments.show.summary import count_selected
from pgeom.data.regimes import Regime
from pgeom.losses.catalogue import GENERAL
from pgeom.training.settings import PROTOCOL

NOISIEST = "symmetric-40"
CLASSES, SIZES = 5, (250, 1000, 4000)  # of mixtures with a known posterior


class Studies(NamedTuple):
    """The studies of the report; each has the folder of its experiment for its records."""

    noise: dict[str, Study]  # by dataset
    longtail: tuple[Study, Study]  # with and without early stopping
    robustness: Study
    ablation: list[Study]
    rates: tuple[Study, ...]
    runtime: Study
    known_truth: dict[int, Study]  # by the number of examples
    links: list[Study]  # which the report reads, and does not train


class Results(NamedTuple):
    """All records of the report, as frames, and what the figures need beside them."""

    seeds: int
    noise: dict[str, pd.DataFrame]  # by dataset
    longtail: dict[str, pd.DataFrame]  # by the way to stop, the protocol's first
    robustness: pd.DataFrame
    ablation: pd.DataFrame
    rate_counts: pd.DataFrame
    runtime: pd.DataFrame
    regrets: pd.DataFrame  # where the posterior is known
    regret_legend: Legend  # of the losses of those
    displacement: Displacement  # of APMS there, as theory has it
    noisiest: TestLogits  # of digits
    tail: TestLogits
    tail_counts: list[int]  # training examples of each class
    legend: Legend
    evidence: Evidence | None = None  # where cross-entropy was run
    links: pd.DataFrame | None = None  # where `experiments.links` has trained these seeds

    @property
    def runs(self) -> pd.DataFrame:
        """The runs of the protocol, of all datasets: what the published tables are about."""
        frames = [*self.noise.values(), self.early_stopping]
        return pd.concat([one.astype({"regime": str, "loss": str}) for one in frames])

    @property
    def early_stopping(self) -> pd.DataFrame:
        """The long tail as the protocol has it."""
        return next(iter(self.longtail.values()))

    @property
    def clean(self) -> pd.DataFrame:
        """Clean digits."""
        digits = self.noise["digits"]
        return digits[digits["regime"] == "clean"]


def make_studies(options: Options, losses: tuple[str, ...]) -> Studies:
    """The studies of every experiment, restricted to some losses."""
    general = tuple(loss for loss in losses if loss in GENERAL)
    noise = {
        name: make_study("noise", options, name, losses=general)
        for name in comparison.NOISE_DATASETS
    }
    return Studies(
        noise=noise,
        longtail=longtail.make_studies(options, losses),
        robustness=robustness.make_probed(options, general),
        ablation=ablation.make_studies(replace(options, generators=(), own_losses=())),
        rates=lr_sensitivity.vary_rate(noise["digits"]),
        runtime=runtime.make_timed(options, general),
        known_truth=known_truth.make_studies(_to_the_end(options), CLASSES, SIZES, losses=general),
        links=links.make_studies(
            replace(options, generators=(), own_losses=(), link="softmax"),
        ),
    )


def _to_the_end(options: Options) -> Options:
    """The settings of `experiments.known_truth`, with the report's seeds and epochs."""
    fixed = known_truth.DEFAULTS
    return replace(
        options,
        epochs=options.epochs or PROTOCOL.epochs,
        batch_size=fixed.batch_size,
        learning_rate=fixed.learning_rate,
        model=fixed.model,
        stop_on=fixed.stop_on,
        link="softmax",
    )


def train(studies: Studies, folder: Path, command: Command) -> None:
    """Train what is missing in the experiments' folders."""
    groups: dict[str, list[Study]] = {
        "noise": [*studies.noise.values()],
        "longtail": [*studies.longtail],
        "robustness": [studies.robustness],
        "ablation": [*studies.ablation],
        "lr_sensitivity": [],
        "runtime": [studies.runtime],
        "known_truth": [*studies.known_truth.values()],
    }
    for study in studies.rates:
        groups[_rate_folder(studies, study)].append(study)
    command.train_in({folder / name: group for name, group in groups.items()})


def read(studies: Studies, folder: Path) -> Results:
    """Read it all."""
    digits, tail = studies.noise["digits"], studies.longtail[0]
    mixture = studies.known_truth[max(SIZES)]
    rates = {
        study.training.learning_rate: read_frame(study, folder / _rate_folder(studies, study))
        for study in studies.rates
    }
    results = Results(
        seeds=len(digits.seeds),
        noise={name: read_frame(study, folder / "noise") for name, study in studies.noise.items()},
        longtail={one.name: read_frame(one, folder / "longtail") for one in studies.longtail},
        robustness=read_frame(studies.robustness, folder / "robustness"),
        ablation=ablation.read_places(studies.ablation, folder / "ablation"),
        rate_counts=count_selected(rates),
        runtime=read_frame(studies.runtime, folder / "runtime"),
        regrets=measure_regrets(studies.known_truth, folder / "known_truth"),
        regret_legend=legend(mixture.losses),
        displacement=predict_displacement(mixture),
        noisiest=read_logits(digits, Regime.parse(NOISIEST), folder / "noise"),
        tail=read_logits(tail, tail.regimes[0], folder / "longtail"),
        tail_counts=count_training(tail),
        legend=legend(tail.losses),
        links=read_if_complete(studies.links, folder / "links"),
    )
    return results._replace(evidence=weigh_evidence(results))


def read_if_complete(studies: list[Study], folder: Path) -> pd.DataFrame | None:
    """The runs of the study of links, or None unless its own command has trained them all."""
    recorded = Store(folder).records
    if not recorded:
        return None
    runs = (key for study in studies for cell in study.cells for key in identify(study).runs(cell))
    return read_links(studies, folder) if all(key in recorded for key in runs) else None


def weigh_evidence(results: Results) -> Evidence | None:
    """What the runs say about the losses, if there are seeds to compare and a reference."""
    if results.seeds < 2 or "ce" not in results.noise["digits"]["loss"].unique():
        return None
    others = {"ablation": results.ablation, "robustness": results.robustness}
    return weigh(results.runs, None, others)


def count_training(study: Study) -> list[int]:
    """The number of training examples of each class, in the first cell of a study."""
    labels = prepare(study, study.cells[0]).noise.labels
    return np.bincount(labels, minlength=study.dataset.num_classes).tolist()


def _rate_folder(studies: Studies, study: Study) -> str:
    """The protocol's own learning rate was trained by the noise experiment."""
    protocol = studies.noise["digits"].training
    return "noise" if study.training == protocol else "lr_sensitivity"
