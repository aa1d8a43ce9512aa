"""What cannot be read may well be there: it is neither missing nor damaged, and nothing is lost."""

import errno
import io
import os
from pathlib import Path

import pytest

from experiments.engine.damage import set_damage_aside
from experiments.engine.records import Store
from experiments.shell.errors import UsageError
from tests.experiments.engine.test_damage import fill

NAMES = ("records.jsonl", "manifest.json", "logits", "logits/two.npz")
LIST = ((os, "listdir"), (os, "scandir"))
OPEN = ((os, "stat"), (io, "open"))


def snapshot(folder):
    """Every file, folder and link, with what is in it."""
    return {path: content(path) for path in folder.rglob("*")}


def content(path):
    if path.is_symlink():
        return os.readlink(path)
    return path.read_bytes() if path.is_file() else None


def forbid(monkeypatch, path, calls):
    """Let the operating system refuse a path, and what is below it, as it would refuse no root."""

    def refusing(call):
        def refuse(place, *args, **kwargs):
            if isinstance(place, (str, Path)) and Path(place).is_relative_to(path):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
            return call(place, *args, **kwargs)

        return refuse

    for module, name in calls:
        monkeypatch.setattr(module, name, refusing(getattr(module, name)))


def put_folder(path):
    path.mkdir()
    (path / "inside").touch()


def put_loop(path):
    path.symlink_to(path.name)


def put_dangling(path):
    path.symlink_to("nothing")


OTHERS = {"folder": put_folder, "loop": put_loop, "dangling": put_dangling, "file": Path.touch}
CASES = [
    (name, kind)
    for name in NAMES
    for kind in OTHERS
    if kind != ("folder" if name == "logits" else "file")
]


def require_refusal(folder, name, check):
    with pytest.raises(UsageError) as refused:
        check(folder)
    message = str(refused.value)
    assert message.startswith(f"cannot read '{folder / name}") and "\n" not in message
    assert message.endswith("; nothing is changed")


@pytest.fixture
def folder(tmp_path):
    fill(tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_something_else_in_the_place_of_a_file_is_refused(name, kind, folder):
    """Even where there is damage, too, which was to be set aside."""
    (folder / "logits/one.npz").write_bytes(b"no archive")
    with open(folder / "records.jsonl", "ab") as file:
        file.write(b"torn")
    os.rename(folder / name, folder / "moved")
    OTHERS[kind](folder / name)
    before = snapshot(folder)
    require_refusal(folder, name, set_damage_aside)
    assert snapshot(folder) == before


@pytest.mark.parametrize("calls", [LIST, OPEN, LIST + OPEN], ids=["list", "open", "both"])
def test_a_folder_without_permission_is_refused(calls, folder, monkeypatch):
    before = snapshot(folder)
    with monkeypatch.context() as patch:
        forbid(patch, folder / "logits", calls)
        require_refusal(folder, "logits", set_damage_aside)
    assert snapshot(folder) == before


@pytest.mark.parametrize("name", NAMES[:2])
def test_a_file_without_permission_is_refused(name, folder, monkeypatch):
    before = snapshot(folder)
    with monkeypatch.context() as patch:
        forbid(patch, folder / name, OPEN[1:])
        require_refusal(folder, name, set_damage_aside)
    assert snapshot(folder) == before


READERS = {
    "records.jsonl": lambda folder: Store(folder).records,
    "manifest.json": lambda folder: Store(folder).manifest,
    "logits/two.npz": lambda folder: Store(folder).logits("two.npz"),
}


@pytest.mark.parametrize("name", READERS)
def test_a_reader_is_told_what_it_cannot_read(name, folder, monkeypatch):
    with monkeypatch.context() as patch:
        forbid(patch, folder / name, OPEN)
        require_refusal(folder, name, READERS[name])
    os.unlink(folder / name)
    put_loop(folder / name)
    require_refusal(folder, name, READERS[name])
