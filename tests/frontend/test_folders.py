"""A folder that cannot be written to is refused before anything slow begins."""

import errno
import os
from pathlib import Path

import pytest

from pgeom.frontend.errors import UsageError
from pgeom.frontend.folders import require_writable


def below_a_file(folder):
    (folder / "file").write_text("")
    return folder / "file" / "deep" / "out"


def dangling(folder):
    (folder / "link").symlink_to(folder / "nothing")
    return folder / "link" / "out"


def loop(folder):
    (folder / "loop").symlink_to(folder / "loop")
    return folder / "loop"


BAD = {
    "file": (lambda folder: Path(__file__), "must be a folder, but '.*' is a file"),
    "below a file": (below_a_file, "must be a folder, but '.*file' is a file"),
    "dangling link": (dangling, "'.*link' is a link to nothing"),
    "loop": (loop, "cannot write to '.*': Too many levels"),
    "long name": (lambda folder: folder / ("x" * 300), "cannot write to '.*': File name too long"),
}


@pytest.mark.parametrize("case", BAD)
def test_it_is_refused_in_one_line(case, tmp_path):
    make, message = BAD[case]
    path = make(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match=f"^--out:? {message}") as error:
        require_writable(path, option="--out")
    assert "\n" not in str(error.value)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_disk_that_takes_nothing_is_refused(code, tmp_path, monkeypatch):
    def refuse(_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(UsageError, match=f"^--out: cannot write to .*: {os.strerror(code)}$"):
        require_writable(tmp_path, option="--out")


@pytest.mark.parametrize("path", [".", "here", "far/away"])
def test_a_folder_that_can_be_written_to_is_not_made(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    require_writable(Path(path), option="--out")
    assert not list(tmp_path.iterdir())
