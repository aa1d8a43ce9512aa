"""Files that are written whole or not at all, in UTF-8 whatever the locale says.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     page = write_text(Path(folder) / "page.md", "β₀ ± 1")
...     page.read_bytes() == "β₀ ± 1".encode()
True
"""

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from pgeom.frontend.errors import UsageError

PART = ".part"  # ends the name of a file that is being written
NAME_BYTES = 255 - len(PART)  # of the longest name, on every common file system


def write_file(path: Path, write: Callable[[BinaryIO], object], *, advice: str = "") -> Path:
    """Replace a file by what `write` writes; until that is on the disk, the old one stays.

    Args:
      path: of the file; missing folders are made.
      write: called with the new file.
      advice: what the message ends with.

    Returns:
      The path.

    Raises:
      UsageError: if the file cannot be written, as on a full disk.
    """
    part = path.with_name(path.name + PART)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _open_alone(part) as file:
            try:
                write(file)
                file.flush()
                os.fsync(file.fileno())
                os.replace(part, path)
            except OSError:
                with suppress(OSError):
                    part.unlink()
                raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UsageError(
            f"cannot write {str(path)!r}: {reason}{advice and '; '}{advice}"
        ) from error
    return path


def _open_alone(path: Path) -> BinaryIO:
    """The file, open and empty, when nobody else is writing to it any more."""
    while True:
        file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666), "wb")
        with suppress(OSError):  # as where a network has no locks
            fcntl.flock(file, fcntl.LOCK_EX)
        if _is_at(path, file):
            file.truncate()
            return file
        file.close()  # it has been put in its place by who wrote it


def _is_at(path: Path, file: BinaryIO) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def write_text(path: Path, text: str) -> Path:
    """Replace a file by a text, in UTF-8."""
    return write_file(path, lambda file: file.write(text.encode()))


def cut_name(name: str, longest: int) -> str:
    """The beginning of a name that takes at most `longest` bytes on the disk, in whole characters.

    >>> cut_name("größe", 6), cut_name("größe", 5)
    ('größ', 'grö')
    """
    return name.encode()[:longest].decode(errors="ignore")
