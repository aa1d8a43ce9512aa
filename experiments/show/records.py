"""What is shown, gathered from the records of several studies: runs, logits, and what they say."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from experiments.engine.results import TestLogits, read_frame
from experiments.engine.store import Store
from experiments.engine.study import Study
from experiments.show.claims import PROTOCOL, check_claims
from experiments.show.contrasts import RankedLosses, compare_losses, rank_losses
from experiments.show.controls import compare_controls
from experiments.show.decisions import decide, judge_situations
from experiments.show.figures.panels import Legend
from experiments.show.metrics import Samples
from experiments.show.theory import Proofs
from pgeom.losses.spec import LossSpec


class Gatherer:
    """Reads the records of each folder once."""

    def __init__(self) -> None:
        self._stores: dict[Path, Store] = {}

    def store(self, folder: Path) -> Store:
        """The store of a folder."""
        return self._stores.setdefault(folder, Store(folder))

    def frame(self, study: Study, folder: Path) -> pd.DataFrame:
        """The runs of a study, in its order."""
        return read_frame(study, folder, self.store(folder))

    def frames(self, studies: Iterable[tuple[Study, Path]]) -> pd.DataFrame:
        """The runs of several studies, each with the folder of its records."""
        frames = [self.frame(*one).astype({"regime": str, "loss": str}) for one in studies]
        return pd.concat(frames, ignore_index=True)


class Evidence(NamedTuple):
    """What the runs of the protocol say about the losses.

    Attributes:
      samples: the protocol's runs.
      effects: every loss against the references, one row per comparison.
      ranked: mean ranks, one entry per metric.
      judged: every loss against cross-entropy in every situation.
      decisions: one row per situation.
      claims: one row per claim of the paper.
      control_runs: the runs of each control by its name.
      controls: `effects` under the protocol and every control, in three metrics; empty without
        controls.
    """

    samples: Samples
    effects: pd.DataFrame
    ranked: list[RankedLosses]
    judged: pd.DataFrame
    decisions: pd.DataFrame
    claims: pd.DataFrame
    control_runs: dict[str, pd.DataFrame]
    controls: pd.DataFrame

    @property
    def seeds(self) -> int:
        """How many seeds there are."""
        return int(self.samples.runs["seed"].nunique())


def weigh(
    runs: pd.DataFrame,
    control_runs: Mapping[str, pd.DataFrame] | None = None,
    others: Mapping[str, pd.DataFrame] | None = None,
) -> Evidence:
    """Compare, rank, decide, and check the paper's claims.

    Args:
      runs: of the protocol.
      control_runs: by the name of the control.
      others: the runs of the studies `ablation` and `robustness`, where some claims are decided.
    """
    samples, controls = Samples(runs), dict(control_runs or {})
    # what a control may change most: the headline, and NLL before and after calibration
    metrics = samples.headline.name, "nll", "calibrated_nll"
    effects = compare_losses(samples)
    sources = {PROTOCOL: samples} | {name: Samples(one) for name, one in (others or {}).items()}
    return Evidence(
        samples=samples,
        effects=effects,
        ranked=rank_losses(samples),
        judged=judge_situations(samples),
        decisions=decide(samples, effects),
        claims=check_claims(sources),
        control_runs=controls,
        controls=compare_controls(effects, controls, metrics) if controls else effects.iloc[:0],
    )


class Results(NamedTuple):
    """All records of the report, as frames, and what the figures need beside them."""

    noise: dict[str, pd.DataFrame]  # by dataset
    longtail: dict[str, pd.DataFrame]  # by the way to stop, the protocol's first
    robustness: pd.DataFrame
    ablation: pd.DataFrame
    families: dict[str, tuple[LossSpec, ...]]  # of its variants
    rate_counts: pd.DataFrame
    runtime: pd.DataFrame
    regrets: pd.DataFrame  # where the posterior is known
    regret_legend: Legend  # of the losses of those
    noisiest: TestLogits  # of digits
    tail: TestLogits
    tail_counts: list[int]  # training examples of each class
    legend: Legend
    evidence: Evidence
    links: pd.DataFrame | None = None  # where `experiments.links` has trained these seeds
    proofs: Proofs | None = None  # what `proofs_numeric` checked, where it was run
    pictures: Mapping[str, Path] = {}  # of the theory, as SVG

    @property
    def runs(self) -> pd.DataFrame:
        """The runs of the protocol, of all datasets: what the published tables are about."""
        return self.evidence.samples.runs

    @property
    def early_stopping(self) -> pd.DataFrame:
        """The long tail as the protocol has it."""
        return next(iter(self.longtail.values()))

    @property
    def clean(self) -> pd.DataFrame:
        """Clean digits."""
        digits = self.noise["digits"]
        return digits[digits["regime"] == "clean"]
