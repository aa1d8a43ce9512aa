"""Models: what the trainer asks of one, and those made of dense layers.

What the trainer asks of a model.

A model is a frozen value, made for so many inputs and classes. Its parameters travel as one
vector, so that an optimiser step is a handful of fused operations.

Dropout with masks that come from outside: every loss of a member sees the same.

>>> masks = draw_masks(jax.random.key(0), 0.5, layers=2, n=3, width=4)
>>> [mask.shape for mask in masks], kept_scale(0.5)
([(3, 4), (3, 4)], 2.0)

What models made of dense layers have in common: their parameters as one vector.

Multinomial regression: no hidden layer, nothing random while it is trained.

>>> import numpy as np
>>> model = Linear(inputs=4, classes=3)
>>> model.size, model.logits(np.zeros(15, np.float32), np.zeros((2, 4), np.float32)).shape
(15, (2, 3))

The network of the paper: two hidden layers, ReLU, dropout after both.

>>> import numpy as np
>>> model = MLP(inputs=64, classes=10)
>>> model.width, model.size
(96, 16522)
>>> model.logits(model.initial(np.random.default_rng(0)), np.zeros((5, 64))).shape
(5, 10)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Protocol, cast, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Float32, UInt16

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
        return nn.relu(x)  # passes NaN on, by which a diverged run is recognised
    return jnp.where(mask & (x > 0), scale * x, 0.0)


class Layer(nn.Module):
    """The kernel `[inputs, width]` and the bias of a layer, for `rows_times` or `columns_times`.

    Both add the bias as a matrix product, whose gradient is one, too. As a sum over the examples,
    XLA fuses that into the loop that gathers all gradients in one vector, and adds up column by
    column: a step of a convolutional network takes twice the time.
    """

    inputs: int
    width: int

    @nn.compact
    def __call__(self) -> tuple[Float[Array, "inputs width"], Float[Array, " width"]]:
        kernel = self.param("kernel", nn.initializers.zeros, (self.inputs, self.width))
        return kernel, self.param("bias", nn.initializers.zeros, (self.width,))


def rows_times(
    x: Float[Array, "n d"], kernel: Float[Array, "d width"], bias: Float[Array, " width"]
) -> Float[Array, "n width"]:
    """A layer of examples that are rows.

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
    """A layer of examples that are columns."""
    return kernel.T @ x + bias[:, None] @ jnp.ones((1, x.shape[1]), x.dtype)


class DenseModel(ABC):
    """A model whose only parameters are kernels `[fan_in, width]` and biases of dense layers."""

    @property
    @abstractmethod
    def layers(self) -> nn.Module:
        """`layers(x, masks) -> logits`, in which every parameter is of a dense layer."""

    @property
    def _shapes(self) -> Mapping[str, Any]:
        # a field of some models, a property of others
        return _parameter_shapes(self.layers, cast(Model, self).inputs)

    @cached_property
    def _unravel(self) -> Callable[[Float[Array, " P"]], Mapping[str, Any]]:
        return ravel_pytree(
            jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), self._shapes)
        )[1]

    @property
    def size(self) -> int:
        """How many parameters it has, P."""
        return sum(leaf.size for leaf in jax.tree.leaves(self._shapes))

    def logits(
        self,
        parameters: Float[AnyArray, " P"],
        x: Float[AnyArray, "n d"],
        masks: Masks = None,
    ) -> Float[Array, "n K"]:
        """The logits, with dropout masks while training."""
        return self.layers.bind(self._unravel(jnp.asarray(parameters)))(x, masks)

    def initial(self, rng: np.random.Generator) -> Float32[np.ndarray, " P"]:
        """Weights and biases uniform in ±1/√fan_in, as one vector.

        The paper does not state its initialisation; Flax's own gives other tables. On the host,
        because a nest of vmapped random functions takes seconds to compile.
        """
        layers = self._shapes["params"]
        values = {}
        for name in sorted(layers):
            bound = 1 / np.sqrt(layers[name]["kernel"].shape[0])
            values[name] = {
                part: rng.uniform(-bound, bound, layers[name][part].shape).astype(np.float32)
                for part in ("kernel", "bias")
            }
        return np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(values)])


@cache
def _parameter_shapes(layers: nn.Module, inputs: int) -> Mapping[str, Any]:
    """Once for all models that are equal: tracing takes longer than a small network trains."""
    return jax.eval_shape(layers.init, jax.random.key(0), jnp.zeros((1, inputs)))


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
