"""Links of a quadratic over many classes, with a support of a few of them or of all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from tests.geometry import active_set
from tests.geometry.test_links import draw_matrix, draw_ridges, true_gap

G = pgeom.generators
K = 289
SIZES = [0.0, 1e-3, 0.3, 3.0, 30.0, 1e4]


def draw(seed=0):
    """A matrix, and logits of each size with a support of 2 to K classes, one with ties."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(len(SIZES), K)) * np.array(SIZES)[:, None]
    tied = np.where(np.arange(K) < 40, 5.0, np.round(z[3]))
    return draw_matrix(rng, K), np.concatenate([z, tied[None]])


def sum_of_parts(A, ridges):
    """The active-set form of A, ridges and half of the squared norm."""
    first, second = active_set.quadratic(A), active_set.hyperbolic(**ridges)
    return active_set.Smooth(
        lambda p: first.value(p) + second.value(p) + 0.5 * p @ p,
        lambda p: first.gradient(p) + second.gradient(p) + p,
        lambda p: first.hessian(p) + second.hessian(p) + np.eye(K),
    )


@pytest.mark.parametrize("kind", ["quadratic", "sum"])
def test_many_classes_agree_with_an_active_set_method(kind):
    A, z = draw()
    ridges = draw_ridges(np.random.default_rng(1), K)
    exact = active_set.quadratic(A) if kind == "quadratic" else sum_of_parts(A, ridges)
    with jax.enable_x64(True):
        F = G.quadratic(jnp.asarray(A))
        F = F if kind == "quadratic" else F + G.hyperbolic(**ridges) + 0.5 * G.squared_norm
        p = np.asarray(pgeom.canonical_link(F)(jnp.asarray(z)))
    expected = np.stack([active_set.maximise(exact, row) for row in z])
    assert (expected > 0).sum(axis=1).max() > 17 > 2 >= (expected > 0).sum(axis=1).min()
    np.testing.assert_allclose(p, expected, atol=1e-12)
    z32 = z.astype(np.float32)
    single = pgeom.canonical_link(F)(jnp.asarray(z32))
    assert true_gap(exact, z32.astype(float), np.asarray(single, float)) <= 1e-6


def test_a_class_with_a_small_logit_is_in_the_support():
    """Among twenty classes that are close to each other and one that is far from them."""
    A = np.eye(K) + 3.0 * (np.arange(K)[:, None] < 20) * (np.arange(K)[None, :] < 20)
    z = np.where(np.arange(K) < 20, -0.1 * np.arange(K), -20.0)
    z[100] = -1.75
    expected = active_set.maximise(active_set.quadratic(A), z)
    assert expected[100] > 0.1 and np.sum(z > z[100]) > 17
    p = pgeom.canonical_link(G.quadratic(jnp.asarray(A, jnp.float32)))(jnp.asarray(z, jnp.float32))
    np.testing.assert_allclose(p, expected, atol=1e-6)
