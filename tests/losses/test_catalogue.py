"""The catalogue: the protocol's names, and geometry that belongs to a partition or to K alone."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.geometry import curvature
from pgeom.losses import catalogue
from pgeom.types import Annealing, ClassStats

K = 4
AT = Annealing(step=0, beta0=0.2, horizon=10)
GENERAL = [
    "ce",
    "label_smoothing",
    "brier",
    "mae",
    "focal",
    "gce",
    "sce",
    "apl",
    "poly1",
    "btl",
    "capm",
    "hpg",
    "apms",
]
LONG_TAIL = ["cb_ce", "balanced_softmax", "logit_adjustment", "ldam"]


def members(n=3):
    draws = np.random.default_rng(0)
    counts = draws.integers(5, 50, size=(n, K)).astype(np.float32)
    return ClassStats(jnp.asarray(counts), jnp.asarray(draws.normal(size=(n, K, 6)), jnp.float32))


def test_the_names_of_the_protocol():
    assert list(catalogue.GENERAL) == GENERAL
    assert list(catalogue.LONG_TAIL) == LONG_TAIL
    assert list(catalogue.LOSSES) == GENERAL + LONG_TAIL


def test_losses_built_inside_a_vmap_belong_to_their_member():
    stats = members()
    z = jnp.asarray(np.random.default_rng(1).normal(size=(5, K)), jnp.float32)
    y = jnp.arange(5) % K

    def every_loss(stats):
        return {name: build(stats)(z, y, AT) for name, build in catalogue.LOSSES.items()}

    together = jax.jit(jax.vmap(every_loss))(stats)
    one = jax.jit(every_loss)
    for i in range(3):
        alone = one(jax.tree.map(lambda leaf, i=i: leaf[i], stats))
        for name, values in alone.items():
            np.testing.assert_allclose(
                together[name][i], values, rtol=2e-5, atol=1e-6, err_msg=name
            )
    for name, values in together.items():
        own = name == "capm" or name in LONG_TAIL
        assert (np.max(np.abs(values[0] - values[1])) > 1e-3) == own, name


def test_hpgs_mean_curvature_is_two():
    F = catalogue.hpg_generator(K)
    found = curvature.mean_curvature(F, K, key=jax.random.key(catalogue.GEOMETRY_SEED))
    np.testing.assert_allclose(found, 2.0, rtol=1e-6)
    other = curvature.mean_curvature(F, K, key=jax.random.key(1))  # other draws, nearly the same
    np.testing.assert_allclose(other, 2.0, rtol=1e-2)


def test_hpgs_ridges_are_those_of_the_protocol():
    F = catalogue.hpg_generator(10)
    assert F.w.shape == (4, 10)
    np.testing.assert_allclose(np.linalg.norm(F.w, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(F.b, np.mean(F.w, axis=1), rtol=1e-5)  # wᵀu: through the centre
    assert F.a.tolist() == F.rho.tolist() == [0.25] * 4 and F.lam == 1
    assert catalogue.hpg_generator(10, ridges=0).w.shape == (0, 10)
    np.testing.assert_allclose(catalogue.hpg_generator(10, ridges=0).scale, 2.0, rtol=1e-6)


@pytest.mark.parametrize("classes", [3, 10])
def test_the_low_rank_factor_is_that_of_the_protocol(classes):
    B = catalogue.low_rank_factor(classes)
    assert B.shape == (classes, min(4, classes))
    many = np.concatenate([catalogue.low_rank_factor(k) * np.sqrt(4) / 0.2 for k in range(50, 60)])
    np.testing.assert_allclose([np.mean(many), np.std(many)], [0, 1], atol=0.06)


def test_the_geometry_is_one_constant_whatever_the_precision_or_tracing():
    eager = catalogue.hpg_generator(5)
    catalogue.hpg_generator.cache_clear()
    with jax.enable_x64(True):
        wide = catalogue.hpg_generator(5)
    catalogue.hpg_generator.cache_clear()
    traced = {}

    @jax.jit
    def build(z):
        traced["F"] = catalogue.hpg_generator(5)
        return traced["F"](z)

    build(jnp.full(5, 0.2))
    for other in (wide, traced["F"]):
        jax.tree.map(np.testing.assert_array_equal, eager, other)


def test_ablations_change_the_matrix():
    stats = jax.tree.map(lambda leaf: leaf[0], members())
    z, y = jnp.array([[2.0, 0.0, -1.0, 0.5]]), jnp.array([1])
    plain = {"gamma": 0.0, "delta": 0.0, "low_rank": False}
    variants = [{}, {"gamma": 0.0}, {"delta": 0.0}, {"low_rank": False}, plain]
    losses = [partial(catalogue.capm, **variant) for variant in variants]
    every = jax.jit(lambda s: [f(s)(z, y, AT)[0] for f in (*losses, catalogue.LOSSES["brier"])])
    *values, brier = map(float, every(stats))
    assert len(set(values)) == len(values)
    np.testing.assert_allclose(values[-1], brier, rtol=1e-6)  # the identity variant is 2I
