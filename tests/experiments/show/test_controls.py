"""What controls compare, how verdicts change under them."""

import pytest

from experiments.engine.controls import CONTROLS
from experiments.show.contrasts import CANDIDATES, DIGITS, TAIL
from experiments.show.controls import (
    PROTOCOL,
    control_grids,
    describe_controls,
    take_chosen_rate,
    take_last_epoch,
    verdict_counts,
)
from experiments.show.metrics import PROBABILITIES
from experiments.show.records import weigh
from tests.experiments.show.planted import planted_runs

GAIN = {(DIGITS, "hpg", "accuracy"): 0.05, (DIGITS, "gce", "nll"): -0.3}


@pytest.fixture(scope="module")
def evidence():
    against = {(DIGITS, "hpg", "accuracy"): -0.05}
    controls = {
        "long training": planted_runs(seeds=12, places=(DIGITS, TAIL)),
        "last epoch": planted_runs(against, seeds=12, places=(DIGITS,)),
    }
    return weigh(planted_runs(GAIN), controls)


def test_verdicts_are_counted_under_every_control(evidence):
    counts = verdict_counts(evidence.controls, CANDIDATES, "ce")
    counts = counts[counts["metric"] == "Accuracy ↑"].set_index("control")
    protocol, longer, last = (
        counts.loc[name] for name in (PROTOCOL, "long training", "last epoch")
    )
    assert (protocol["better"], protocol["equivalent"], protocol["reversed"]) == (1, 32, 0)
    assert (longer["better"], longer["equivalent"], longer["reversed"]) == (0, 6, 0)
    assert (last["worse"], last["equivalent"], last["reversed"]) == (1, 2, 1)
    assert (protocol["seeds"], last["seeds"]) == (30, 12)


def test_one_place_is_shown_under_every_control(evidence):
    grids = control_grids(evidence.controls, evidence.control_runs)
    assert len(grids) == 3 + 3 + 1
    (grid,) = (one for one in grids if one.title.startswith(f"{DIGITS}: Accuracy"))
    assert grid.header == ["Loss", PROTOCOL, "long training", "last epoch"]
    signs = next([text[-1] for text in row[1:]] for row in grid.rows if row[0] == "HPG")
    assert signs == ["+", "=", "−"]
    assert "over 12 to 30 seeds" in grid.footnotes[0]


def test_the_last_epoch_takes_the_place_of_the_kept_one():
    runs = planted_runs(losses=("ce",), places=(DIGITS,))
    known = ["accuracy", "balanced_accuracy", *(metric.name for metric in PROBABILITIES)]
    last = {f"last_{metric}": place / 10 for place, metric in enumerate(known)}
    taken = take_last_epoch(runs.assign(**last))
    for place, metric in enumerate(known):
        assert set(taken[metric]) == {place / 10}
    assert set(taken["best_epoch"]) == {13}


def test_the_rate_is_chosen_run_by_run_and_its_ends_are_known():
    def frame(nll):
        return planted_runs(losses=("ce",), places=(DIGITS,), seeds=3).assign(
            validation_nll=[[9.0, value] for value in nll]
        )

    frames = {0.1: frame([1, 2, 3]), 0.2: frame([2, 1, 3]), 0.3: frame([3, 3, 1])}
    chosen = take_chosen_rate(frames).sort_values("seed")
    assert chosen["learning_rate"].tolist() == [0.1, 0.2, 0.3]
    assert chosen["at_end"].tolist() == [True, False, True]
    control = CONTROLS[0]
    grid = describe_controls({control.name: chosen})
    assert grid.rows == [[control.name, "3", "3", "0", "2", control.reason]]


def test_without_controls_nothing_is_shown_of_them():
    plain = weigh(planted_runs(seeds=4, losses=("ce", "hpg"), places=(DIGITS,)))
    assert plain.controls.empty and control_grids(plain.controls, {}) == []
