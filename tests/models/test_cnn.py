"""The convolutional network against XLA's own convolution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.models.cnn import CNN

K = 3
IMAGES = [(28, 28), (8, 8), (7, 5), (9, 6, 3), (1, 1), (40,), (11,)]


def parts(model, vector):
    """The parameter vector cut by hand: bias and kernel of each layer."""
    *space, depth = model.shape
    taps, sizes = 3 ** len(space), []
    for width in model.channels:
        space, (fan_in, depth) = [(size + 1) // 2 for size in space], (taps * depth, width)
        sizes.append((fan_in, width))
    sizes += [(int(np.prod(space)) * depth, model.hidden), (model.hidden, model.classes)]
    layers, start = [], 0
    for rows, columns in sizes:
        bias, end = vector[start : start + columns], start + columns + rows * columns
        layers.append((vector[start + columns : end].reshape(rows, columns), bias))
        start = end
    assert start == len(vector) == model.size
    return layers


def convolved(x, kernel, bias):
    """ReLU of XLA's convolution of stride 2 with a border of one zero, channels last."""
    rank = x.ndim - 2
    letters = "HW"[:rank]
    names = jax.lax.conv_dimension_numbers(
        x.shape, (1,) * x.ndim, (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    )
    result = jax.lax.conv_general_dilated(
        x,
        kernel.reshape(*(3,) * rank, x.shape[-1], -1),
        window_strides=(2,) * rank,
        padding=[(1, 1)] * rank,
        dimension_numbers=names,
    )
    return jnp.maximum(result + bias.reshape((1,) * (rank + 1) + (-1,)), 0)


def reference(model, vector, x, factor):
    *convolutions, (dense, offset), (head, bias) = parts(model, vector)
    x = x.reshape(len(x), *model.shape)
    for kernel, shift in convolutions:
        x = convolved(x, kernel, shift)
    hidden = jnp.maximum(x.reshape(len(x), -1) @ dense + offset[None], 0) * factor
    return hidden @ head + bias[None]


@pytest.mark.parametrize("image", IMAGES, ids=str)
def test_logits_are_those_of_xlas_convolution(image):
    model, rng = CNN(image, K, channels=(4, 6), hidden=10), np.random.default_rng(0)
    vector = model.initial(rng)
    x = rng.normal(size=(5, model.inputs)).astype(np.float32)
    np.testing.assert_allclose(model.logits(vector, x), reference(model, vector, x, 1), atol=1e-5)
    (mask,) = masks = model.masks(jax.random.key(0), 5)
    expected = reference(model, vector, x, np.asarray(mask) / (1 - 13107 / 65536))
    np.testing.assert_allclose(model.logits(vector, x, masks), expected, atol=1e-5)


@pytest.mark.parametrize("image", [(8, 8), (9, 6, 3), (11,)], ids=str)
def test_gradients_are_those_of_xlas_convolution(image):
    model, rng = CNN(image, K, channels=(4, 6), hidden=10), np.random.default_rng(0)
    vector = jnp.asarray(model.initial(rng))
    x = rng.normal(size=(5, model.inputs)).astype(np.float32)
    expected = jax.grad(lambda w: jnp.sum(reference(model, w, x, 1) ** 2))(vector)
    actual = jax.grad(lambda w: jnp.sum(model.logits(w, x) ** 2))(vector)
    np.testing.assert_allclose(actual, expected, atol=1e-5)
    assert np.mean(np.abs(expected) > 1e-3) > 0.3  # so that it says something


def test_initial_weights_and_biases_are_uniform_within_fan_in():
    model = CNN((28, 28), 10)
    assert [kernel.shape for kernel, _ in parts(model, np.zeros(model.size))] == [
        (9, 12),
        (108, 24),
        (1176, 96),
        (96, 10),
    ]
    for kernel, bias in parts(model, model.initial(np.random.default_rng(0))):
        bound = 1 / np.sqrt(kernel.shape[0])
        for values in (kernel, bias):
            assert 0.8 * bound < np.abs(values).max() <= bound


@pytest.mark.parametrize("image", [(), (2, 3, 4, 5), (0, 4)])
def test_other_shapes_are_refused(image):
    with pytest.raises(ValueError, match="shape of an image must be"):
        CNN(image, K)
