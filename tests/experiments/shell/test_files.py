"""Files are whole or as they were, and folders are tried first."""

import errno
from pathlib import Path

import pytest

from experiments.shell.errors import UsageError
from experiments.shell.files import require_writable, write_file, write_text

ROOT = Path(__file__).parents[3]


def test_text_is_utf8_in_folders_that_are_made(tmp_path):
    path = write_text(tmp_path / "a" / "b.md", "β₀ ± 1\n")
    assert path.read_bytes() == "β₀ ± 1\n".encode()
    write_text(path, "x")
    assert [file.name for file in path.parent.iterdir()] == ["b.md"] and path.read_bytes() == b"x"


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), RuntimeError("a bug")])
def test_a_failure_leaves_the_old_file(error, tmp_path):
    path = write_text(tmp_path / "page.md", "old")

    def write(file):
        file.write(b"half of the n")
        raise error

    expected = UsageError if isinstance(error, OSError) else RuntimeError
    with pytest.raises(expected) as refused:
        write_file(path, write)
    assert path.read_bytes() == b"old"
    if expected is UsageError:
        assert str(refused.value) == f"cannot write {str(path)!r}: No space left"
        assert [file.name for file in tmp_path.iterdir()] == ["page.md"]


@pytest.mark.parametrize("path", [Path(__file__), Path(__file__) / "out"])
def test_a_file_in_the_way_is_refused_in_one_line(path):
    with pytest.raises(UsageError, match=r"^--out must be a folder, but '.*' is a file$"):
        require_writable(path, option="--out")
    with pytest.raises(UsageError, match=r"^cannot write .*page.md'"):
        write_text(path / "page.md", "text")


@pytest.mark.parametrize("path", [".", "here", "far/away"])
def test_a_folder_that_can_be_written_to_is_not_made(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    require_writable(Path(path), option="--out")
    assert not list(tmp_path.iterdir())
