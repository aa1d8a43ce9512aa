"""Measures: what an experiment wants to know of a trained run beyond the usual scores.

A measure is a function of one run, which is compiled once for all the runs of a member whose
forecast is the softmax of their logits, and once for each loss with a canonical link.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from pgeom.data.splits import Split
from pgeom.losses.spec import LossSpec
from pgeom.models.model import Model
from pgeom.types import AnyArray, ClassStats, Forecast

Predict = Callable[[Float[Array, "n d"]], Float[Array, "n K"]]
Fields = dict[str, Float[np.ndarray, " L"]]
"""What was measured of L runs, by name."""


class TestPart(NamedTuple):
    """The test examples as a model sees them, and the moments by which they were standardised."""

    __test__ = False  # pytest takes the name for that of a test

    features: Float[AnyArray, "n d"]
    labels: Int[AnyArray, " n"]
    mean: Float[AnyArray, " d"]
    scale: Float[AnyArray, " d"]


@dataclass(frozen=True)
class Measure:
    """`compute(predict, forecast, test, key) -> {field: scalar}` of one run, under a name.

    `predict(x)` gives logits, and `forecast(logits)` the probabilities that the run's link makes of
    them.
    """

    name: str
    compute: Callable[[Predict, Forecast, TestPart, jax.Array], Mapping[str, Float[Array, ""]]]

    def runs(
        self,
        model: Model,
        losses: Sequence[LossSpec],
        parameters: Float[np.ndarray, "L P"],
        split: Split,
        stats: ClassStats,
        seed: int,
    ) -> Fields:
        """The fields of the L runs with these parameters."""
        moments = (moment.astype(np.float32) for moment in split.moments)
        test = TestPart(split.test.features, split.test.labels, *moments)
        fields: dict[str, np.ndarray] = {}
        places: dict[LossSpec | None, list[int]] = {}
        for place, loss in enumerate(losses):
            places.setdefault(loss if loss.link == "canonical" else None, []).append(place)
        for loss, those in places.items():
            program, key = _program(self, model, loss), jax.random.key(seed)
            for name, values in program(parameters[those], test, key, stats).items():
                fields.setdefault(name, np.zeros(len(losses), np.float32))[those] = values
        return fields

    def one_run(
        self, model: Model, loss: LossSpec | None = None
    ) -> Callable[..., Mapping[str, Float[Array, ""]]]:
        """`(parameters, test, key, stats) -> fields`, by softmax if no loss is given."""

        def compute(parameters, test: TestPart, key: jax.Array, stats: ClassStats | None):
            softmax = loss is None or stats is None
            forecast = jax.nn.softmax if softmax else loss.forecast(stats)
            return self.compute(lambda x: model.logits(parameters, x), forecast, test, key)

        return compute


@cache
def _program(measure: Measure, model: Model, loss: LossSpec | None) -> Callable:
    return jax.jit(jax.vmap(measure.one_run(model, loss), in_axes=(0, None, None, None)))


def blank_test(model: Model, n: int) -> TestPart:
    """n test examples of the model's dimensions, all zeros: to trace a measure with."""
    vector = np.zeros(model.inputs, np.float32)
    return TestPart(np.tile(vector, (n, 1)), np.zeros(n, np.int32), vector, vector)
