"""A small convolutional network for images: two layers of stride 2, a dense one, and a head.

A convolution is shifted images, concatenated, times one matrix: XLA's own convolution is tens of
times slower on a CPU inside a loop. Examples are the last axis of every array, so that a shift
copies whole rows of memory. The first layer computes its pixels in the order in which the second
one reads them: apart by the parity of row and column, its *phases*, of which every neighbourhood of
stride 2 is made without strides.

>>> import numpy as np
>>> model = CNN(image=(28, 28), classes=10)
>>> model.inputs, model.size
(784, 116698)
>>> model.logits(model.initial(np.random.default_rng(0)), np.zeros((5, 784))).shape
(5, 10)
"""

import math
from dataclasses import dataclass
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from pgeom.models.model import (
    DenseModel,
    Inputs,
    Logits,
    Masks,
    Parameters,
    columns_times,
    draw_masks,
    kept_scale,
    masked_relu,
    rows_times,
)

KERNEL, STRIDE = 3, 2
WINDOW = KERNEL + STRIDE  # the pixels along an axis of which the first layer makes two


def windows(x: Float[Array, "C *space n"]) -> Float[Array, "M *blocks n"]:
    """The 5 × 5 pixels, from one before, of every block of 4 × 4, with zeros around the image.

    Args:
      x: images. Of sequences `[C, length, n]`, the windows are of five.

    Returns:
      `[25 C, ⌈H/4⌉, ⌈W/4⌉, n]`, ordered by row, column and channel of the window.
    """
    step = STRIDE**2
    blocks = [-(-size // step) for size in x.shape[1:-1]]
    after = [step * count - size for count, size in zip(blocks, x.shape[1:-1], strict=True)]
    padded = jnp.pad(x, [(0, 0), *((1, width) for width in after), (0, 0)])

    def shifted(offsets):
        places = [
            slice(k, k + step * (count - 1) + 1, step)
            for k, count in zip(offsets, blocks, strict=True)
        ]
        return padded[(slice(None), *places)]

    return jnp.concatenate([shifted(k) for k in product(range(WINDOW), repeat=len(blocks))])


def on_windows(kernel: Float[Array, "T C width"], rank: int) -> Float[Array, "M phases_width"]:
    """The matrix that makes all phases of a window: the kernel at each of its places.

    Args:
      kernel: of the `T = 3^rank` taps of a convolution.
      rank: 2 for images, 1 for sequences.

    Returns:
      `[5^rank C, 2^rank width]`, the columns ordered by phase and channel.
    """
    taps = kernel.reshape(*(KERNEL,) * rank, *kernel.shape[1:])
    placed = [
        jnp.pad(taps, [*((STRIDE * bit, STRIDE - STRIDE * bit) for bit in phase), (0, 0), (0, 0)])
        for phase in product((0, 1), repeat=rank)
    ]
    return jnp.concatenate(placed, axis=-1).reshape(WINDOW**rank * kernel.shape[1], -1)


def neighbourhoods(phases: Float[Array, "M *space n"]) -> Float[Array, "N *space n"]:
    """The 3 × 3 pixels around every second one, with zeros before the first.

    Args:
      phases: `[2^rank C, ...]`, the even and odd rows and columns of an image.

    Returns:
      `[3^rank C, ...]`, ordered by row, column and channel of the neighbourhood.
    """
    rank = phases.ndim - 2
    parts = dict(zip(product((0, 1), repeat=rank), jnp.split(phases, 2**rank), strict=True))

    def around(tap):
        # the pixel before an even one is odd, of the place before
        part = parts[tuple(int(k != 1) for k in tap)]
        for axis, k in enumerate(tap, start=1):
            part = _previous(part, axis) if k == 0 else part
        return part

    return jnp.concatenate([around(tap) for tap in product(range(KERNEL), repeat=rank)])


def _previous(x, axis):
    """What is one place before along an axis, zero at the first."""
    widths = [(1, 0) if k == axis else (0, 0) for k in range(x.ndim)]
    return jnp.pad(jax.lax.slice_in_dim(x, 0, -1, axis=axis), widths)


def _inside(sizes):
    """Which pixels of the phases are those of an image of these sizes; the others fill up pairs."""
    image = np.pad(np.ones(sizes, bool), [(0, size % 2) for size in sizes])
    starts = product((0, 1), repeat=len(sizes))
    phases = [image[tuple(slice(start, None, 2) for start in phase)] for phase in starts]
    return np.stack(phases)[:, None, ..., None]


def _first(images, kernel, bias):
    """The phases of the first layer."""
    depth, *sizes, _ = images.shape
    rank, width = len(sizes), kernel.shape[1]
    kernel = on_windows(kernel.reshape(-1, depth, width), rank)
    phases = _multiply(windows(images), kernel, jnp.tile(bias, STRIDE**rank))
    smaller = [-(-size // STRIDE) for size in sizes]
    if all(size % STRIDE == 0 for size in smaller):
        return phases
    by_phase = phases.reshape(STRIDE**rank, -1, *phases.shape[1:])
    return jnp.where(_inside(smaller), by_phase, 0).reshape(phases.shape)


def _multiply(columns, kernel, bias):
    """A layer with ReLU on every pixel."""
    flat = columns_times(columns.reshape(columns.shape[0], -1), kernel, bias)
    return jax.nn.relu(flat).reshape(-1, *columns.shape[1:])


@dataclass(frozen=True)
class CNN(DenseModel):
    """Two convolutions of stride 2 for images of one shape.

    Attributes:
      image: `(length,)` of a sequence, `(height, width)`, or `(height, width, channels)`.
      classes: K.
      channels: of the two convolutions.
      hidden: the width of the dense layer.
      dropout: the rate at which its units are dropped, in steps of 1/65,536.
    """

    image: tuple[int, ...]
    classes: int
    channels: tuple[int, int] = (12, 24)
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
        """The inputs, the columns and channels of each convolution, and the dense units."""
        (_, first), (columns, second), (flat, _), _ = self.kernels
        *sizes, depth = self.shape
        per_block = WINDOW ** len(sizes) * depth + STRIDE ** len(sizes) * first + columns + second
        return self.inputs + flat // second * per_block + self.hidden

    @property
    def kernels(self) -> tuple[tuple[int, int], ...]:
        """Of two convolutions, the dense layer and the head."""
        *sizes, depth = self.shape
        taps, (first, second) = KERNEL ** len(sizes), self.channels
        pixels = math.prod(-(-size // STRIDE**2) for size in sizes)
        dense = ((pixels * second, self.hidden), (self.hidden, self.classes))
        return ((taps * depth, first), (taps * first, second), *dense)

    def masks(self, key: jax.Array, n: int) -> tuple[Bool[Array, "n hidden"], ...]:
        return draw_masks(key, self.dropout, layers=1, n=n, width=self.hidden)

    def logits(self, parameters: Parameters, x: Inputs, masks: Masks = None) -> Logits:
        first, second, (kernel, bias), head = self.layers(parameters)
        images = jnp.moveaxis(jnp.asarray(x).reshape(-1, *self.shape), (0, -1), (-1, 0))
        maps = _multiply(neighbourhoods(_first(images, *first)), *second)
        # the rows of the kernel are ordered by place, and those of the maps by channel
        kernel = jnp.swapaxes(kernel.reshape(-1, maps.shape[0], self.hidden), 0, 1)
        kernel = kernel.reshape(-1, self.hidden)
        features = columns_times(maps.reshape(-1, maps.shape[-1]), kernel, bias)
        (mask,) = masks or (None,)
        units = masked_relu(features.T, mask, kept_scale(self.dropout))
        return rows_times(units, *head)
