"""`experiments.export`: the records as tables."""

import json
import shutil

import pandas as pd
import pytest

from experiments import export
from experiments.engine.store import Store
from experiments.shell.errors import UsageError


@pytest.fixture
def folder(finished, tmp_path):
    """A copy of the finished folder."""
    shutil.copytree(finished, tmp_path / "out")
    return tmp_path / "out"


def test_every_run_is_a_row(folder, capsys):
    records = Store(folder).records
    export.main(folder, csv=True, jsonl=True)
    assert f"{len(records)} runs: " in capsys.readouterr().out
    lines = (folder / "records.jsonl").read_text().splitlines()
    assert {line["identity"]: line for line in map(json.loads, lines)} == records
    frame = pd.read_csv(folder / "records.csv").set_index("identity")
    for identity, record in records.items():
        assert frame.loc[identity, "nll"] == record["nll"]
        assert json.loads(frame.loc[identity, "made_from"]) == record["made_from"]


def test_parquet(folder):
    pytest.importorskip("pyarrow")
    export.main(folder, parquet=True)
    frame = pd.read_parquet(folder / "records.parquet")
    assert sorted(frame["identity"]) == sorted(Store(folder).records)


@pytest.mark.parametrize(
    ("options", "message"),
    [({}, "at least one of --csv"), ({"csv": True}, "there are no records in")],
)
def test_what_cannot_be_exported_is_one_line(options, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        export.main(tmp_path, **options)
    assert not list(tmp_path.iterdir())
