"""The runs of several studies as samples over matched seeds, by place, loss and metric.

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

from experiments.tables.margins import compared, headline
from pgeom.data.regimes import KINDS, Regime


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
