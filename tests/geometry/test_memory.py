"""With many classes, memory is linear in K rather than quadratic."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom

BATCH, K = 16, 100_000


def ridges(K):
    w = np.random.default_rng(0).normal(size=(4, K)).astype(np.float32)
    w = w / np.linalg.norm(w, axis=1, keepdims=True)
    return pgeom.generators.hyperbolic(lam=1.0, a=0.25, rho=0.25, w=w, b=w.mean(axis=1))


GENERATORS = {
    "shannon": lambda K: pgeom.generators.shannon,
    "hyperbolic": ridges,
    "user-cubic": lambda K: lambda p: jnp.sum(p**3),
}


def compiled(F, K):
    loss = pgeom.on_logits(pgeom.bregman_score(F))
    shapes = (
        jax.ShapeDtypeStruct((BATCH, K), jnp.float32),
        jax.ShapeDtypeStruct((BATCH,), jnp.int32),
    )
    return jax.jit(jax.vmap(jax.value_and_grad(loss))).lower(*shapes).compile()


def temporary_bytes(program):
    analysis = program.memory_analysis()
    return analysis.temp_size_in_bytes + analysis.output_size_in_bytes


@pytest.mark.parametrize("name", GENERATORS)
def test_value_and_gradient_in_memory_linear_in_the_classes(name):
    tenth, whole = (compiled(GENERATORS[name](k), k) for k in (K // 10, K))
    assert temporary_bytes(whole) <= 10.5 * temporary_bytes(tenth)
    array = BATCH * K * np.dtype(np.float32).itemsize
    assert temporary_bytes(whole) <= 40 * array  # a K×K matrix per example would be 100,000 arrays
    z = np.random.default_rng(1).normal(size=(BATCH, K)).astype(np.float32)
    value, gradient = whole(jnp.asarray(z), jnp.arange(BATCH))
    chex.assert_tree_all_finite((value, gradient))


def test_a_full_hessian_is_noticed():
    """The test has teeth: a program with the K×K matrix grows with its square."""

    def with_matrix(z):
        return jnp.linalg.cholesky(jax.hessian(lambda p: jnp.sum(p**3))(jax.nn.softmax(z)))

    def needed(K):
        shape = jax.ShapeDtypeStruct((K,), jnp.float32)
        return temporary_bytes(jax.jit(with_matrix).lower(shape).compile())

    assert needed(1000) > 50 * needed(100)
