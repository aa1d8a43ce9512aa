"""The decision table of planted runs: it chooses what was planted, and says where that fails."""

import pytest

from experiments.show.contrasts import CLEAN, DIGITS, EVERYWHERE, NOISY, PAIRS, TAIL
from experiments.show.decisions import decide, decision_grid, judge_situations
from experiments.show.metrics import Samples
from tests.experiments.show.planted import planted_runs

SYMMETRIC = [place for place in NOISY if place.kind == "symmetric"]
CONFUSION = CLEAN[2]
SHIFTS = {
    **{(place, "gce", "accuracy"): 0.02 for place in SYMMETRIC},
    **{(place, "sce", "accuracy"): 0.05 for place in SYMMETRIC[:-1]},  # best, but not everywhere
    (SYMMETRIC[-1], "sce", "accuracy"): -0.03,
    (CONFUSION, "gce", "accuracy"): -0.15,
    (CONFUSION, "gce", "nll"): 0.3,
    (SYMMETRIC[0], "gce", "nll"): 0.1,
    (TAIL, "ldam", "accuracy"): 0.4,
    (PAIRS, "hpg", "nll"): -0.2,
}


@pytest.fixture(scope="module")
def decisions():
    return decide(Samples(planted_runs(SHIFTS))).set_index("situation")


def test_the_planted_loss_is_chosen(decisions):
    assert decisions.loc["Symmetric label noise", "loss"] == "gce"
    assert decisions.loc["Long tail", "loss"] == "ldam"
    assert decisions.loc["Calibration matters, noisy labels", "loss"] == "hpg"
    row = decisions.loc["Symmetric label noise"]
    assert row["low"] < 0.02 < row["high"] and row["evidence"] == "powered"
    assert (row["places"], row["seeds"]) == (len(SYMMETRIC), 15)


def test_where_nothing_is_better_the_choice_is_cross_entropy(decisions):
    row = decisions.loc["Clean labels"]
    assert (row["loss"], row["verdict"], row["evidence"]) == ("ce", "equivalent", "powered")
    assert row["compared"] != "CE" and abs(row["difference"]) < 0.005


def test_a_loss_that_is_worse_somewhere_is_not_for_the_unknown(decisions):
    assert decisions.loc["Unknown, no long tail", "loss"] == "ce"


def test_it_says_where_the_choice_fails(decisions):
    fails = decisions.loc["Symmetric label noise", "fails"]
    assert fails.startswith("+0.1") and fails.endswith(f"NLL on {SYMMETRIC[0]}")
    assert decisions.loc["Long tail", "fails"] == "in none of its cells"
    fails = decisions.loc["Unknown, no long tail", "fails"]
    assert fails.startswith("SCE has +0.05") and "HPG has -0.2" in fails


def test_it_fails_only_within_its_situation(decisions):
    elsewhere = {"Clean labels": CLEAN, "Structured label noise": [PAIRS, NOISY[-1]]}
    for situation, places in elsewhere.items():
        named = [place for place in EVERYWHERE if str(place) in decisions.loc[situation, "fails"]]
        assert set(named) <= set(places)
    assert decisions.loc["Clean labels", "fails"] == "in none of its cells"


def test_a_question_is_answered_once():
    runs = planted_runs(SHIFTS, places=(CONFUSION,))
    assert [*decide(Samples(runs))["situation"]] == [
        "Clean labels",
        "Calibration matters, clean labels",
    ]


def test_the_chart_judges_every_loss_in_every_situation(decisions):
    judged = judge_situations(Samples(planted_runs(SHIFTS))).set_index(["situation", "loss"])
    assert judged.loc[("Symmetric label noise", "gce"), "verdict"] == "better"
    assert judged.loc[("Long tail", "ldam"), "difference"] == pytest.approx(0.4, abs=0.01)
    assert judged.loc[("Clean labels", "hpg"), "verdict"] == "equivalent"
    assert ("Clean labels", "ldam") not in judged.index, "it was not run there"
    assert set(judged.index.get_level_values(0)) == set(decisions.index)


def test_few_seeds_are_descriptive():
    few = decide(Samples(planted_runs(SHIFTS, seeds=6)))
    assert set(few["evidence"]) == {"descriptive"}
    assert few.set_index("situation").loc["Long tail", ["loss", "verdict"]].tolist() == [
        "ldam",
        "undetermined",
    ]
    assert decide(Samples(planted_runs(SHIFTS, seeds=1))).empty


def test_the_table_has_a_row_per_situation(decisions):
    grid = decision_grid(decisions.reset_index())
    assert len(grid.rows) == len(decisions) == 8
    assert all(len(row) == len(grid.header) for row in grid.rows)
    assert decision_grid(decisions.iloc[:0]) is None


def test_one_cell_is_enough():
    runs = planted_runs({(DIGITS, "gce", "accuracy"): 0.05}, losses=("ce", "gce"), places=(DIGITS,))
    made = decide(Samples(runs)).set_index("situation")["loss"]
    assert made["Symmetric label noise"] == "gce" and "Clean labels" not in made
