"""Multinomial regression: no hidden layer, nothing random while it is trained.

>>> import numpy as np
>>> model = Linear(inputs=4, classes=3)
>>> model.size, model.logits(np.zeros(15, np.float32), np.zeros((2, 4), np.float32)).shape
(15, (2, 3))
"""

from dataclasses import dataclass

import flax.linen as nn
import jax
from jaxtyping import Array, Float

from pgeom.models.dense import DenseModel
from pgeom.models.model import Masks
from pgeom.types import AnyArray


class Head(nn.Module):
    """One dense layer, which has no use for masks."""

    classes: int

    @nn.compact
    def __call__(self, x: Float[AnyArray, "n d"], masks: Masks = None) -> Float[Array, "n K"]:
        return nn.Dense(self.classes)(x)


@dataclass(frozen=True)
class Linear(DenseModel):
    """Logits that are affine in so many inputs."""

    inputs: int
    classes: int

    @property
    def activations(self) -> int:
        return self.inputs + self.classes

    @property
    def layers(self) -> Head:
        return Head(self.classes)

    def masks(self, key: jax.Array, n: int) -> tuple[()]:
        return ()
