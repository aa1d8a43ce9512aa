"""`experiments.replay`: a run computed again, and what differs."""

import json
import shutil

import pytest

from experiments import replay
from experiments.engine.store import Store
from experiments.shell.errors import UsageError
from tests.experiments.engine.test_store import rewrite


@pytest.fixture
def folder(finished, tmp_path):
    """A copy of the finished folder."""
    shutil.copytree(finished, tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize("place", [0, -1])
def test_a_run_is_equal_to_its_record(place, finished, capsys):
    record = list(Store(finished).records.values())[place]
    assert replay.main(record["identity"][:12], out=finished) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first == f"{record['identity']}: breast-cancer, {record['regime']}, seed " + (
        f"{record['seed']}, {record['label']}"
    )
    assert last == f"all {len(record) - 2} values are equal"  # without versions and device


def test_what_differs_is_named(folder, capsys):
    identity, record = next(iter(Store(folder).records.items()))
    curve = [record["validation_nll"][0], 7.0, *record["validation_nll"][2:]]
    made_by = {
        "versions": {**record["versions"], "jax": "0.8.1"},
        "device": {**record["device"], "kind": "abacus", "cores": 77},
    }
    rewrite(folder, identity, ece=0.5, validation_nll=curve, **made_by)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert replay.main(identity, out=folder) == 1
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(", now ")[0] for line in printed[1:-1]] == [
        "device.kind: recorded 'abacus'",
        "device.cores: recorded 77",
        "versions.jax: recorded '0.8.1'",
        "ece: recorded 0.5",
        "validation_nll[1]: recorded 7.0",
    ]
    assert f"now {record['ece']}" in printed[4]
    assert printed[-1] == "logits: differ by at most 0"
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_other_versions_and_devices_alone_are_named_and_no_failure(folder, capsys):
    identity, record = next(iter(Store(folder).records.items()))
    rewrite(folder, identity, device={**record["device"], "machine": "pdp11"})
    assert replay.main(identity, out=folder, json=True) == 0
    printed = capsys.readouterr()
    assert "device.machine: recorded 'pdp11', now" in printed.err
    found = json.loads(printed.out)
    assert (found["identity"], found["values"], found["logits"]) == (identity, [], 0.0)
    assert [(one["field"], one["recorded"]) for one in found["accompanying"]] == [
        ("device.machine", "pdp11")
    ]


def test_no_file_that_a_record_names_is_read_or_run_untrusted(folder, tmp_path):
    identity, record = next(iter(Store(folder).records.items()))
    descriptions = Store(folder).descriptions
    descriptions["model"][record["made_from"]["model"]]["source"] = f"{tmp_path}/evil.py:Net"
    Store(folder).describe(descriptions)
    (tmp_path / "evil.py").write_text("raise SystemError('it was run')")
    with pytest.raises(UsageError, match=r"the record names '.*/evil\.py:Net': give --trust"):
        replay.main(identity, out=folder)
    with pytest.raises(UsageError, match="it was run"):
        replay.main(identity, out=folder, trust=True)
