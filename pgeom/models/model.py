"""Models: what the trainer asks of one, and those made of dense layers.

A model is a frozen value, made for so many inputs and classes. Its parameters travel as one vector,
so that an optimiser step is a handful of fused operations. Masks for dropout come from outside, so
that every loss of a cell sees the same.

>>> model = MLP(inputs=64, classes=10)
>>> model.width, model.size
(96, 16522)
>>> model.logits(model.initial(np.random.default_rng(0)), np.zeros((5, 64))).shape
(5, 10)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, UInt16

from pgeom.types import AnyArray, Rows

Parameters = Float[AnyArray, " P"]
Inputs = Float[AnyArray, "n d"]
Logits = Rows
Masks = Any
"""A pytree of arrays `[n, ...]`: whatever a model draws for n examples while it is trained."""


@runtime_checkable
class Model(Protocol):
    """A network of fixed shape. Equal models are hashable and compile once."""

    @property
    def inputs(self) -> int:
        """How many features an example has, d."""

    @property
    def classes(self) -> int:
        """K."""

    @property
    def size(self) -> int:
        """How many parameters it has, P."""

    @property
    def activations(self) -> int:
        """How many numbers per example a forward pass holds, to budget memory."""

    def initial(self, rng: np.random.Generator) -> Float32[np.ndarray, " P"]:
        """The first parameters, drawn on the host."""

    def masks(self, key: jax.Array, n: int) -> Masks:
        """The random draws of one epoch for n examples, such as dropout masks."""

    def logits(self, parameters: Parameters, x: Inputs, masks: Masks = None) -> Logits:
        """Logits, with masks while training and without them afterwards."""


Architecture = Callable[[tuple[int, ...], int], Model]
"""`architecture(input_shape, classes)`: the model for a dataset.

