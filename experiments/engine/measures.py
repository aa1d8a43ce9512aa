"""Measures: what an experiment wants to know of a trained run beyond the usual scores.

A measure is a function of one run, which is compiled once for all the runs of a member.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from pgeom.data.splits import Split
from pgeom.models.model import Model

Predict = Callable[[Float[Array, "n d"]], Float[Array, "n K"]]


class TestPart(NamedTuple):
    """The test examples as a model sees them, and the moments by which they were standardised."""

    __test__ = False  # pytest takes the name for that of a test

    features: Float[Array, "n d"]
    labels: Int[Array, " n"]
    mean: Float[Array, " d"]
    scale: Float[Array, " d"]


@dataclass(frozen=True)
class Measure:
    """`compute(predict, test, key) -> {field: scalar}` of one run, under a name."""

    name: str
    compute: Callable[[Predict, TestPart, jax.Array], Mapping[str, Float[Array, ""]]]

    def runs(self, model: Model, parameters: np.ndarray, split: Split, seed: int) -> dict:
        """The fields `[L]` of the runs with parameters `[L, P]`."""
        test = TestPart(split.test.features, split.test.labels, split.mean, split.scale)
        fields = _program(self, model)(parameters, test, jax.random.key(seed))
        return {name: np.asarray(values) for name, values in fields.items()}

    def one_run(self, model: Model) -> Callable:
        """`(parameters [P], test, key) -> fields`."""

        def compute(parameters, test, key):
            return self.compute(lambda x: model.logits(parameters, x), test, key)

        return compute


@cache
def _program(measure: Measure, model: Model) -> Callable:
    return jax.jit(jax.vmap(measure.one_run(model), in_axes=(0, None, None)))


def example_shapes(model: Model) -> TestPart:
    """A few test examples of the model's dimensions, as shapes."""
    n, d = 2, model.inputs
    vector = jax.ShapeDtypeStruct((d,), jnp.float32)
    labels = jax.ShapeDtypeStruct((n,), jnp.int32)
    return TestPart(jax.ShapeDtypeStruct((n, d), jnp.float32), labels, vector, vector)
