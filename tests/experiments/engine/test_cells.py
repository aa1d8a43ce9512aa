"""Cells: their data, their class statistics, and what they share."""

import chex
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.engine.cells import prepare
from experiments.engine.study import Cell, Study
from pgeom.data import sources
from pgeom.data.regimes import Regime
from pgeom.losses.catalogue import LOSSES
from pgeom.models.model import MLP
from pgeom.paper.class_structure import class_stats

ALL = [(name, regime) for name in sources.PAPER for regime in sources.load(name).regimes]


def study_on(name):
    data = sources.load(name)
    model = MLP(data.features.shape[1], data.num_classes)
    return Study("test", data, data.regimes, (0,), (LOSSES["ce"], LOSSES["hpg"]), model)


def prepared(name, regime, seed=0, wanted=None):
    return prepare(study_on(name), Cell(Regime.parse(regime), seed), wanted)


@pytest.mark.parametrize(("name", "regime"), ALL)
def test_a_cell_is_what_its_regime_says(name, regime):
    one = prepared(name, str(regime))
    member, split, K = one.data.arrays, one.split, sources.load(name).num_classes
    chex.assert_type([member.mean, member.scale], np.float32)
    chex.assert_type([member.rows, member.validation_rows, member.inputs, member.y], np.int32)
    shared = sources.load(name).standardised
    x = (shared[member.rows] - member.mean) / member.scale
    np.testing.assert_allclose(x, split.train.features, rtol=1e-4, atol=1e-4)
    rate = np.mean(member.y != split.train.labels)
    assert rate == pytest.approx(one.noise.realised_rate)
    tolerance = 4 * np.sqrt(0.25 / len(member.y)) * (regime.noise_rate > 0)
    assert rate == pytest.approx(regime.noise_rate, abs=tolerance)
    if regime.kind == "pair-flip":
        moved = member.y != split.train.labels
        assert np.all(member.y[moved] == (split.train.labels[moved] + 1) % K)
    expected = class_stats(jnp.asarray(x), jnp.asarray(member.y), K)
    chex.assert_trees_all_close(tuple(member.stats), tuple(expected), atol=1e-5)
    if regime.kind == "long-tail":
        assert member.stats.counts.max() == 360 and member.stats.counts.min() == 12
    steps = {"breast-cancer": 1, "digits": 3, "confusion": 3, "long-tail": 3}[name]
    assert member.planned_steps == 45 * steps
    assert len(one.data.arrays.inputs) == len(split.validation.labels) + len(split.test.labels)


def test_regimes_of_a_seed_share_the_split_and_nothing_else():
    clean, noisy = (prepared("digits", regime) for regime in ("clean", "symmetric-40"))
    np.testing.assert_array_equal(clean.split.test.labels, noisy.split.test.labels)
    np.testing.assert_array_equal(clean.data.arrays.rows, noisy.data.arrays.rows)
    assert not np.array_equal(clean.data.initial, noisy.data.initial)
    assert not np.array_equal(clean.data.order(1), noisy.data.order(1))
    assert not np.array_equal(clean.data.arrays.dropout, noisy.data.arrays.dropout)


def test_a_cell_is_the_same_each_time_and_order_is_a_permutation():
    first, second = (prepared("confusion", "symmetric-20", 3) for _ in range(2))
    np.testing.assert_array_equal(first.data.arrays.y, second.data.arrays.y)
    np.testing.assert_array_equal(first.data.initial, second.data.initial)
    order = first.data.order(2)
    np.testing.assert_array_equal(order, second.data.order(2))
    np.testing.assert_array_equal(np.sort(order), np.arange(1440))


def test_every_loss_is_wanted_unless_told_otherwise():
    assert prepared("breast-cancer", "clean").data.wanted.tolist() == [True, True]
    some = prepared("breast-cancer", "clean", wanted=np.array([False, True]))
    assert some.data.wanted.tolist() == [False, True]