The input shape is that of an image, where the examples are images, and otherwise `(d,)`. The model
takes examples `[n, d]` either way.
"""


STEPS = 2**16  # a rate is rounded to sixteen random bits
# of Threefry-2x32 with twenty rounds: Salmon et al. (2011)
ROTATIONS, PARITY = ((13, 15, 26, 6), (17, 29, 16, 24)), 0x1BD11BDA


def dropped_values(rate: float) -> int:
    """How many of the 65,536 values of sixteen random bits drop a unit."""
    return round(rate * STEPS)


def kept_scale(rate: float) -> float:
    """What the units that are kept are multiplied by, to make up for the dropped ones."""
    return 1 / (1 - dropped_values(rate) / STEPS)


def draw_masks(
    key: jax.Array, rate: float, *, layers: int, n: int, width: int
) -> tuple[Bool[Array, "n width"], ...]:
    """A mask per layer, True where a unit is kept.

    Booleans, which an epoch copies for a quarter of a float's cost.
    """
    kept = random_bits(key, layers * n * width) >= dropped_values(rate)
    return tuple(kept.reshape(layers, n, width))


def random_bits(key: jax.Array, size: int) -> UInt16[Array, " size"]:
    """The numbers of `jax.random.bits(key, (size,), jnp.uint16)`, sixteen random bits each.

    On a CPU, JAX puts the rounds of Threefry in a loop, each of which reads and writes all numbers.
    Written out, they are one loop over the numbers, and take a seventh of the time.
    """
    first, second = jax.random.key_data(key)
    keys = (first, second, first ^ second ^ np.uint32(PARITY))
    x, y = jnp.broadcast_to(keys[0], (size,)), jnp.arange(size, dtype=jnp.uint32) + keys[1]
    for number in range(1, 6):
        for distance in ROTATIONS[(number - 1) % 2]:
            x = x + y
            y = x ^ (y << np.uint32(distance) | y >> np.uint32(32 - distance))
        x, y = x + keys[number % 3], y + keys[(number + 1) % 3] + np.uint32(number)
    return (x ^ y).astype(jnp.uint16)


def masked_relu(
    x: Float[Array, "n width"], mask: Bool[AnyArray, "n width"] | None, scale: float
) -> Float[Array, "n width"]:
    """ReLU, with dropout where there is a mask."""
    if mask is None:
        return jax.nn.relu(x)  # passes NaN on, by which a diverged run is recognised
    return jnp.where(mask & (x > 0), scale * x, 0.0)


def rows_times(
    x: Float[Array, "n d"], kernel: Float[Array, "d width"], bias: Float[Array, " width"]
) -> Float[Array, "n width"]:
    """A layer of examples that are rows.

    The bias is added as a matrix product, whose gradient is one, too. As a sum over the examples,
    XLA fuses that into the loop that gathers all gradients in one vector, and adds up column by
    column: a step of a convolutional network takes twice the time.

    The gradient of the kernel is a product of the inputs and the slopes of the outputs, of which a
    CPU has to transpose the first. A transposed kernel has a gradient that begins with the outputs:
    for a head of ten classes that product takes a seventh of the time. The barrier keeps XLA from
    seeing that the two are the same.
    """
    if kernel.shape[1] < kernel.shape[0]:
        values = x @ jax.lax.optimization_barrier(kernel.T).T
    else:
        values = x @ kernel
    return values + jnp.ones((x.shape[0], 1), x.dtype) @ bias[None]


def columns_times(
    x: Float[Array, "d n"], kernel: Float[Array, "d width"], bias: Float[Array, " width"]
) -> Float[Array, "width n"]:
    """A layer of examples that are columns, with its bias as in `rows_times`."""
    return kernel.T @ x + bias[:, None] @ jnp.ones((1, x.shape[1]), x.dtype)


class DenseModel(ABC):
    """Layers with ReLU and dropout, and a linear head.

    The parameters are the bias and the kernel of each layer, one after another. Another model whose
    only parameters are these, such as a convolutional network, has `masks`, `activations` and
    `logits` of its own.
    """

    @property
    def dropout(self) -> float:
        """The rate at which hidden units are dropped."""
        return 0.0

    @property
    @abstractmethod
    def kernels(self) -> tuple[tuple[int, int], ...]:
        """The shape `[fan_in, width]` of each layer; all hidden ones have one width."""

    @property
    def size(self) -> int:
        return sum((fan_in + 1) * width for fan_in, width in self.kernels)

    @property
    def activations(self) -> int:
        """The inputs and the hidden units."""
        return sum(fan_in for fan_in, _ in self.kernels)

    def initial(self, rng: np.random.Generator) -> Float32[np.ndarray, " P"]:
        """Weights and biases uniform in ±1/√fan_in, as one vector.

        The paper does not state its initialisation; Flax's own gives other tables. On the host,
        because a nest of vmapped random functions takes seconds to compile.
        """
        parts = []
        for fan_in, width in self.kernels:
            bound = 1 / np.sqrt(fan_in)
            kernel, bias = (rng.uniform(-bound, bound, size) for size in (fan_in * width, width))
            parts += [bias, kernel]
        return np.concatenate(parts).astype(np.float32)

    def layers(self, parameters: Parameters) -> list[tuple[Array, Array]]:
        """The kernel `[fan_in, width]` and the bias of each layer."""
        sizes = [size for fan_in, width in self.kernels for size in (width, fan_in * width)]
        parts = jnp.split(jnp.asarray(parameters), np.cumsum(sizes)[:-1])
        return [
            (kernel.reshape(shape), bias)
            for shape, bias, kernel in zip(self.kernels, parts[::2], parts[1::2], strict=True)
        ]

    def masks(self, key: jax.Array, n: int) -> tuple[Bool[Array, "n width"], ...]:
        """One for each hidden layer."""
        hidden, width = len(self.kernels) - 1, self.kernels[0][1]
        return draw_masks(key, self.dropout, layers=hidden, n=n, width=width)

    def logits(self, parameters: Parameters, x: Inputs, masks: Masks = None) -> Logits:
        *hidden, head = self.layers(parameters)
        rows, scale = jnp.asarray(x), kept_scale(self.dropout)
        for layer, mask in zip(hidden, masks or [None] * len(hidden), strict=True):
            rows = masked_relu(rows_times(rows, *layer), mask, scale)
        return rows_times(rows, *head)


@dataclass(frozen=True)
class Linear(DenseModel):
    """Multinomial regression: logits that are affine in so many inputs."""

    inputs: int
    classes: int

    @property
    def kernels(self) -> tuple[tuple[int, int], ...]:
        return ((self.inputs, self.classes),)


@dataclass(frozen=True)
class MLP(DenseModel):
    """The network of the paper: two hidden layers, ReLU, dropout after both.

    The paper does not state that both have dropout.

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
    def kernels(self) -> tuple[tuple[int, int], ...]:
        return (self.inputs, self.width), (self.width, self.width), (self.width, self.classes)
