"""Files are whole or as they were."""

import errno
from concurrent.futures import ThreadPoolExecutor

import pytest

from pgeom.frontend.errors import UsageError
from pgeom.frontend.writing import NAME_BYTES, cut_name, write_file, write_text


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


def test_a_path_below_a_file_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"^cannot write .*page.md'"):
        write_text(tmp_path / "file" / "page.md", "text")


def test_writers_of_one_file_take_turns(tmp_path):
    """As two commands do that draw the same figure: both succeed, and the file is always whole."""
    path, texts = tmp_path / "page.md", [letter * 1000 for letter in "abcd"]

    def write(text):
        for _ in range(40):
            write_file(path, lambda file: [file.write(half) for half in (text[:500], text[500:])])

    with ThreadPoolExecutor(len(texts)) as executor:
        writers = [executor.submit(write, text.encode()) for text in texts]
        seen = {path.read_text() for _ in range(200) if path.exists()}
        for writer in writers:
            writer.result()
    assert seen | {path.read_text()} <= set(texts)
    assert [file.name for file in tmp_path.iterdir()] == ["page.md"]


def test_what_a_killed_writer_left_is_not_in_the_way(tmp_path):
    (tmp_path / "page.md.part").write_text("half of something longer")
    assert write_text(tmp_path / "page.md", "whole").read_text() == "whole"
    assert [file.name for file in tmp_path.iterdir()] == ["page.md"]


@pytest.mark.parametrize("letter", ["x", "ß", "漢", "🂡"])
def test_a_name_is_cut_between_characters_to_what_can_be_written(letter, tmp_path):
    name = cut_name(letter * 300, NAME_BYTES)
    assert set(name) == {letter}
    assert len(name.encode()) <= NAME_BYTES < len(f"{name}{letter}".encode())
    assert write_text(tmp_path / name, "text").read_text() == "text"


def test_a_short_name_is_kept():
    assert cut_name("größe", 7) == "größe" and cut_name("größe", 3) == "gr"
