"""A study: all that a set of runs has in common, as one value.

>>> from pgeom.data import sources
>>> from pgeom.losses import catalogue
>>> from pgeom.models.model import MLP
>>> cancer = sources.load("breast-cancer")
>>> losses = (catalogue.LOSSES["ce"], catalogue.LOSSES["hpg"])
>>> study = Study("noise", cancer, cancer.regimes, (0, 1), losses, MLP(30, 2))
>>> len(study.cells), study.runs
(6, 12)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pgeom.data.dataset import Dataset
from pgeom.data.regimes import Regime
from pgeom.losses.spec import LossSpec
from pgeom.training.settings import PROTOCOL, Training

if TYPE_CHECKING:  # commands import this before JAX
    from experiments.engine.measures import Measure
    from pgeom.models.model import Model


class Cell(NamedTuple):
    """A regime and a seed of a study: what its runs share."""

    regime: Regime
    seed: int


@dataclass(frozen=True)
class Study:
    """Runs that are compared with each other: every loss in every regime with every seed.

    Attributes:
      name: tells it from its variants, as in "no early stopping".
      measure: what else to record of each run.
      timed: whether to train each run alone on one device and record its seconds.
      noisy_validation: whether validation labels have the noise of the regime, too.
      sources: how a command line named its parts, so that they can be found again: the arguments of
        `sources.load` for the "dataset", the word of `--model` for the "model", and for "losses" of
        the user's own, by name, the option and its word. None if it was made in Python.
      notes: what a user should know about what was chosen for them, one line each.
    """

    name: str
    dataset: Dataset
    regimes: tuple[Regime, ...]
    seeds: tuple[int, ...]
    losses: tuple[LossSpec, ...]
    model: "Model"
    training: Training = PROTOCOL
    measure: "Measure | None" = None
    timed: bool = False
    noisy_validation: bool = False
    sources: Mapping[str, Any] | None = field(default=None, hash=False)
    notes: tuple[str, ...] = ()

    @property
    def cells(self) -> list[Cell]:
        return [Cell(regime, seed) for regime in self.regimes for seed in self.seeds]

    @property
    def runs(self) -> int:
        return len(self.cells) * len(self.losses)
