"""A small convolutional network for images: two layers of stride 2, a dense one, and a head.

A convolution is nine shifted images, concatenated, times one matrix: XLA's own convolution is tens
of times slower on a CPU inside a loop.

>>> import numpy as np
>>> model = CNN(image=(28, 28), classes=10)
>>> model.inputs, model.size
(784, 116698)
>>> model.logits(model.initial(np.random.default_rng(0)), np.zeros((5, 784))).shape
(5, 10)
"""

import math
from dataclasses import dataclass

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from pgeom.models.dense import Dense, DenseModel
from pgeom.models.dropout import draw_masks, kept_scale, masked_relu
from pgeom.types import AnyArray

KERNEL, STRIDE = 3, 2
DenseMask = tuple[Bool[AnyArray, "n hidden"]]


def patches(x: Float[Array, "n *space C"]) -> Float[Array, "n *smaller M"]:
    """The 3 × 3 neighbourhood of every second pixel, with zeros around the image, as one row.

    Args:
      x: images with channels last. Of sequences `[n, length, C]`, the neighbourhood is of three.

    Returns:
      `[n, ⌈H/2⌉, ⌈W/2⌉, 9 C]`, ordered by row, column and channel.
    """
    for axis in reversed(range(1, x.ndim - 1)):
        x = _neighbours(x, axis)
    return x


def _neighbours(x: Float[Array, "*shape C"], axis: int) -> Float[Array, "*smaller M"]:
    """Every second place along an axis, with the places before and after it, as channels."""
    pairs = _pad(x, axis, 0, x.shape[axis] % 2)
    pairs = pairs.reshape(*x.shape[:axis], -1, 2, *x.shape[axis + 1 :])
    here, after = (jax.lax.index_in_dim(pairs, k, axis + 1, keepdims=False) for k in (0, 1))
    before = _pad(jax.lax.slice_in_dim(after, 0, -1, axis=axis), axis, 1, 0)
    return jnp.concatenate([before, here, after], axis=-1)


def _pad(x: Array, axis: int, before: int, after: int) -> Array:
    return jnp.pad(x, [(before, after) if k == axis else (0, 0) for k in range(x.ndim)])


class ConvolutionalLayers(nn.Module):
    """Convolutions with ReLU, a dense layer with ReLU and dropout, and a linear head."""

    shape: tuple[int, ...]  # of an example, channels last
    channels: tuple[int, ...]
    hidden: int
    classes: int
    scale: float  # of the units that are kept

    @nn.compact
    def __call__(
        self, x: Float[AnyArray, "n d"], masks: DenseMask | None = None
    ) -> Float[Array, "n K"]:
        n = x.shape[0]
        images = jnp.asarray(x).reshape(n, *self.shape)
        for width in self.channels:
            rows = patches(images)
            # of one matrix: XLA multiplies arrays of four dimensions a third slower
            flat = nn.relu(Dense(width)(rows.reshape(-1, rows.shape[-1])))
            images = flat.reshape(*rows.shape[:-1], width)
        features = Dense(self.hidden)(images.reshape(n, -1))
        mask = None if masks is None else masks[0]
        return Dense(self.classes)(masked_relu(features, mask, self.scale))


@dataclass(frozen=True)
class CNN(DenseModel):
    """Two convolutions of stride 2 for images of one shape.

    Attributes:
      image: `(length,)` of a sequence, `(height, width)`, or `(height, width, channels)`.
      classes: K.
      channels: of the convolutions.
      hidden: the width of the dense layer.
      dropout: the rate at which its units are dropped, in steps of 1/65,536.
    """

    image: tuple[int, ...]
    classes: int
    channels: tuple[int, ...] = (12, 24)
    hidden: int = 96
    dropout: float = 0.2

    def __post_init__(self) -> None:
        if len(self.image) not in (1, 2, 3) or min(self.image) < 1:
            raise ValueError(
                "the shape of an image must be (length,), (height, width) or "
                f"(height, width, channels), got {self.image}"
            )

    @property
    def inputs(self) -> int:
        return math.prod(self.image)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an image with its channels, last."""
        return self.image if len(self.image) == 3 else (*self.image, 1)

    @property
    def activations(self) -> int:
        """The inputs, the patches and channels of each convolution, and the dense units."""
        *space, depth = self.shape
        total = self.inputs + self.hidden
        for width in self.channels:
            space = [-(-size // STRIDE) for size in space]
            total += math.prod(space) * (KERNEL ** len(space) * depth + width)
            depth = width
        return total

    @property
    def layers(self) -> ConvolutionalLayers:
        scale = kept_scale(self.dropout)
        return ConvolutionalLayers(self.shape, self.channels, self.hidden, self.classes, scale)

    def masks(self, key: jax.Array, n: int) -> DenseMask:
        (mask,) = draw_masks(key, self.dropout, layers=1, n=n, width=self.hidden)
        return (mask,)
