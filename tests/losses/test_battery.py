"""What is true of every loss: shapes, dtypes, transforms, finiteness, agreement with float64."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

K, ROWS = 10, 40  # one shape for most tests, so that they share one compiled program a loss

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
def program(loss):
    """The batched values, and by vmap the values and gradients, of `[n, K]` logits."""
    return jax.jit(lambda z, y: (loss(z, y), *jax.vmap(jax.value_and_grad(loss))(z, y)))


def in_float64(loss, logits, labels):
    with jax.enable_x64(True):
        wide = jnp.asarray(np.asarray(logits, np.float64))
        return jax.tree.map(np.asarray, program(loss)(wide, labels))


def test_leading_dimensions_jit_and_vmap_agree(build):
    logits, labels = jnp.asarray(draws((ROWS, K))), jnp.arange(ROWS) % K
    batched, mapped, _ = program(build(K))(logits, labels)
    plain = build(K)(logits[:6].reshape(2, 3, K), labels[:6].reshape(2, 3))
    assert plain.shape == (2, 3)
    np.testing.assert_allclose(plain.ravel(), batched[:6], rtol=2e-5, atol=1e-7)
    np.testing.assert_allclose(batched, mapped, rtol=1e-6, atol=1e-7)


def test_finite_at_extremes(build):
    each = extremes(K)
    logits = jnp.asarray(np.tile(each, (ROWS // len(each), 1)), jnp.float32)
    for shift in (0, 5):
        labels = jnp.asarray((np.repeat(np.arange(5), len(each)) + shift) % K)
        for found in program(build(K))(logits, labels):
            assert found.dtype == jnp.float32
            assert np.all(np.isfinite(found))


@pytest.mark.parametrize("classes", [2, 1000])
def test_finite_for_few_and_many_classes_in_bfloat16(build, classes):
    """Sixteen bits are computed in 32, so that this is a test of float32 too."""
    signs = 1e4 * np.sign(draws((2, classes), seed=1))
    rows = np.concatenate([extremes(classes), draws((2, classes)), signs])
    labels = jnp.asarray(np.resize([0, classes - 1, 1, classes // 2, 1], len(rows)))
    for found in program(build(classes))(jnp.asarray(rows, jnp.bfloat16), labels):
        assert found.dtype == jnp.bfloat16
        assert np.all(np.isfinite(np.asarray(found, np.float32)))


def test_hessian_is_finite_and_symmetric(build):
    hessian = jax.jit(jax.vmap(jax.hessian(build(K))))(jnp.asarray(draws((3, K))), jnp.arange(3))
    assert np.all(np.isfinite(hessian))
    np.testing.assert_allclose(hessian, np.swapaxes(hessian, 1, 2), atol=2e-5)
    assert np.any(np.abs(hessian) > 1e-4)


def test_float32_agrees_with_float64(build, name):
    logits, labels = draws((ROWS, K)), np.arange(ROWS) % K
    single = jax.tree.map(np.asarray, program(build(K))(jnp.asarray(logits), labels))
    double = in_float64(build(K), logits, labels)
    np.testing.assert_allclose(single[0], double[0], rtol=1e-5, atol=1e-7)
    # relative to the gradient of the example, which is what a step sees
    size = np.max(np.abs(double[2]), axis=1, keepdims=True)
    np.testing.assert_allclose(single[2] / size, double[2] / size, atol=LOOSER.get(name, 1e-5))


def test_gradient_is_the_slope_of_the_value(build):
    logits, direction = (draws((ROWS, K), seed).astype(np.float64) for seed in (0, 1))
    labels, step = np.arange(ROWS) % K, 1e-5
    slope = np.sum(in_float64(build(K), logits, labels)[2] * direction, axis=1)
    ahead, behind = (
        in_float64(build(K), logits + sign * step * direction, labels)[0] for sign in (1, -1)
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
    labels = np.arange(ROWS) - 1  # the first is too small, and from the eleventh on too large
    unseen = program(loss)(jnp.zeros((ROWS, K)), jnp.asarray(labels))[0]
    assert np.array_equal(np.isnan(unseen), (labels < 0) | (labels >= K))
