"""Layers as products of rows or of columns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.models.model import columns_times, rows_times


def by_hand(x, kernel, bias):
    return jnp.sum(x[:, :, None] * kernel[None], axis=1) + bias[None]


@pytest.mark.parametrize(("inputs", "width"), [(6, 2), (2, 6), (4, 4)])
def test_layers_and_their_gradients(inputs, width):
    rng = np.random.default_rng(0)
    shapes = (5, inputs), (inputs, width), (width,)
    arrays = [jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes]

    def total(layer):
        return lambda *arrays: jnp.sum(jnp.sin(layer(*arrays)))

    def transposed(x, kernel, bias):
        return columns_times(x.T, kernel, bias).T

    expected = by_hand(*arrays), *jax.grad(total(by_hand), (0, 1, 2))(*arrays)
    for layer in (rows_times, transposed):
        actual = layer(*arrays), *jax.grad(total(layer), (0, 1, 2))(*arrays)
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
