"""Measures: what an experiment wants to know of a trained run beyond the usual scores.

A measure is a function of one run, which is compiled once for all the runs of a member.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from pgeom.data.splits import Split
from pgeom.models.model import Model
from pgeom.types import AnyArray

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
    """`compute(predict, test, key) -> {field: scalar}` of one run, under a name."""

    name: str
    compute: Callable[[Predict, TestPart, jax.Array], Mapping[str, Float[Array, ""]]]

    def runs(
        self, model: Model, parameters: Float[np.ndarray, "L P"], split: Split, seed: int
    ) -> Fields:
        """The fields of the L runs with these parameters."""
        moments = (moment.astype(np.float32) for moment in split.moments)
        test = TestPart(split.test.features, split.test.labels, *moments)
        fields = _program(self, model)(parameters, test, jax.random.key(seed))
        return {name: np.asarray(values) for name, values in fields.items()}

    def one_run(
        self, model: Model
    ) -> Callable[[Float[Array, " P"], TestPart, jax.Array], Mapping[str, Float[Array, ""]]]:
        """`(parameters, test, key) -> fields`."""

        def compute(parameters: Float[Array, " P"], test: TestPart, key: jax.Array):
            return self.compute(lambda x: model.logits(parameters, x), test, key)

        return compute


@cache
def _program(measure: Measure, model: Model) -> Callable:
    return jax.jit(jax.vmap(measure.one_run(model), in_axes=(0, None, None)))


def blank_test(model: Model, n: int) -> TestPart:
    """n test examples of the model's dimensions, all zeros: to trace a measure with."""
    vector = np.zeros(model.inputs, np.float32)
    return TestPart(np.tile(vector, (n, 1)), np.zeros(n, np.int32), vector, vector)
