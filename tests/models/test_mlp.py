"""The network against plain NumPy, its initialisation, and its dropout."""

import numpy as np
import pytest

from pgeom.models.model import MLP


def parts(model, vector):
    """The parameter vector cut by hand: bias and kernel of each of three layers."""
    sizes = [(model.inputs, model.width), (model.width,) * 2, (model.width, model.classes)]
    layers, start = [], 0
    for rows, columns in sizes:
        bias = vector[start : start + columns]
        start += columns
        kernel = vector[start : start + rows * columns].reshape(rows, columns)
        start += rows * columns
        layers.append((kernel, bias))
    assert start == len(vector) == model.size
    return layers


def plain_logits(model, vector, x, factors):
    """Two ReLU layers, each multiplied by its factors, and a linear one."""
    *hidden, (kernel, bias) = parts(model, vector)
    for factor, (weights, offset) in zip(factors, hidden, strict=True):
        x = np.maximum(x @ weights + offset, 0) * factor
    return x @ kernel + bias


@pytest.mark.parametrize(
    ("model", "dropped"),
    [(MLP(5, 3), 6554), (MLP(5, 3, hidden=7), 6554), (MLP(5, 3, dropout=0.5), 32768)],
)
def test_logits_are_two_masked_relu_layers_and_a_linear_one(model, dropped):
    rng = np.random.default_rng(0)
    vector, x = model.initial(rng), rng.normal(size=(11, 5)).astype(np.float32)
    masks = rng.integers(0, 2, (2, 11, model.width)) > 0
    expected = plain_logits(model, vector, x, masks / (1 - dropped / 65536))
    np.testing.assert_allclose(
        model.logits(vector, x, tuple(masks)), expected, rtol=1e-5, atol=1e-5
    )
    expected = plain_logits(model, vector, x, (1, 1))
    np.testing.assert_allclose(model.logits(vector, x), expected, rtol=1e-5, atol=1e-5)


def test_width_follows_the_inputs_unless_it_is_given():
    assert [MLP(d, 2).width for d in (18, 23, 24, 64)] == [64, 64, 96, 96]
    assert [MLP(d, 2, hidden=40).width for d in (18, 64)] == [40, 40]


def test_initial_weights_and_biases_are_uniform_within_fan_in():
    model = MLP(64, 10)
    for kernel, bias in parts(model, model.initial(np.random.default_rng(0))):
        bound = 1 / np.sqrt(kernel.shape[0])
        for values in (kernel, bias):
            assert np.all(np.abs(values) <= bound)
            assert np.abs(values).max() > 0.85 * bound
        assert abs(kernel.std() / (bound / np.sqrt(3)) - 1) < 0.05
