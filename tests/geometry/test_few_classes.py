"""Links of a quadratic over many classes, from the few classes in the support or from all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom.links import descent
from pgeom.links.descent import curvature_limits
from pgeom.links.threshold import Maximum
from tests.geometry import active_set
from tests.geometry.test_links import draw_matrix, draw_ridges, true_gap

G = pgeom.generators
K = 289  # 17 classes at a time
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


def missed_class():
    """Logits whose support holds a class that is not among the 17 largest."""
    A = np.eye(K) + 3.0 * (np.arange(K)[:, None] < 20) * (np.arange(K)[None, :] < 20)
    z = np.where(np.arange(K) < 20, -0.1 * np.arange(K), -20.0)
    z[100] = -1.75
    return A, z


def search(A, z, judge=None):
    """The search alone, of one example in single precision."""
    F, z = G.quadratic(jnp.asarray(A, jnp.float32)), jnp.asarray(z, jnp.float32)[:, None]
    m, M = curvature_limits(F, z)
    calls = []

    def solve(slopes, z) -> Maximum:
        calls.append(z.shape)
        start = descent.Start(jnp.full_like(z, 1 / len(z)), z[:1] != z[:1], jnp.zeros((), int))
        return descent._ascend(slopes, z, start, m, M)

    start = descent.search(F, z, solve=solve, judge=judge or descent.judge(F, z, M))
    assert calls == [(17, 1)]  # traced once, with no array of K × K
    return np.asarray(start.p[:, 0]), bool(start.settled[0, 0])


def test_classes_that_were_left_out_join():
    A, z = missed_class()
    expected = active_set.maximise(active_set.quadratic(A), z)
    assert expected[100] > 0.1 and np.sum(z > z[100]) > 17
    p, settled = search(A, z)
    assert settled
    np.testing.assert_allclose(p, expected, atol=1e-6)


def test_the_look_at_all_classes_is_what_finds_them():
    """With a judge that is content with anything, the answer is wrong."""
    A, z = missed_class()
    content = lambda p: (p, jnp.ones_like(p[:1], bool))  # noqa: E731
    p, settled = search(A, z, content)
    assert settled and p[100] == 0


def test_a_large_support_is_left_to_all_classes():
    p, settled = search(np.eye(K), np.zeros(K))
    assert not settled and np.sum(p > 0) == 17


def test_only_dense_generators_of_many_classes_are_searched():
    dense = G.quadratic(np.eye(3))
    assert descent.are_enough(dense, 256) and not descent.are_enough(dense, 255)
    assert not descent.are_enough(G.squared_norm, 10_000)
    assert descent.are_enough(0.5 * dense + G.squared_norm, 300)
