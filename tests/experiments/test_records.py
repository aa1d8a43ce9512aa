"""Records: whole cells or nothing, nothing lost, and numbers that read back as they were."""

import json

import numpy as np
import pytest

from experiments.cells import Cell
from experiments.records import Store, configuration_hash, short

CELL, OTHER = Cell("digits", "clean", 0), Cell("digits", "clean", 1)


def runs_of(cell, *losses):
    return [{**cell._asdict(), "loss": loss, "nll": 0.5} for loss in losses]


def arrays_of(*losses):
    return {**{loss: np.ones((2, 3), np.float32) for loss in losses}, "labels": np.arange(2)}


def test_a_torn_line_is_cut_away_and_its_run_is_missing(tmp_path):
    store = Store(tmp_path, {"epochs": 3})
    store.add(CELL, runs_of(CELL, "ce"), arrays_of("ce"))
    whole = (tmp_path / "records.jsonl").read_bytes()
    (tmp_path / "records.jsonl").write_bytes(whole + whole[: len(whole) // 2])
    again = Store(tmp_path, {"epochs": 3})
    assert len(again.runs()) == 1 and again.missing([CELL, OTHER], ("ce",)) == [OTHER]
    again.add(OTHER, runs_of(OTHER, "ce"), arrays_of("ce"))
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    assert [json.loads(line)["seed"] for line in lines] == [0, 1]


def test_two_configurations_share_a_folder_and_lose_nothing(tmp_path):
    first, second = Store(tmp_path, {"epochs": 3}), Store(tmp_path, {"epochs": 4})
    first.add(CELL, runs_of(CELL, "ce"), arrays_of("ce"))
    second.add(CELL, runs_of(CELL, "ce", "gce"), arrays_of("ce", "gce"))
    first.add(OTHER, runs_of(OTHER, "ce"), arrays_of("ce"))
    assert len(first.runs()) == 2 and len(second.runs()) == 2
    assert set(json.loads((tmp_path / "manifest.json").read_text())) == {first.hash, second.hash}


def test_a_run_is_recorded_once_and_logits_are_merged(tmp_path):
    store = Store(tmp_path, {"epochs": 3})
    store.add(CELL, runs_of(CELL, "ce"), arrays_of("ce"))
    assert store.missing([CELL], ("ce", "gce")) == [CELL]
    store.add(CELL, runs_of(CELL, "ce", "gce"), arrays_of("ce", "gce"))
    assert [run["loss"] for run in store.runs()] == ["ce", "gce"]
    assert set(store.logits(CELL)) == {"ce", "gce", "labels"}
    assert store.missing([CELL], ("ce", "gce")) == []


def test_the_hash_changes_with_every_value():
    assert configuration_hash({"a": 1, "b": 2}) == configuration_hash({"b": 2, "a": 1})
    assert configuration_hash({"a": 1}) != configuration_hash({"a": 2})


@pytest.mark.parametrize("value", [1 / 3, 1e-30, 123456.78, 0.0])
def test_numbers_read_back(value):
    assert np.float32(short(np.float32(value))) == np.float32(value)


def test_what_is_not_finite_is_null():
    assert short(np.nan) is None and short(np.inf) is None
