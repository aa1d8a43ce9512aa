"""Dropout with masks that come from outside: every loss of a member sees the same.

>>> masks = draw_masks(jax.random.key(0), 0.5, layers=2, n=3, width=4)
>>> [mask.shape for mask in masks], kept_scale(0.5)
([(3, 4), (3, 4)], 2.0)
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jaxtyping import Array, Bool, Float, UInt16

from pgeom.types import AnyArray

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
