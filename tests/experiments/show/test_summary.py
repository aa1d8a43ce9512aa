"""Tables: means, deviations, marks, footnotes and tests, from records made by hand."""

import numpy as np
import pandas as pd
import pytest

from experiments.show.contrasts import against_reference
from experiments.show.summary import (
    convergence_notes,
    performance,
    selection_grid,
    summarise,
)
from experiments.show.tables import Grid, to_markdown
from pgeom.losses.catalogue import LOSSES

VALUES = {
    "ce": [0.90, 0.92, 0.91, 0.93, 0.94],
    "hpg": [0.91, 0.94, 0.94, 0.97, 0.99],
    "mae": [0.90, 0.91, 0.90, 0.92, 0.93],
}


def record(loss, seed, accuracy, **changes):
    values = {"accuracy": accuracy, "nll": 1 - accuracy, "brier": 0.5, "ece": 0.1}
    cell = {"dataset": "digits", "regime": "clean", "seed": seed, "loss": loss}
    return {**cell, **values, "diverged_epoch": 0, "best_epoch": 3, **changes}


@pytest.fixture
def runs():
    return [record(loss, s, a) for loss, row in VALUES.items() for s, a in enumerate(row)]


def to_frame(runs, losses=("ce", "mae", "hpg")):
    frame = pd.DataFrame(runs)
    frame["label"] = frame["loss"].map(lambda name: LOSSES[name].label)
    frame["loss"] = pd.Categorical(frame["loss"], list(losses), ordered=True)
    return frame.sort_values(["loss", "seed"]).reset_index(drop=True)


def test_mean_sample_sd_and_best(runs):
    grid = performance(to_frame(runs), "digits, clean", "clean")
    assert [row[0] for row in grid.rows] == ["CE", "MAE", "HPG"]
    assert grid.rows[0][1] == "0.920 ± 0.016"  # √(0.001/4)
    assert {(2, 1), (2, 2)} <= grid.best
    assert {(0, 3), (1, 3), (2, 3)} <= grid.best, "equal values are all best"
    assert "**0.950 ± 0.031**" in to_markdown(grid)


def test_differences_from_cross_entropy(runs):
    grid = against_reference(to_frame(runs), "digits, clean")
    rows = {row[0]: row[1:] for row in grid.rows}
    assert grid.header == ["Loss", "ΔAccuracy ↑", "ΔNLL ↓"]
    assert rows["HPG"][0].startswith("+0.030 [+0.0") and rows["HPG"][0].endswith("] ?")
    assert rows["MAE"][0].startswith("-0.008 [-0.0") and rows["MAE"][1].startswith("+0.008")
    floor = "the least p-value of 5 pairs is 0.0625, Holm-corrected 0.125: the comparison is descr"
    assert any(note.startswith(floor) for note in grid.footnotes)
    assert against_reference(to_frame(runs[5:]), "digits, clean") is None


def test_enough_pairs_are_not_called_descriptive():
    runs = [record(loss, s, 0.9 + s / 1000) for loss in ("ce", "hpg") for s in range(6)]
    grid = against_reference(to_frame(runs), "digits, clean")
    assert not any("descriptive" in note for note in grid.footnotes)


def test_divergence_is_a_footnote_and_never_a_number(runs):
    nothing = {"accuracy": None, "nll": None, "brier": None, "ece": None}
    runs[6] = record("hpg", 1, 0.5, diverged_epoch=1, best_epoch=0) | nothing
    runs[2] = record("ce", 2, 0.91, diverged_epoch=7)
    frame = to_frame(runs)
    grid = performance(frame, "digits, clean", "clean")
    assert grid.rows[2][1] == "diverged" and (2, 1) not in grid.best
    notes = " ".join(grid.footnotes)
    assert "HPG, seed 1" in notes and "CE, seed 2: validation NLL not finite from epoch 7" in notes
    compared = against_reference(frame, "digits, clean")
    assert [row[1] for row in compared.rows if row[0] == "HPG"] == ["diverged"]


