"""Records: whole members or nothing, nothing lost, and numbers that read back as they were."""

import json

import numpy as np
import pytest

from experiments.engine.records import Store, json_float, versions


def records(*identities):
    return [{"identity": identity, "nll": 0.5} for identity in identities]


def arrays(*identities):
    logits = {identity: np.ones((2, 3), np.float32) for identity in identities}
    return {**logits, "labels": np.arange(2)}


def test_a_torn_line_is_cut_away_and_its_run_is_missing(tmp_path):
    Store(tmp_path).add("first", records("a"), arrays("a"))
    path = tmp_path / "records.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    again = Store(tmp_path)
    assert list(again.records) == ["a"]
    again.add("second", records("b"), arrays("b"))
    assert [json.loads(line)["identity"] for line in path.read_text().splitlines()] == ["a", "b"]


def test_logits_of_a_member_are_merged(tmp_path):
    store = Store(tmp_path)
    store.add("member", records("a"), arrays("a"))
    store.add("member", records("b", "c"), arrays("b", "c"))
    assert set(store.logits("member")) == {"a", "b", "c", "labels"}
    assert list(store.records) == list(Store(tmp_path).records) == ["a", "b", "c"]


def test_every_line_says_what_made_it(tmp_path):
    Store(tmp_path).add("member", records("a"), arrays("a"))
    made_by = Store(tmp_path).records["a"]["versions"]
    assert made_by == versions() and {"pgeom", "jax", "python"} <= set(made_by)


def test_the_manifest_keeps_what_it_has(tmp_path):
    store = Store(tmp_path)
    store.describe({"loss": {"1": {"name": "ce"}}, "model": {"2": "MLP"}})
    store.describe({"loss": {"3": {"name": "hpg"}}})
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest == {"loss": {"1": {"name": "ce"}, "3": {"name": "hpg"}}, "model": {"2": "MLP"}}


@pytest.mark.parametrize("value", [1 / 3, 1e-30, 123456.78, 0.0])
def test_numbers_read_back(value):
    assert np.float32(json_float(np.float32(value))) == np.float32(value)


def test_what_is_not_finite_is_null():
    assert json_float(np.nan) is None and json_float(np.inf) is None
