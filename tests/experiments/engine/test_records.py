"""Records: whole members or nothing, nothing lost, and numbers that read back as they were."""

import json

import numpy as np
import pytest

from experiments.engine.disk import append
from experiments.engine.records import Store, json_float, versions
from experiments.shell.errors import UsageError


def records(*identities):
    return [{"identity": identity, "nll": 0.5} for identity in identities]


def arrays(*identities):
    logits = {identity: np.ones((2, 3), np.float32) for identity in identities}
    return {**logits, "labels": np.arange(2)}


def identities(path):
    return [json.loads(line)["identity"] for line in path.read_text().splitlines()]


def test_a_torn_line_is_no_record_and_harms_no_other(tmp_path):
    Store(tmp_path).add("first.npz", records("a"), arrays("a"))
    path = tmp_path / "records.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    again = Store(tmp_path)
    assert list(again.records) == ["a"]
    again.add("second.npz", records("b"), arrays("b"))
    assert list(Store(tmp_path).records) == ["a", "b"]
    assert path.read_bytes().startswith(whole)


def test_logits_of_a_member_are_merged(tmp_path):
    store = Store(tmp_path)
    store.add("member.npz", records("a"), arrays("a"))
    store.add("member.npz", records("b", "c"), arrays("b", "c"))
    assert set(store.logits("member.npz")) == {"a", "b", "c", "labels"}
    assert list(store.records) == list(Store(tmp_path).records) == ["a", "b", "c"]


def test_the_history_of_a_member_cannot_be_seen_in_its_logits(tmp_path):
    once, twice = Store(tmp_path / "once"), Store(tmp_path / "twice")
    once.add("member.npz", records("a", "b"), arrays("a", "b"))
    twice.add("member.npz", records("b"), arrays("b"))
    twice.add("member.npz", records("a"), arrays("a"))
    files = [store.folder / "logits/member.npz" for store in (once, twice)]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_logits_without_a_record_are_not_used(tmp_path):
    """As a process leaves them that is killed between the two."""
    store = Store(tmp_path)
    store.add("member.npz", records("a"), arrays("a", "killed"))
    assert set(store.logits("member.npz")) == {"a", "labels"}
    store.add("member.npz", records("b"), arrays("b"))
    with np.load(tmp_path / "logits/member.npz") as stored:
        assert set(stored) == {"a", "b", "labels"}


def test_every_line_says_what_made_it(tmp_path):
    Store(tmp_path).add("member.npz", records("a"), arrays("a"))
    made_by = Store(tmp_path).records["a"]["versions"]
    assert made_by == versions() and {"pgeom", "jax", "python"} <= set(made_by)


def test_the_manifest_keeps_what_it_has_in_an_order_of_its_own(tmp_path):
    first, second = Store(tmp_path / "first"), Store(tmp_path / "second")
    ce, hpg = {"loss": {"1": {"name": "ce"}}, "model": {"2": "MLP"}}, {"loss": {"3": "hpg"}}
    for store, order in ((first, (ce, hpg)), (second, (hpg, ce, hpg))):
        for parts in order:
            store.describe(parts)
    assert first.manifest == {"loss": {"1": {"name": "ce"}, "3": "hpg"}, "model": {"2": "MLP"}}
    written = [(store.folder / "manifest.json").read_bytes() for store in (first, second)]
    assert written[0] == written[1]


def test_a_manifest_that_says_it_all_is_not_written_again(tmp_path):
    store, path = Store(tmp_path), tmp_path / "manifest.json"
    store.describe({"model": {"2": "MLP"}})
    before = path.stat().st_ino
    store.describe({"model": {"2": "MLP"}})
    assert path.stat().st_ino == before


def test_what_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot write .*: File exists; finished runs are k"):
        append(tmp_path / "file" / "records.jsonl", b"a\n")
    with pytest.raises(UsageError, match=r"cannot read .*records.jsonl.*: Is a directory"):
        (tmp_path / "records.jsonl").mkdir()
        Store(tmp_path).records  # noqa: B018


@pytest.mark.parametrize("value", [1 / 3, 1e-30, 123456.78, 0.0])
def test_numbers_read_back(value):
    assert np.float32(json_float(np.float32(value))) == np.float32(value)


def test_what_is_not_finite_is_null():
    assert json_float(np.nan) is None and json_float(np.inf) is None
