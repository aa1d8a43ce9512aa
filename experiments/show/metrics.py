"""Runs as samples over matched seeds, and the metrics in which losses are compared.

Each metric has the largest difference that does not matter, its margin, stated before any
comparison is made. A test prediction that turns from confidently wrong to confidently right changes
the Brier score by 2, so the margin of accuracy, .005, is worth .01 of it.

Where classes are uneven, accuracy is that of the large ones: losses are then compared by balanced
accuracy, in every table, test, figure and sentence about the same runs.

>>> METRICS["nll"].margin, METRICS["nll"].gain(-0.3), METRICS["calibrated_nll"].words
(0.02, 0.3, 'calibrated NLL')
>>> runs = pd.DataFrame({"regime": ["clean"], "uneven": [True]})
>>> headline(runs).name, [metric.name for metric in compared(runs)][:3]
('balanced_accuracy', ['balanced_accuracy', 'accuracy', 'nll'])
>>> runs = pd.DataFrame({"dataset": "digits", "regime": "symmetric-40", "label": "CE", "loss": "ce",
...                      "seed": [0, 1], "accuracy": [0.91, 0.92]})
>>> samples = Samples(runs)
>>> [str(place) for place in samples.places], samples.places[0].kind
(['digits, symmetric-40'], 'symmetric')
>>> samples.matched([Column(samples.places[0], "ce", "accuracy")]).shape
(1, 2)
"""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float32, Int64

from pgeom.data.regimes import KINDS, Regime


class Metric(NamedTuple):
    """A metric of the records.

    Attributes:
      name: its field.
      label: in words, with an arrow towards the better end.
      margin: of equivalence.
    """

    name: str
    label: str
    margin: float = np.nan

    @property
    def higher_is_better(self) -> bool:
        """Whether the better end is the upper one."""
        return self.label.endswith("↑")

    @property
    def title(self) -> str:
        """The label without its arrow."""
        return self.label[:-2]

    @property
    def words(self) -> str:
        """What it is called within a sentence."""
        text = self.title
        kept = text[:2].isupper() or text.startswith("Brier")
        return text if kept else f"{text[0].lower()}{text[1:]}"

    def gain(self, difference):
        """The difference, positive where it is an improvement."""
        return difference if self.higher_is_better else -difference


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "Accuracy ↑", 0.005),
        Metric("balanced_accuracy", "Balanced accuracy ↑", 0.005),
        Metric("nll", "NLL ↓", 0.02),
        Metric("calibrated_nll", "Calibrated NLL ↓", 0.02),
        Metric("plain_calibrated_nll", "Plainly calibrated NLL ↓", 0.02),
        Metric("hedged_nll", "Hedged NLL ↓", 0.02),
        Metric("brier", "Brier ↓", 0.01),
        Metric("ece", "ECE ↓", 0.01),
        Metric("calibrated_ece", "Calibrated ECE ↓", 0.01),
        Metric("plain_calibrated_ece", "Plainly calibrated ECE ↓", 0.01),
        Metric("debiased_ece", "Debiased ECE ↓", 0.01),
        Metric("smooth_ece", "Smooth ECE ↓", 0.01),
        Metric("classwise_ece", "Classwise ECE ↓", 0.01),
        Metric("seconds", "Seconds per run ↓"),
        Metric("input_gradient_norm", "Input gradient ↓"),
    )
}
ACCURACY, BALANCED = METRICS["accuracy"], METRICS["balanced_accuracy"]
PROBABILITIES = tuple(METRICS[name] for name in ("nll", "calibrated_nll", "brier", "ece"))


def select(*names: str) -> dict[str, str]:
    """The labels of some metrics by name."""
    return {name: METRICS[name].label for name in names}


TEMPERED = select("nll", "calibrated_nll", "ece", "calibrated_ece")
CALIBRATION_ERRORS = select("ece", "debiased_ece", "smooth_ece", "classwise_ece")


def headline(runs: pd.DataFrame) -> Metric:
    """Accuracy, or balanced accuracy if classes are uneven by themselves or by every regime.

    A test part is as uneven as its dataset. Where only some regimes thin the classes of an even
    one, accuracy is balanced already.
    """
    return BALANCED if _has_uneven_classes(runs) or _is_thinned(runs) else ACCURACY


