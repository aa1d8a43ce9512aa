"""Comparisons, ranks and means of planted runs."""

import numpy as np
import pytest

from experiments.show.contrasts import (
    compare_losses,
    effects_grid,
    rank_losses,
    ranks_grid,
    select_effects,
)
from experiments.show.items import means_grids
from experiments.show.metrics import Column, Place, Samples
from tests.experiments.show.planted import planted_runs

CLEAN, NOISY, TAIL = Place("a", "clean"), Place("b", "symmetric-40"), Place("c", "long-tail-30")
LOSSES = ("ce", "brier", "gce", "hpg")
SHIFTS = {(CLEAN, "gce", "accuracy"): -0.05, (NOISY, "gce", "nll"): -0.2}


@pytest.fixture(scope="module")
def samples():
    return Samples(planted_runs(SHIFTS, losses=LOSSES, places=(CLEAN, NOISY, TAIL)))


def test_samples_are_matched_by_seed_whatever_the_order_of_runs(samples):
    shuffled = Samples(samples.runs.sample(frac=1, random_state=0))
    columns = [Column(CLEAN, "gce", "nll"), Column(NOISY, "ce", "accuracy")]
    np.testing.assert_array_equal(samples.matched(columns), shuffled.matched(columns))
    fewer = samples.runs[(samples.runs["loss"] != "ce") | (samples.runs["seed"] > 3)]
    assert Samples(fewer).matched(columns).shape == (2, 26)
    assert samples.has(columns[0]) and not samples.has(Column(CLEAN, "mae", "nll"))
    assert not samples.has(Column(CLEAN, "ce", "no_metric"))


def test_halves_share_no_seed_and_lose_none(samples):
    one, other = samples.halves()
    seeds = [set(half.runs["seed"]) for half in (one, other)]
    assert seeds[0].isdisjoint(seeds[1]) and seeds[0] | seeds[1] == set(range(30))


def test_planted_differences_are_found_where_they_are(samples):
    rows = compare_losses(samples).set_index(["reference", "dataset", "loss", "metric"])
    assert len(rows) == 2 * 3 * 3 * len(samples.metrics)
    found = rows[rows["verdict"].isin(["better", "worse"])]
    expected = {
        ("ce", "a", "gce", "accuracy"): "worse",
        ("ce", "b", "gce", "nll"): "better",
        ("brier", "a", "gce", "accuracy"): "worse",
        ("brier", "b", "gce", "nll"): "better",
    }
    assert found["verdict"].to_dict() == expected
    row = rows.loc[("ce", "a", "gce", "accuracy")]
    assert row["difference"] == pytest.approx(-0.05, abs=0.002) and row["superiority"] == 0
    assert row["mean"] - row["reference_mean"] == pytest.approx(row["difference"], abs=1e-6)
    assert row["low"] < row["difference"] < row["high"] < -0.048 and row["seeds"] == 30


def test_tables_say_what_was_found(samples):
    rows = compare_losses(samples)
    grid = effects_grid(select_effects(rows, "ce", "accuracy"), "title", ["dataset", "regime"])
    assert grid.header == ["Loss", "a, clean", "b, symmetric-40", "c, long-tail-30"]
    texts = {row[0]: row[1:] for row in grid.rows}
    assert texts["GCE"][0].endswith(" −") and texts["HPG"][0].endswith(" =")
    assert "30 seeds" in grid.footnotes[0] and "±0.005" in grid.footnotes[0]
    means = means_grids(samples)[0]
    assert [row[0] for row in means.rows] == ["CE", "Brier", "GCE", "HPG"]
    assert means.rows[2][1].startswith("0.8") and (2, 1) not in means.best


def test_a_reference_that_was_not_run_is_left_out(samples):
    alone = Samples(samples.runs[samples.runs["loss"].isin(["ce", "hpg"])])
    assert set(compare_losses(alone)["reference"]) == {"ce"}
    assert compare_losses(Samples(samples.runs[samples.runs["loss"] == "hpg"])).empty


def test_ranks_leave_the_long_tail_out(samples):
    ranked = {one.metric.name: one for one in rank_losses(samples)}
    assert ranked["accuracy"].ranking.cells == 2
    shifted = Samples(planted_runs({(None, "hpg", "ece"): -0.04}, losses=LOSSES))
    best = {one.metric.name: one for one in rank_losses(shifted)}["ece"]
    assert best.ranking.mean_ranks.tolist()[3] == 1 and best.ranking.cells == 10
    grid = ranks_grid([best])
    assert grid.best == {(3, 1)} and grid.rows[3] == ["HPG", "1.0"]


def test_ties_in_rank_are_all_marked(samples):
    one = rank_losses(samples)[0]
    tied = one.ranking._replace(mean_ranks=np.array([7 / 3, 3.0, 7 / 3 + 1e-15, 4.0]))
    assert ranks_grid([one._replace(ranking=tied)]).best == {(0, 1), (2, 1)}


def test_two_losses_have_no_ranks(samples):
    assert rank_losses(Samples(samples.runs[samples.runs["loss"].isin(["ce", "hpg"])])) == []
    assert ranks_grid([]) is None
