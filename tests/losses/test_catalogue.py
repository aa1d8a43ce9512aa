"""The catalogue: the protocol's names, and geometry that belongs to a partition or to K alone."""

import chex
import jax
import jax.numpy as jnp
import numpy as np

from pgeom import simplex
from pgeom.diagnosis import curvature
from pgeom.losses import catalogue, structured
from pgeom.types import ClassStats

K = 4
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
FAMILIES = {
    "Likelihood": {"ce", "label_smoothing", "focal", "poly1"},
    "Noise-robust": {"mae", "gce", "sce", "apl", "btl"},
    "Generator-based": {"brier", "capm", "hpg", "apms"},
    "Prior-adjusted": set(LONG_TAIL),
}


def members(n=3):
    draws = np.random.default_rng(0)
    counts = draws.integers(5, 50, size=(n, K)).astype(np.float32)
    return ClassStats(jnp.asarray(counts), jnp.asarray(draws.normal(size=(n, K, 6)), jnp.float32))


def test_the_names_of_the_protocol():
    assert list(catalogue.GENERAL) == GENERAL
    assert list(catalogue.LOSSES) == GENERAL + LONG_TAIL
    assert [spec.name for spec in catalogue.LOSSES.values()] == list(catalogue.LOSSES)


def test_every_loss_is_of_one_of_the_four_families():
    specs = catalogue.LOSSES.values()
    found = {family: {s.name for s in specs if s.family == family} for family in FAMILIES}
    assert found == FAMILIES
    assert {spec.family for spec in specs} == set(FAMILIES)


def test_the_candidates_are_the_papers_three():
    assert [s.name for s in catalogue.LOSSES.values() if s.studied] == ["capm", "hpg", "apms"]


def test_losses_built_inside_a_vmap_belong_to_their_member():
    stats = members()
    z = jnp.asarray(np.random.default_rng(1).normal(size=(5, K)), jnp.float32)
    y = jnp.arange(5) % K

    def every_loss(stats):
        return {name: spec.build(stats)(z, y) for name, spec in catalogue.LOSSES.items()}

    together = jax.jit(jax.vmap(every_loss))(stats)
    one = jax.jit(every_loss)
    for i in range(3):
        alone, among = (
            one(jax.tree.map(lambda leaf, i=i: leaf[i], stats)),
            jax.tree.map(lambda leaf, i=i: leaf[i], together),
        )
        chex.assert_trees_all_close(among, alone, rtol=2e-5, atol=1e-6)
    for name, values in together.items():
        own = name == "capm" or name in LONG_TAIL
        assert (np.max(np.abs(values[0] - values[1])) > 1e-3) == own, name


def test_hpgs_ridges_are_those_of_the_protocol():
    F = structured.hpg_generator(10)
    assert F.w.shape == (4, 10)
    np.testing.assert_allclose(np.linalg.norm(F.w, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(F.b, np.mean(F.w, axis=1), rtol=1e-5)  # wᵀu: through the centre
    assert F.a.tolist() == F.rho.tolist() == [0.25] * 4 and F.lam == 1
    assert structured.hpg_generator(10, ridges=0).w.shape == (0, 10)
    np.testing.assert_allclose(structured.hpg_generator(10, ridges=0).scale, 2.0, rtol=1e-6)
    gentle = structured.hpg_generator(10, mean_curvature=0.5)
    np.testing.assert_allclose(4 * gentle.scale, F.scale, rtol=1e-6)


def test_the_geometry_is_drawn_with_the_seed_of_the_protocol():
    """2025, with 0 for CAPM's factor and 1 for HPG's directions, and the number of classes."""
    draws = np.random.default_rng([2025, 0, 6]).standard_normal((6, 4))
    np.testing.assert_allclose(structured.low_rank_factor(6), 0.2 * draws / 2, rtol=1e-12)
    w = np.random.default_rng([2025, 1, 6]).standard_normal((4, 6))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    F = structured.hpg_generator(6)
    np.testing.assert_allclose(F.w, w, rtol=1e-6)
    # the scale makes the mean of trace(H)/K two over the draws of that key
    points = np.asarray(simplex.uniform(jax.random.key(2025), 6, curvature.DRAWS), np.float64)
    sech2 = 1 / np.cosh((points @ w.T - w.mean(axis=1)) / 0.25) ** 2
    mean = 1 + np.mean(np.sum(0.25 * sech2, axis=1)) / 6
    np.testing.assert_allclose(F.scale, 2 / mean, rtol=1e-6)


def test_ablations_change_the_matrix():
    stats = jax.tree.map(lambda leaf: leaf[0], members())
    z, y = jnp.array([[2.0, 0.0, -1.0, 0.5]]), jnp.array([1])
    plain = {"gamma": 0.0, "delta": 0.0, "low_rank": False}
    changes = [{}, {"gamma": 0.0}, {"delta": 0.0}, {"low_rank": False}, plain]
    variants = [catalogue.LOSSES["capm"].variant("v", "V", **change) for change in changes]
    specs = (*variants, catalogue.LOSSES["brier"])
    *values, brier = map(float, jax.jit(lambda s: [f.build(s)(z, y)[0] for f in specs])(stats))
    assert len(set(values)) == len(values)
    np.testing.assert_allclose(values[-1], brier, rtol=1e-6)  # the identity variant is 2I


def test_the_matrix_of_capm_is_as_precise_as_its_statistics(x64):
    stats = ClassStats(np.ones(3, np.float32), np.eye(3, dtype=np.float32))
    assert structured.capm_generator(stats).A.dtype == np.float32
