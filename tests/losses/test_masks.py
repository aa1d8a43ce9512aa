"""Examples of weight zero and classes ruled out do not affect a loss or its gradient."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom

G, INF = pgeom.generators, np.inf


def on_logits(F):
    return pgeom.on_logits(pgeom.bregman_score(F))


LOSSES = {
    "cross-entropy": pgeom.losses.cross_entropy,
    "brier": pgeom.losses.brier,
    "user-cubic": on_logits(lambda p: jnp.sum(p**3)),
    "user-entropy": on_logits(lambda p: jnp.sum(p * jnp.log(p))),
}


@pytest.fixture(params=LOSSES)
def loss(request):
    return LOSSES[request.param]


# One class ruled out, next to saturation too, and all but the label.
RULED = jnp.array([[0.3, -INF, 0.9], [-INF, 12.0, 0.9], [0.3, -INF, 30.0], [-INF, 0.0, -INF]])
OUT = np.asarray(RULED) == -INF
TARGETS = {
    "labels": np.array([0, 2, 0, 1]),
    "soft": np.array([[0.5, 0, 0.5], [0, 0.25, 0.75], [1, 0, 0], [0, 1, 0]], np.float32),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_ruled_out_classes_have_no_gradient(loss, kind):
    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(loss)))(RULED, TARGETS[kind])
    chex.assert_tree_all_finite((values, slopes))
    np.testing.assert_array_equal(np.asarray(slopes)[OUT], 0)
    assert values[3] == 0 and np.all(slopes[3] == 0)
    # the limit of logits that fall without end
    far = jnp.where(OUT, -60.0, RULED)
    near, near_slopes = jax.jit(jax.vmap(jax.value_and_grad(loss)))(far, TARGETS[kind])
    np.testing.assert_allclose(values[:3], near[:3], rtol=1e-5)
    size = np.max(np.abs(near_slopes), axis=1, keepdims=True) + 1e-6
    np.testing.assert_allclose(slopes / size, near_slopes / size, atol=1e-5)


@pytest.mark.parametrize("label", [0, 2])
def test_a_class_that_is_ruled_out_has_no_share_in_active_passive(label):
    """Its −log p is infinite, and the normalised term zero, with derivatives of zero."""
    logits, v = jnp.array([0.3, -INF, 0.9]), jnp.array([1.0, 2.0, -1.0])
    both = [pgeom.losses.active_passive, pgeom.losses.mean_absolute_error]
    losses = [both[0], lambda z, y: both[1](z, y, scale=1.0)]
    results = []
    for loss in losses:
        slope = jax.grad(lambda z, loss=loss: loss(z, label))
        results.append((loss(logits, label), slope(logits), jax.jvp(slope, (logits,), (v,))[1]))
    chex.assert_trees_all_close(*results, rtol=1e-5)
