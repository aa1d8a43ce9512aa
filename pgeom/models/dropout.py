"""Dropout with masks that come from outside: every loss of a member sees the same.

>>> masks = draw_masks(jax.random.key(0), 0.5, layers=2, n=3, width=4)
>>> [mask.shape for mask in masks], kept_scale(0.5)
([(3, 4), (3, 4)], 2.0)
"""

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Bool, Float

from pgeom.types import AnyArray

STEPS = 2**16  # a rate is rounded to sixteen random bits


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
    # drawn flat: the other form takes XLA several times as long to compile
    bits = jax.random.bits(key, (layers * n * width,), jnp.uint16)
    return tuple((bits >= dropped_values(rate)).reshape(layers, n, width))


def masked_relu(
    x: Float[Array, "n width"], mask: Bool[AnyArray, "n width"] | None, scale: float
) -> Float[Array, "n width"]:
    """ReLU, with dropout where there is a mask."""
    if mask is None:
        return nn.relu(x)  # passes NaN on, by which a diverged run is recognised
    return jnp.where(mask & (x > 0), scale * x, 0.0)
