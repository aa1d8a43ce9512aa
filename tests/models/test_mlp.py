"""The network against plain NumPy, its initialisation, and its dropout."""

import jax
import numpy as np

from pgeom.training.mlp import SCALE, Network, dropout_masks


def parts(network, vector):
    """The parameter vector cut by hand: bias and kernel of each of three layers."""
    sizes = [
        (network.inputs, network.width),
        (network.width,) * 2,
        (network.width, network.classes),
    ]
    layers, start = [], 0
    for rows, columns in sizes:
        bias = vector[start : start + columns]
        start += columns
        kernel = vector[start : start + rows * columns].reshape(rows, columns)
        start += rows * columns
        layers.append((kernel, bias))
    assert start == len(vector) == network.size
    return layers


def test_logits_are_two_masked_relu_layers_and_a_linear_one():
    network, rng = Network(5, 3), np.random.default_rng(0)
    vector = network.initial(rng)
    x, masks = rng.normal(size=(7, 5)).astype(np.float32), rng.integers(0, 2, (2, 7, 64)) > 0
    hidden = x
    for layer, (kernel, bias) in enumerate(parts(network, vector)[:2]):
        hidden = np.maximum(hidden @ kernel + bias, 0) * masks[layer] / (1 - 6554 / 65536)
    kernel, bias = parts(network, vector)[2]
    logits = network.logits(vector, x, tuple(masks))
    np.testing.assert_allclose(logits, hidden @ kernel + bias, rtol=1e-5, atol=1e-6)


def test_width_follows_the_inputs():
    assert [Network(d, 2).width for d in (18, 23, 24, 64)] == [64, 64, 96, 96]


def test_initial_weights_and_biases_are_uniform_within_fan_in():
    network = Network(64, 10)
    for kernel, bias in parts(network, network.initial(np.random.default_rng(0))):
        bound = 1 / np.sqrt(kernel.shape[0])
        for values in (kernel, bias):
            assert np.all(np.abs(values) <= bound)
            assert np.abs(values).max() > 0.85 * bound
        assert abs(kernel.std() / (bound / np.sqrt(3)) - 1) < 0.05


def test_dropout_keeps_nine_tenths_and_the_mean():
    first, second = dropout_masks(jax.random.key(0), 500, 96)
    assert first.shape == second.shape == (500, 96)
    for mask in (first, second):
        assert abs(SCALE * np.mean(mask) - 1) < 0.005
    assert abs(1 / SCALE - 0.9) < 1e-4
    assert not np.array_equal(first, second)
