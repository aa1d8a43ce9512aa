"""The network of the paper: two hidden layers, ReLU, dropout after both.

>>> import numpy as np
>>> model = MLP(inputs=64, classes=10)
>>> model.width, model.size
(96, 16522)
>>> model.logits(model.initial(np.random.default_rng(0)), np.zeros((5, 64))).shape
(5, 10)
"""

from dataclasses import dataclass

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from pgeom.models.dense import DenseModel, Layer, rows_times
from pgeom.models.dropout import draw_masks, kept_scale, masked_relu
from pgeom.types import AnyArray

LayerMasks = tuple[Bool[AnyArray, "n width"], ...]  # of the hidden layers


class HiddenLayers(nn.Module):
    """Dense, ReLU, dropout, twice, and a linear head."""

    width: int
    classes: int
    scale: float  # of the units that are kept

    @nn.compact
    def __call__(
        self, x: Float[AnyArray, "n d"], masks: LayerMasks | None = None
    ) -> Float[Array, "n K"]:
        rows = jnp.asarray(x)
        for layer in range(2):  # the paper does not state that both layers have dropout
            mask = None if masks is None else masks[layer]
            values = rows_times(rows, *Layer(rows.shape[1], self.width)())
            rows = masked_relu(values, mask, self.scale)
        return rows_times(rows, *Layer(self.width, self.classes)())


@dataclass(frozen=True)
class MLP(DenseModel):
    """Two hidden layers for so many inputs and classes.

    Attributes:
      inputs: d.
      classes: K.
      hidden: the width of both layers; the protocol's where none is given.
      dropout: the rate at which units are dropped, in steps of 1/65,536.
    """

    inputs: int
    classes: int
    hidden: int | None = None
    dropout: float = 0.1

    @property
    def width(self) -> int:
        return self.hidden or (96 if self.inputs >= 24 else 64)

    @property
    def activations(self) -> int:
        return self.inputs + 2 * self.width

    @property
    def layers(self) -> HiddenLayers:
        return HiddenLayers(self.width, self.classes, kept_scale(self.dropout))

    def masks(self, key: jax.Array, n: int) -> LayerMasks:
        return draw_masks(key, self.dropout, layers=2, n=n, width=self.width)
