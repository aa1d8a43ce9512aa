"""What the trainer asks of a model.

A model is a frozen value, made for so many inputs and classes. Its parameters travel as one
vector, so that an optimiser step is a handful of fused operations.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Array, Float, Float32

from pgeom.types import AnyArray

Masks = Any
"""A pytree of arrays `[n, ...]`: whatever a model draws for n examples while it is trained."""


@runtime_checkable
class Model(Protocol):
    """A network of fixed shape. Equal models are hashable and compile once."""

    @property
    def inputs(self) -> int:
        """How many features an example has, d."""
        ...

    @property
    def classes(self) -> int:
        """K."""
        ...

    @property
    def size(self) -> int:
        """How many parameters it has, P."""
        ...

    @property
    def activations(self) -> int:
        """How many numbers per example a forward pass holds, to budget memory."""
        ...

    def initial(self, rng: np.random.Generator) -> Float32[np.ndarray, " P"]:
        """The first parameters, drawn on the host."""
        ...

    def masks(self, key: jax.Array, n: int) -> Masks:
        """The random draws of one epoch for n examples, such as dropout masks."""
        ...

    def logits(
        self, parameters: Float[AnyArray, " P"], x: Float[AnyArray, "n d"], masks: Masks = None
    ) -> Float[Array, "n K"]:
        """Logits, with masks while training and without them afterwards."""
        ...


Architecture = Callable[[tuple[int, ...], int], Model]
"""`architecture(input_shape, classes)`: the model for a dataset.

The input shape is that of an image, where the examples are images, and otherwise `(d,)`. The model
takes examples `[n, d]` either way.
"""
