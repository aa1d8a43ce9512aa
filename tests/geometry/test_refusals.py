"""Invalid generators, distributions and labels raise errors that name them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom

P = jnp.array([0.6, 0.2, 0.2])
SCORE = pgeom.bregman_score(pgeom.generators.squared_norm)
LOSSES = {
    "score": SCORE,
    "on_logits": pgeom.on_logits(SCORE),
    "cross_entropy": pgeom.losses.cross_entropy,
    "brier": pgeom.losses.brier,
}
RETURNED = {  # what F returns, and how that is refused
    "a scalar for p[3], got shape (1,)": lambda p: jnp.sum(p**2, keepdims=True),
    "a real scalar for p[3], got tuple": lambda p: (jnp.sum(p**2),),
    "a real scalar for p[3], got NoneType": lambda p: None,
    "a real scalar for p[3], got int": lambda p: 3,
    "a real scalar for p[3], got int32": lambda p: jnp.argmax(p).astype(jnp.int32),
    "a real scalar for p[3], got bool": lambda p: p[0] > 0.5,
    "a real scalar for p[3], got complex64": lambda p: jnp.sum(p**2).astype(jnp.complex64),
}


@pytest.mark.parametrize("must", RETURNED)
def test_a_generator_returns_one_real_number(must):
    F = RETURNED[must]
    calls = [
        lambda: pgeom.bregman_score(F)(P, 0),
        lambda: pgeom.bregman_score(F)(P, P),
        lambda: pgeom.on_logits(pgeom.bregman_score(F))(P, 0),
        lambda: pgeom.bregman_divergence(F)(P, P),
        lambda: pgeom.bregman_score(pgeom.generator(F) + pgeom.generators.shannon)(P, 0),
        lambda: jax.jit(jax.grad(pgeom.bregman_score(F)))(P, 0),
    ]
    for call in calls:
        with pytest.raises(ValueError if "shape" in must else TypeError) as error:
            call()
        assert str(error.value) == f"F must return {must}"


def test_a_constant_is_a_generator():
    for value in (1.0, np.float32(1)):
        assert pgeom.bregman_score(lambda p, value=value: value)(P, 0) == 0


DISTRIBUTION = "must be nonnegative and sum to one over the last axis, got "


def test_what_is_no_distribution_is_refused():
    for p, shown in ([2.0, 0.0, 1.0], "2., 0., 1."), ([0.5, 0.2, 0.2], "0.5, 0.2, 0.2"):
        with pytest.raises(ValueError, match=rf"^p {DISTRIBUTION}\[{shown}\]"):
            SCORE(jnp.array(p), 0)
        with pytest.raises(ValueError, match=f"^p {DISTRIBUTION}"):
            SCORE(jnp.array(p), P)


@pytest.mark.parametrize("name", LOSSES)
def test_bad_targets_are_refused(name):
    loss = LOSSES[name]
    for target in ([0.5, 0.2, 0.2], [1.2, -0.2, 0.0]):
        with pytest.raises(ValueError, match=f"^soft targets {DISTRIBUTION}"):
            loss(P, np.array(target, np.float32))
    for shape in ((2,), (1, 3), (2, 3)):
        with pytest.raises(ValueError, match=r"^soft targets must have shape \(3,\) to go with"):
            loss(P, np.full(shape, 1 / shape[-1]))
    with pytest.raises(TypeError, match=r"^labels must be integers, got dtype float32"):
        loss(P, np.float32(1))
    with pytest.raises(TypeError, match=r"^labels must be integers, got dtype bool"):
        loss(P, np.bool_(True))
    with pytest.raises(ValueError, match=r"^labels must be in 0 … 2, got 4294967296"):
        loss(P, np.int64(2**32))
    with pytest.raises(ValueError, match=r"^labels must be in 0 … 2, got -1"):
        loss(P, -1)
    with pytest.raises(ValueError, match=r"^labels must have shape \(\)"):
        loss(P, np.array([1, 0, 0]))


@pytest.mark.parametrize("name", LOSSES)
def test_lists_are_arrays(name):
    loss, rows = LOSSES[name], np.stack([P, P[::-1]])
    np.testing.assert_array_equal(loss(rows, [0, 2]), loss(rows, np.array([0, 2])))
    soft = [[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]]
    np.testing.assert_array_equal(loss(rows, soft), loss(rows, np.array(soft, np.float32)))


def test_traced_values_pass():
    """They cannot be looked at: a label out of range is NaN, and the rest is as it comes."""
    logits, target = jnp.array([2.0, 0.0, 1.0]), jnp.array([0.5, 0.2, 0.2])
    for loss in LOSSES.values():
        assert np.isnan(jax.jit(loss)(P, 3)) and np.isnan(jax.jit(loss)(P, -1))
        assert np.isfinite(jax.jit(loss)(P, target))
    assert np.isfinite(jax.jit(SCORE)(logits, 0))
