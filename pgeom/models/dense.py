"""What models made of dense layers have in common: their parameters as one vector."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import Any, cast

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Float32

from pgeom.models.model import Masks, Model
from pgeom.types import AnyArray


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
