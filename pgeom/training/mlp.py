"""The network of the experiments: two hidden layers, ReLU, dropout after both.

Its parameters travel as one vector, so that an optimiser step is a handful of fused operations.

>>> import numpy as np
>>> network = Network(inputs=64, classes=10)
>>> network.width, network.size
(96, 16522)
>>> network.logits(network.initial(np.random.default_rng(0)), np.zeros((5, 64))).shape
(5, 10)
"""

from dataclasses import dataclass
from functools import cached_property

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

DROPOUT = 0.1
DROPPED = round(DROPOUT * 2**16)  # of 65,536 values of sixteen random bits: a rate of 0.10001
SCALE = 1 / (1 - DROPPED / 2**16)  # of the units that are kept, for the mean's sake

Masks = tuple[jax.Array, jax.Array]  # of the hidden layers, `[n, width]` each


class MLP(nn.Module):
    """Dense, ReLU, dropout, twice, and a linear head.

    The masks come from outside, True where a unit is kept: every loss of a member sees the same.
    """

    width: int
    classes: int

    @nn.compact
    def __call__(self, x: jax.Array, masks: Masks | None = None) -> jax.Array:
        for layer in range(2):  # the paper does not state that both layers have dropout
            x = nn.Dense(self.width)(x)
            x = nn.relu(x) if masks is None else jnp.where(masks[layer] & (x > 0), SCALE * x, 0.0)
        return nn.Dense(self.classes)(x)


@dataclass(frozen=True)
class Network:
    """An MLP for so many inputs and classes, as functions of one parameter vector."""

    inputs: int
    classes: int
    hidden: int | None = None  # the protocol's width where none is given

    @property
    def width(self) -> int:
        return self.hidden or (96 if self.inputs >= 24 else 64)

    @property
    def module(self) -> MLP:
        return MLP(self.width, self.classes)

    @cached_property
    def _shapes(self):
        return jax.eval_shape(self.module.init, jax.random.key(0), jnp.zeros((1, self.inputs)))

    @cached_property
    def _unravel(self):
        return ravel_pytree(
            jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), self._shapes)
        )[1]

    @property
    def size(self) -> int:
        return sum(leaf.size for leaf in jax.tree.leaves(self._shapes))

    def logits(self, parameters: jax.Array, x: jax.Array, masks: Masks | None = None) -> jax.Array:
        """Logits `[n, K]` of inputs `[n, d]`, with dropout masks while training."""
        return self.module.apply(self._unravel(parameters), x, masks)

    def initial(self, rng: np.random.Generator) -> np.ndarray:
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


def dropout_masks(key: jax.Array, n: int, width: int) -> Masks:
    """The masks of n examples: booleans, which an epoch copies for a quarter of a float's cost."""
    # drawn flat: the other form takes XLA several times as long to compile
    bits = jax.random.bits(key, (2 * n * width,), jnp.uint16)
    first, second = (bits >= DROPPED).reshape(2, n, width)
    return first, second
