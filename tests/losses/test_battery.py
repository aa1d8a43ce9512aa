"""What is true of every loss: shapes, dtypes, transforms, finiteness, agreement with float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

EXTREMES = np.array(
    [
        [1e4, -1e4, 0.0, 0.0],
        [-1e4, 1e4, 1e4, -1e4],
        [1e4, 1e4, 1e4, 1e4],
        [0.0, 0.0, 0.0, 0.0],
        [-1e4, -1e4, -1e4, -1e4],
        [30.0, -30.0, 88.0, -110.0],
    ]
)

# Where the problem itself amplifies rounding: at the edge of a finite support, and in the
# projection that is the Hessian of a norm.
LOOSER = {"bi_tempered-finite": 1e-4, "spherical": 1e-4}


def draws(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) * 3


def test_leading_dimensions_jit_and_vmap_agree(build):
    loss = jax.jit(build(4))
    logits, labels = jnp.asarray(draws((2, 3, 4))), jnp.arange(6).reshape(2, 3) % 4
    batched = loss(logits, labels)
    assert batched.shape == (2, 3)
    one_by_one = [[build(4)(logits[i, j], labels[i, j]) for j in range(3)] for i in range(1)]
    np.testing.assert_allclose(batched[:1], np.array(one_by_one), rtol=2e-5, atol=1e-7)
    np.testing.assert_allclose(batched, jax.vmap(loss)(logits, labels), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_values_and_gradients_are_finite_at_extremes(build, dtype):
    logits = jnp.repeat(jnp.asarray(EXTREMES, dtype), 4, axis=0)
    labels = jnp.tile(jnp.arange(4), len(EXTREMES))
    value, gradient = jax.jit(jax.vmap(jax.value_and_grad(build(4))))(logits, labels)
    assert value.dtype == gradient.dtype == dtype
    assert np.all(np.isfinite(np.asarray(value, np.float32)))
    assert np.all(np.isfinite(np.asarray(gradient, np.float32)))


@pytest.mark.parametrize("K", [2, 100, 1000])
def test_finite_for_few_and_many_classes(build, K):
    logits = jnp.asarray(np.concatenate([draws((2, K)), 1e4 * np.sign(draws((2, K), seed=1))]))
    labels = jnp.array([0, K - 1, 1, K // 2])
    value, gradient = jax.jit(jax.vmap(jax.value_and_grad(build(K))))(logits, labels)
    assert np.all(np.isfinite(value)) and np.all(np.isfinite(gradient))


def test_hessian_is_finite_and_symmetric(build):
    hessian = jax.jit(jax.vmap(jax.hessian(build(4))))(jnp.asarray(draws((3, 4))), jnp.arange(3))
    assert np.all(np.isfinite(hessian))
    np.testing.assert_allclose(hessian, np.swapaxes(hessian, 1, 2), atol=2e-5)
    assert np.any(np.abs(hessian) > 1e-4)


def test_float32_agrees_with_float64(build, name):
    logits, labels = draws((40, 10)), np.arange(40) % 10
    single = jax.jit(jax.vmap(jax.value_and_grad(build(10))))(jnp.asarray(logits), labels)
    with jax.enable_x64(True):
        wide = jnp.asarray(logits.astype(np.float64))
        double = jax.jit(jax.vmap(jax.value_and_grad(build(10))))(wide, labels)
    single, double = jax.tree.map(np.asarray, (single, double))
    np.testing.assert_allclose(single[0], double[0], rtol=1e-5, atol=1e-7)
    # relative to the gradient of the example, which is what a step sees
    size = np.max(np.abs(double[1]), axis=1, keepdims=True)
    np.testing.assert_allclose(single[1] / size, double[1] / size, atol=LOOSER.get(name, 1e-5))


def test_gradient_is_the_slope_of_the_value(build):
    with jax.enable_x64(True):
        logits, direction = draws((5, 4)).astype(np.float64), draws((5, 4), 1).astype(np.float64)
        labels, step = jnp.arange(5) % 4, 1e-5
        loss = jax.jit(build(4))
        slope = jax.jvp(lambda z: loss(z, labels), (jnp.asarray(logits),), (direction,))[1]
        ahead = loss(jnp.asarray(logits + step * direction), labels)
        behind = loss(jnp.asarray(logits - step * direction), labels)
        np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-7)


def test_bad_input_is_refused(build):
    loss, logits = build(4), jnp.zeros((2, 4))
    with pytest.raises(TypeError, match="labels must be integers, got dtype float32"):
        loss(logits, jnp.zeros(2))
    with pytest.raises(TypeError, match="logits must be floating-point, got dtype int32"):
        loss(jnp.zeros((2, 4), jnp.int32), jnp.array([0, 1]))
    with pytest.raises(ValueError, match=r"labels must have shape \(2,\)"):
        loss(logits, jnp.array([0, 1, 2]))
    with pytest.raises(ValueError, match=r"labels must be in 0 … 3, got \[0, 4\]"):
        loss(logits, jnp.array([0, 4]))
    with pytest.raises(ValueError, match="K >= 2"):
        loss(jnp.zeros((2, 1)), jnp.array([0, 0]))
    assert np.isnan(jax.jit(loss)(logits, jnp.array([0, -1]))[1])
