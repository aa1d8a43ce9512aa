"""Cells: their data, their class statistics, and what they share."""

import jax.numpy as jnp
import numpy as np
import pytest

from experiments.cells import Cell, load, network_for, prepare
from experiments.protocol import REGIMES, Training
from pgeom.geometry.class_structure import class_stats

ALL = [(dataset, regime) for dataset, regimes in REGIMES.items() for regime in regimes]


@pytest.mark.parametrize(("dataset", "regime"), ALL)
def test_a_cell_is_what_its_name_says(dataset, regime):
    one = prepare(Cell(dataset, regime, 0), Training())
    member, split, K = one.training.member, one.split, load(dataset).num_classes
    assert member.x.dtype == np.float32 and member.y.dtype == np.int32
    rate = np.mean(member.y != split.train.labels)
    assert rate == pytest.approx(one.noise.realised_rate)
    asked = 0.0 if regime in ("clean", "long-tail-30") else int(regime[-2:]) / 100
    assert rate == pytest.approx(asked, abs=4 * np.sqrt(0.25 / len(member.y)) * (asked > 0))
    if regime.startswith("pair"):
        moved = member.y != split.train.labels
        assert np.all(member.y[moved] == (split.train.labels[moved] + 1) % K)
    expected = class_stats(jnp.asarray(member.x), jnp.asarray(member.y), K)
    np.testing.assert_allclose(member.stats.counts, expected.counts)
    np.testing.assert_allclose(member.stats.centroids, expected.centroids, atol=1e-5)
    if regime == "long-tail-30":
        assert member.stats.counts.max() == 360 and member.stats.counts.min() == 12
    steps = {"breast-cancer": 1, "digits": 3, "confusion": 3, "long-tail": 3}[dataset]
    assert member.horizon == 45 * steps
    assert len(one.training.inputs) == len(split.validation.labels) + len(split.test.labels)


def test_regimes_of_a_seed_share_the_split_and_nothing_else():
    clean, noisy = (prepare(Cell("digits", r, 0), Training()) for r in ("clean", "symmetric-40"))
    np.testing.assert_array_equal(clean.split.test.labels, noisy.split.test.labels)
    np.testing.assert_array_equal(clean.training.member.x, noisy.training.member.x)
    assert not np.array_equal(clean.training.initial, noisy.training.initial)
    assert not np.array_equal(clean.training.order(1), noisy.training.order(1))
    assert not np.array_equal(clean.training.member.dropout, noisy.training.member.dropout)


def test_a_cell_is_the_same_each_time_and_order_is_a_permutation():
    first, second = (prepare(Cell("confusion", "symmetric-20", 3), Training()) for _ in range(2))
    np.testing.assert_array_equal(first.training.member.y, second.training.member.y)
    np.testing.assert_array_equal(first.training.initial, second.training.initial)
    order = first.training.order(2)
    np.testing.assert_array_equal(order, second.training.order(2))
    np.testing.assert_array_equal(np.sort(order), np.arange(1440))


def test_networks():
    assert [network_for(name).width for name in REGIMES] == [96, 96, 64, 96]
