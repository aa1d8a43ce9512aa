"""Masks: the random numbers of JAX, and the rate at which units are dropped."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.models.model import draw_masks, dropped_values, kept_scale, random_bits


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("seed", [0, 1, 2**31 + 5])
def test_random_bits_are_those_of_jax(seed, size):
    key = jax.random.fold_in(jax.random.key(seed), 3)
    expected = jax.random.bits(key, (size,), jnp.uint16)
    np.testing.assert_array_equal(random_bits(key, size), expected)


def test_masks_keep_what_their_bits_say():
    key = jax.random.key(4)
    kept = random_bits(key, 2 * 50 * 8) >= dropped_values(0.3)
    np.testing.assert_array_equal(
        jnp.stack(draw_masks(key, 0.3, layers=2, n=50, width=8)).ravel(), kept
    )


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5])
def test_masks_drop_at_their_rate_and_the_scale_makes_up_for_it(rate):
    mask, *_ = draw_masks(jax.random.key(0), rate, layers=1, n=1000, width=100)
    assert float(mask.mean()) == pytest.approx(1 - rate, abs=0.005)
    assert kept_scale(rate) * (1 - rate) == pytest.approx(1, abs=1e-4)