def test_summary_is_plain_arithmetic(runs):
    summary = summarise(to_frame(runs))
    row = summary[summary["loss"] == "hpg"].iloc[0]
    assert row["accuracy_mean"] == pytest.approx(np.mean(VALUES["hpg"]))
    assert row["accuracy_sd"] == pytest.approx(np.std(VALUES["hpg"], ddof=1))
    assert isinstance(summary, pd.DataFrame) and row["seeds"] == 5


def test_a_bar_in_a_cell_opens_no_column_of_markdown():
    text = to_markdown(Grid("t", ["|z| ≤ 2"], [["a|b"]], set(), []))
    assert r"| \|z\| ≤ 2 |" in text and r"| a\|b |" in text


def test_several_versions_are_a_footnote(runs):
    frame = to_frame(runs).assign(versions=[{"jax": "0.9", "numpy": "2"}] * 15)
    assert not any("versions" in note for note in performance(frame, "", "clean").footnotes)
    frame.at[3, "versions"] = {"jax": "0.10", "numpy": "2"}
    note = "made by several versions: jax 0.9 (14 runs) and 0.10 (1 run)"
    assert note in performance(frame, "", "clean").footnotes
    assert note in against_reference(frame, "").footnotes


def converging(seed, best, stopped, curve=None, **changes):
    epochs = {"best_epoch": best, "stopped_epoch": stopped, "validation_nll": curve}
    return record("ce", seed, 0.9) | epochs | changes


NOTE = "last epoch: not converged, try --epochs"
CURVES = {
    "stopped early": ([converging(0, 2, 4, [3.0, 1.0, 2.0, 2.0])], None),
    "one of two": (
        [converging(0, 3, 3, [3.0, 2.0, 1.0]), converging(1, 1, 3, [1.0, 2.0, 2.0])],
        f"1 of 2 runs was best in its {NOTE} 6",
    ),
    "all, of several lengths": (
        [converging(0, 3, 3, [3.0, 2.0, 1.0]), converging(1, 2, 2, [3.0, 2.0])],
        f"2 of 2 runs were best in their {NOTE} 6",
    ),
    "no curve": ([converging(0, 45, 45)], f"1 of 1 run was best in its {NOTE} 90"),
    "the last epoch is kept, but was not best": (
        [converging(0, 3, 3, [1.0, 2.0, 3.0], stop_on="none")],
        None,
    ),
    "most accurate in the last": (
        [converging(0, 3, 3, [1.0, 2.0, 3.0], stop_on="accuracy")],
        f"1 of 1 run was best in its {NOTE} 6",
    ),
    "a canonical link": (
        [
            converging(0, 2, 2, np.nan, stop_on="none", validation_loss=[2.0, 1.0]),
            converging(1, 2, 2, np.nan, stop_on="none", validation_loss=[1.0, 2.0]),
        ],
        f"1 of 2 runs was best in its {NOTE} 4",
    ),
    "diverged": ([converging(0, 1, 3, [1.0, None, None], diverged_epoch=2)], None),
    "diverged at once": ([converging(0, 0, 3, [None, None, None], diverged_epoch=1)], None),
}


@pytest.mark.parametrize("name", CURVES)
def test_runs_that_were_best_in_their_last_epoch_are_counted(name):
    runs, note = CURVES[name]
    frame = to_frame(runs, losses=("ce",))
    assert convergence_notes(frame) == ([] if note is None else [note])
    said = [text for text in performance(frame, "", "clean").footnotes if "last epoch" in text]
    assert said == ([] if note is None else [note])


def test_more_epochs_are_meant_as_the_option_has_them():
    frame = to_frame([converging(0, 120, 120)], losses=("ce",))
    assert convergence_notes(frame, epochs=40)[0].endswith("try --epochs 80")


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        ([[0, 5, 0]], None),
        ([[1, 4, 0]], "1 of 5 chosen learning rates is at an end of the grid"),
        ([[2, 1, 2], [0, 0, 5]], "9 of 10 chosen learning rates are at an end of the grid"),
    ],
)
def test_rates_at_an_end_of_the_grid_are_counted(rows, note):
    labels = ["CE", "HPG"][: len(rows)]
    counts = pd.DataFrame(rows, index=labels, columns=[3e-4, 1e-3, 3e-3])
    said = [text for text in selection_grid(counts, "digits").footnotes if "end of" in text]
    assert len(said) == (note is not None) and all(text.startswith(note) for text in said)
