"""Properties of every loss: shapes, dtypes, transforms, finiteness, agreement with float64."""

from functools import cache

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

K, SHAPE = 10, (2, 20)  # one shape for most tests, so that they share one compiled program per loss

# Where the problem itself amplifies rounding: at the edge of a finite support, and in the
# projection that is the Hessian of a norm.
LOOSER = {"bi_tempered-finite": 1e-4, "spherical": 1e-4}


def draws(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) * 3


def extremes(classes):
    """Huge logits of both signs, ties, zeros, and logits where softmax underflows."""
    patterns = [
        [1e4, -1e4, 0.0, 0.0],
        [-1e4, 1e4, 1e4, -1e4],
        [1e4, 1e4, 1e4, 1e4],
        [0.0, 0.0, 0.0, 0.0],
        [-1e4, -1e4, -1e4, -1e4],
        [30.0, -30.0, 88.0, -110.0],
        [1e4, 0.0, 0.0, 0.0],
        [-1e4, 0.0, 0.0, 0.0],
    ]
    return np.stack([np.resize(pattern, classes) for pattern in patterns])


@cache
def batched(loss):
    """The values of `[a, b, K]` logits, as the loss itself lifts them."""
    return jax.jit(loss)


@cache
def mapped(loss):
    """The values and gradients of `[a, b, K]` logits, by vmap."""
    return jax.jit(jax.vmap(jax.vmap(jax.value_and_grad(loss))))


def spread(seed=0):
    """Logits `[2, 20, K]` and labels."""
    return draws((*SHAPE, K), seed), np.arange(40).reshape(SHAPE) % K


def float64_values(loss, logits, labels):
    with jax.enable_x64(True):
        wide = jnp.asarray(np.asarray(logits, np.float64))
        return jax.tree.map(np.asarray, mapped(loss)(wide, labels))


def test_leading_dimensions_and_vmap_agree(build):
    logits, labels = spread()
    values = batched(build(K))(logits, labels)
    assert values.shape == SHAPE
    np.testing.assert_allclose(values, mapped(build(K))(logits, labels)[0], rtol=1e-6, atol=1e-7)


def test_jit_changes_nothing(build):
    logits, labels = spread()
    plain, actual = build(K)(logits, labels), batched(build(K))(logits, labels)
    np.testing.assert_allclose(plain, actual, rtol=2e-5, atol=1e-7)


def test_finite_at_extremes(build):
    each = extremes(K)
    logits = np.tile(each, (5, 1)).reshape(*SHAPE, K).astype(np.float32)
    for shift in (0, 5):
        labels = (np.repeat(np.arange(5), len(each)) + shift).reshape(SHAPE) % K
        actual = mapped(build(K))(logits, labels)
        chex.assert_type(actual, jnp.float32)
        chex.assert_tree_all_finite(actual)


@pytest.mark.parametrize("classes", [2, 1000])
def test_finite_for_few_and_many_classes_in_bfloat16(build, classes):
    """Sixteen bits are computed in 32, so that this is a test of float32 too."""
    signs = 1e4 * np.sign(draws((2, classes), seed=1))
    rows = np.concatenate([extremes(classes), draws((2, classes)), signs])
    labels = np.resize([0, classes - 1, 1, classes // 2, 1], len(rows))
    actual = mapped(build(classes))(jnp.asarray(rows[None], jnp.bfloat16), labels[None])
    chex.assert_type(actual, jnp.bfloat16)
    chex.assert_tree_all_finite(actual)


def test_hessian_is_finite_and_symmetric(build):
    hessian = jax.jit(jax.vmap(jax.hessian(build(K))))(jnp.asarray(draws((3, K))), jnp.arange(3))
    chex.assert_tree_all_finite(hessian)
    np.testing.assert_allclose(hessian, np.swapaxes(hessian, 1, 2), atol=2e-5)
    assert np.any(np.abs(hessian) > 1e-4)


def test_float32_agrees_with_float64(build, name):
    single = jax.tree.map(np.asarray, mapped(build(K))(*spread()))
    double = float64_values(build(K), *spread())
    np.testing.assert_allclose(single[0], double[0], rtol=1e-5, atol=1e-7)
    # relative to the gradient of the example, which is what a step sees
    size = np.max(np.abs(double[1]), axis=-1, keepdims=True)
    np.testing.assert_allclose(single[1] / size, double[1] / size, atol=LOOSER.get(name, 1e-5))


def test_gradient_is_the_slope_of_the_value(build):
    logits, labels = spread()
    logits, direction, step = logits.astype(np.float64), spread(seed=1)[0].astype(np.float64), 1e-5
    slope = np.sum(float64_values(build(K), logits, labels)[1] * direction, axis=-1)
    ahead, behind = (
        float64_values(build(K), logits + sign * step * direction, labels)[0] for sign in (1, -1)
    )
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-6)


def test_bad_input_is_refused(build):
    loss, logits = build(K), jnp.zeros((2, K))
    with pytest.raises(TypeError, match="labels must be integers, got dtype float32"):
        loss(logits, jnp.zeros(2))
    with pytest.raises(TypeError, match="logits must be floating-point, got dtype int32"):
        loss(jnp.zeros((2, K), jnp.int32), jnp.array([0, 1]))
    with pytest.raises(ValueError, match=r"labels must have shape \(2,\) .* got \(3,\)"):
        loss(logits, jnp.array([0, 1, 2]))
    with pytest.raises(ValueError, match=r"labels must be in 0 … 9, got \[-1, 10\]"):
        loss(logits, jnp.array([-1, K]))
    with pytest.raises(ValueError, match=r"logits must have shape .* K >= 2, got \(2, 1\)"):
        loss(jnp.zeros((2, 1)), jnp.array([0, 0]))
    # the first is too small, and from the eleventh on too large
    labels = np.arange(40).reshape(SHAPE) - 1
    unseen = batched(loss)(np.zeros((*SHAPE, K), np.float32), labels)
    assert np.array_equal(np.isnan(unseen), (labels < 0) | (labels >= K))
