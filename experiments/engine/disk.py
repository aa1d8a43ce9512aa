"""Files written so that a crash leaves the old content or the new, with errors in one line."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from experiments.shell.errors import UsageError
from experiments.shell.files import write_file

KEPT = "finished runs are kept, rerun to resume"
UNCHANGED = "nothing is changed"


@contextmanager
def one_line_errors(action: str, path: Path, advice: str = KEPT) -> Generator[None, None, None]:
    """Raise what the operating system refuses inside as a UsageError.

    Args:
      action: what is tried, as in "write".
      path: of the file or folder.
      advice: what the message ends with.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UsageError(f"cannot {action} {str(path)!r}: {reason}; {advice}") from error


def read_bytes(path: Path) -> bytes | None:
    """The content of a file, or None where there is none.

    Raises:
      UsageError: if it cannot be read. `exists` would take that for a file that is not there.
    """
    with one_line_errors("read", path, UNCHANGED):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            _refuse_dangling(path)
            return None


def list_folder(path: Path) -> list[Path]:
    """What is in a folder, which is nothing where there is none.

    Raises:
      UsageError: if it cannot be read. `glob` would take that for an empty folder.
    """
    with one_line_errors("read", path, UNCHANGED):
        try:
            return list(path.iterdir())
        except FileNotFoundError:
            _refuse_dangling(path)
            return []


def _refuse_dangling(path: Path) -> None:
    """Refuse a link to nothing: what it stands for may be on a disk that is not there today."""
    if path.is_symlink():
        raise UsageError(f"cannot read {str(path)!r}: it is a link to nothing; {UNCHANGED}")


def require_appendable(path: Path) -> None:
    """Refuse a file that is there and to which nothing can be added."""
    with one_line_errors("write", path), suppress(FileNotFoundError):
        open(path, "r+b").close()


def append(path: Path, data: bytes) -> None:
    """Add lines to a file, behind a torn one if need be; they are on the disk on return."""
    with one_line_errors("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a+b") as file:
            file.write(_line_break(file) + data)
            file.flush()
            os.fsync(file.fileno())


def replace_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Replace a file as a whole by what `write` writes to the open file that it is given."""
    write_file(path, write, advice=KEPT)


def _line_break(file: BinaryIO) -> bytes:
    """What separates the last line from another."""
    if not file.tell():
        return b""
    file.seek(-1, os.SEEK_END)
    return b"" if file.read() == b"\n" else b"\n"