def compared(runs: pd.DataFrame) -> tuple[Metric, ...]:
    """The headline metric and the others, with accuracy beside a balanced one that differs."""
    plain = (ACCURACY,) if _has_uneven_classes(runs) else ()
    return tuple(dict.fromkeys((headline(runs), *plain, *PROBABILITIES)))


def _has_uneven_classes(runs: pd.DataFrame) -> bool:
    return "uneven" in runs and bool(runs["uneven"].any())


def _is_thinned(runs: pd.DataFrame) -> bool:
    regimes = runs["regime"].astype(str).unique()
    return all(KINDS[Regime.parse(regime).kind].thin is not None for regime in regimes)


class Place(NamedTuple):
    """A dataset under a regime: what the paper calls a cell."""

    dataset: str
    regime: str

    @property
    def kind(self) -> str:
        """The kind of its regime, as in `symmetric`."""
        return Regime.parse(self.regime).kind

    @property
    def is_noisy(self) -> bool:
        """Whether training labels are corrupted."""
        return KINDS[self.kind].corrupt is not None

    def __str__(self) -> str:
        return f"{self.dataset}, {self.regime}"


class Column(NamedTuple):
    """One metric of one loss in one place."""

    place: Place
    loss: str
    metric: str


class Samples:
    """Values over seeds, in the precision in which they were computed.

    Attributes:
      places: in the order of the runs.
      labels: of every loss by name, in the order of the runs.
      runs: one row each.
      headline: the metric that losses are compared by first.
      metrics: all that they are compared by.
    """

    def __init__(self, runs: pd.DataFrame) -> None:
        self.runs = runs.astype({"regime": str, "loss": str})
        keys = ["dataset", "regime", "loss"]
        self._parts = {
            (Place(dataset, regime), loss): part.set_index("seed").sort_index()
            for (dataset, regime, loss), part in self.runs.groupby(keys, sort=False)
        }
        self.headline, self.metrics = headline(self.runs), compared(self.runs)
        self._columns: dict[Column, tuple[np.ndarray, np.ndarray]] = {}
        self.places = list(dict.fromkeys(place for place, _ in self._parts))
        self.labels = dict(zip(self.runs["loss"], self.runs["label"], strict=True))

    def losses(self, place: Place) -> list[str]:
        """The losses that were run in a place."""
        return [loss for loss in self.labels if (place, loss) in self._parts]

    def matched(self, columns: Sequence[Column]) -> Float32[np.ndarray, "columns seeds"]:
        """The values of some columns on the seeds that all of them have.

        A run without a number, because it diverged, has NaN.
        """
        parts = [self._column(column) for column in columns]
        common = reduce(np.intersect1d, {seeds.tobytes(): seeds for seeds, _ in parts}.values())
        return np.stack([values[np.searchsorted(seeds, common)] for seeds, values in parts])

    def _column(
        self, column: Column
    ) -> tuple[Int64[np.ndarray, " seeds"], Float32[np.ndarray, " seeds"]]:
        """The seeds of a column in order, and its values."""
        if column not in self._columns:
            part = self._parts[column.place, column.loss][column.metric]
            values = part.to_numpy(dtype=float, na_value=np.nan).astype(np.float32)
            self._columns[column] = part.index.to_numpy(np.int64), values
        return self._columns[column]

    def compared(
        self, place: Place, losses: Sequence[str], metric: str
    ) -> Float32[np.ndarray, "losses seeds"]:
        """One metric of some losses in a place on the seeds that all of them have."""
        return self.matched([Column(place, loss, metric) for loss in losses])

    def has(self, column: Column) -> bool:
        """Whether there are runs of a column."""
        part = self._parts.get((column.place, column.loss))
        return part is not None and column.metric in part

    def halves(self) -> tuple["Samples", "Samples"]:
        """The samples of every other seed, and those of the rest."""
        place = self.runs["seed"].rank(method="dense").astype(int)
        return Samples(self.runs[place % 2 == 1]), Samples(self.runs[place % 2 == 0])
