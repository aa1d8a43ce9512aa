"""The network of the paper: two hidden layers, ReLU, dropout after both.

>>> import numpy as np
>>> model = MLP(inputs=64, classes=10)
>>> model.width, model.size
(96, 16522)
>>> model.logits(model.initial(np.random.default_rng(0)), np.zeros((5, 64))).shape
(5, 10)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Float32

from pgeom.types import AnyArray

Masks = tuple[Bool[AnyArray, "n width"], Bool[AnyArray, "n width"]]  # of the hidden layers


class DenseLayers(nn.Module):
    """Dense, ReLU, dropout, twice, and a linear head.

    The masks come from outside, True where a unit is kept: every loss of a member sees the same.
    """

    width: int
    classes: int
    scale: float  # of the units that are kept

    @nn.compact
    def __call__(
        self, x: Float[AnyArray, "n d"], masks: Masks | None = None
    ) -> Float[Array, "n K"]:
        for layer in range(2):  # the paper does not state that both layers have dropout
            x = nn.Dense(self.width)(x)
            if masks is None:
                x = nn.relu(x)  # passes NaN on, by which a diverged run is recognised
            else:
                x = jnp.where(masks[layer] & (x > 0), self.scale * x, 0.0)
        return nn.Dense(self.classes)(x)


@dataclass(frozen=True)
class MLP:
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
    def dropped(self) -> int:
        """How many of the 65,536 values of sixteen random bits drop a unit."""
        return round(self.dropout * 2**16)

    @property
    def layers(self) -> DenseLayers:
        # kept units are scaled by what makes up for the dropped ones in the mean
        return DenseLayers(self.width, self.classes, 1 / (1 - self.dropped / 2**16))

    @cached_property
    def _shapes(self) -> Mapping[str, Any]:
        return jax.eval_shape(self.layers.init, jax.random.key(0), jnp.zeros((1, self.inputs)))

    @cached_property
    def _unravel(self) -> Callable[[Float[Array, " P"]], Mapping[str, Any]]:
        return ravel_pytree(
            jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), self._shapes)
        )[1]

    @property
    def size(self) -> int:
        return sum(leaf.size for leaf in jax.tree.leaves(self._shapes))

    def logits(
        self,
        parameters: Float[AnyArray, " P"],
        x: Float[AnyArray, "n d"],
        masks: Masks | None = None,
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

    def masks(self, key: jax.Array, n: int) -> Masks:
        """Booleans, which an epoch copies for a quarter of a float's cost."""
        # drawn flat: the other form takes XLA several times as long to compile
        bits = jax.random.bits(key, (2 * n * self.width,), jnp.uint16)
        first, second = (bits >= self.dropped).reshape(2, n, self.width)
        return first, second
