"""A folder that is damaged, in use or on a full disk: named first, and mended by the next call."""

import errno
import json
import os
import shutil
import tempfile
import warnings
from dataclasses import replace

import pytest

from experiments import comparison, noise, replay
from experiments.engine import jobs
from experiments.engine.lock import claim
from experiments.engine.logits import write_logits
from experiments.engine.options import Options, make_study
from experiments.engine.records import Store
from experiments.engine.results import member_name, read_frame
from experiments.shell.errors import UsageError
from tests.experiments.conftest import LOSSES, THREE, TINY

STATE = ("manifest.json", "logits")


@pytest.fixture
def folder(finished, tmp_path):
    """A copy of the finished folder."""
    shutil.copytree(finished, tmp_path / "out")
    return tmp_path / "out"


def state(folder):
    """Lines in any order, and the bytes of logits and manifest."""
    files = [path for path in folder.rglob("*") if path.relative_to(folder).parts[0] in STATE]
    found = {path.relative_to(folder): path.read_bytes() for path in files if path.is_file()}
    return found, sorted((folder / "records.jsonl").read_bytes().splitlines())


def untrained(*_):
    raise AssertionError("something was trained")


def run(out):
    noise.main(**TINY, losses=LOSSES, out=out, common=THREE)


def test_only_damaged_runs_are_trained_again_to_the_same_state(finished, folder, capsys):
    path = folder / "records.jsonl"
    texts = path.read_bytes().splitlines(keepends=True)
    texts[4] = texts[4].replace(b'"accuracy": 0', b'"accuracy": 1')
    path.write_bytes(b"".join(texts) + texts[0][:99])
    member = folder / "logits" / json.loads(texts[-1])["logits_file"]
    member.write_bytes(member.read_bytes()[:-50])
    (folder / "manifest.json").write_text("{}")
    run(folder)
    said = capsys.readouterr()
    assert "4 runs trained, 14 reused" in " ".join(said.out.split())
    named = said.err.splitlines()
    assert len(named) == 4 and all(str(folder) in line for line in named)
    assert "line 5: does not match its checksum; set aside in" in named[0]
    assert f"logits/{member.name} cannot be read: BadZipFile" in named[1]
    assert "line 19: is torn" in named[2] and "manifest.json does not match" in named[3]
    assert state(folder) == state(finished)
    run(folder)
    assert not capsys.readouterr().err


def test_a_second_writer_is_refused_before_anything_is_trained(folder, monkeypatch):
    monkeypatch.setattr(jobs, "compile_programs", untrained)
    before = state(folder)
    with claim(folder), pytest.raises(UsageError, match=f"in use by process {os.getpid()} since"):
        noise.main(**TINY, losses=("hpg",), out=folder, common=THREE)
    assert state(folder) == before


@pytest.mark.parametrize("name", ["records.jsonl", "manifest.json", "logits"])
def test_what_cannot_be_read_is_refused_before_anything_is_trained(name, folder, monkeypatch):
    monkeypatch.setattr(jobs, "compile_programs", untrained)
    run_id = next(iter(Store(folder).records))
    os.rename(folder / name, folder / "moved")
    (folder / name).symlink_to(name)
    before = sorted(folder.rglob("*"))
    refused = rf"cannot read '.*{name}.*': Too many levels of symbolic links; nothing is changed"
    with pytest.raises(UsageError, match=refused):
        run(folder)
    with pytest.raises(UsageError, match=refused):
        replay.main(run_id, out=folder)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("name", ["records.jsonl", "logits"])
def test_what_cannot_be_written_to_is_refused_before_anything_is_trained(name, folder, monkeypatch):
    denied, before = str(folder / name), state(folder)

    def deny(function):
        def tried(file=None, mode="", **options):
            if (str(file), mode) == (denied, "r+b") or str(options.get("dir")) == denied:
                raise PermissionError(errno.EACCES, "Permission denied")
            return function(file, mode, **options) if file is not None else function(**options)

        return tried

    monkeypatch.setattr("builtins.open", deny(open))
    monkeypatch.setattr(tempfile, "TemporaryFile", deny(tempfile.TemporaryFile))
    monkeypatch.setattr(jobs, "compile_programs", untrained)
    with pytest.raises(UsageError, match=rf"cannot write (to )?'{denied}': Permission denied"):
        noise.main(**TINY, losses=("hpg",), out=folder, common=THREE)
    assert state(folder) == before


def test_of_several_folders_one_in_use_is_enough(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "compile_programs", untrained)
    with (
        claim(tmp_path / "longtail"),
        pytest.raises(UsageError, match=r"longtail' is in use by process"),
    ):
        comparison.main(records=tmp_path, out=tmp_path / "out", common=Options(epochs=1))
    assert not list(tmp_path.iterdir())


def test_a_disk_that_fills_up_keeps_what_is_finished(finished, tmp_path, monkeypatch):
    fsync, calls = os.fsync, []

    def fill_up(file):
        calls.append(file)
        if len(calls) > 8:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(file)

    monkeypatch.setattr(os, "fsync", fill_up)
    with pytest.raises(UsageError, match=r"No space left on device; finished runs are kept"):
        run(tmp_path)
    kept = Store(tmp_path).records
    assert 0 < len(kept) < 18
    monkeypatch.setattr(os, "fsync", fsync)
    run(tmp_path)
    assert kept.items() <= Store(tmp_path).records.items()
    assert state(tmp_path) == state(finished)


def test_a_reader_leaves_damaged_lines_out_and_names_them(folder):
    study = make_study("noise", THREE, TINY["dataset"], regimes=TINY["regimes"], losses=LOSSES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = read_frame(study, folder)
    path = folder / "records.jsonl"
    texts = path.read_bytes().splitlines(keepends=True)
    texts[2] = texts[2].replace(b"nll", b"nnl", 1)
    path.write_bytes(b"".join([*texts, texts[0], texts[1][:50]]))
    before = path.read_bytes()
    with pytest.warns(UserWarning) as told:
        frame = read_frame(study, folder)
    assert [str(one.message) for one in told] == [
        f"{path}, line 3: does not match its checksum; left out",
        f"{path}, line 19: repeats line 1; left out",
    ]
    assert len(frame) == len(whole) - 1 and path.read_bytes() == before


def name_logits(dataset):
    study = make_study("noise", THREE, TINY["dataset"], regimes=TINY["regimes"], losses=LOSSES)
    renamed = replace(study, dataset=replace(study.dataset, name=dataset))
    return member_name(renamed, "1f", study.cells[0])


def test_the_name_of_a_dataset_cannot_lead_elsewhere():
    assert name_logits("../../a b\n") == "..-..-a-b-_clean_0_1f.npz"


@pytest.mark.parametrize("letter", ["x", "漢"])
def test_logits_of_a_dataset_with_a_long_name_can_be_written(letter, tmp_path):
    name = name_logits(letter * 300)
    write_logits(tmp_path / name, {})
    assert name.startswith(letter * 70) and name.endswith(f"{letter}_clean_0_1f.npz")
    assert name_logits(letter * 70) == f"{letter * 70}_clean_0_1f.npz"
