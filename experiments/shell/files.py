"""Files that are written whole or not at all, in folders that are tried before anything slow.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     page = write_text(Path(folder) / "page.md", "β₀ ± 1")
...     page.read_bytes() == "β₀ ± 1".encode()
True
"""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from experiments.shell.errors import UsageError

PART = ".part"  # ends the name of a file that is being written
PROBE = 4096  # bytes: a block, which a full disk has no room for


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
    part = path.with_name(f"{path.name}.{os.getpid()}{PART}")  # of this process alone
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(part, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        end = f"; {advice}" if advice else ""
        raise UsageError(f"cannot write {str(path)!r}: {reason}{end}") from error
    return path


def write_text(path: Path, text: str) -> Path:
    """Replace a file by a text, in UTF-8."""
    return write_file(path, lambda file: file.write(text.encode()))


def require_writable(path: Path, *, option: str) -> None:
    """Refuse a folder that cannot be written to; it need not exist, and nothing is left behind.

    A block is written to a file without a name, in the folder or in the one it would be made in.

    Args:
      path: of the folder.
      option: the option that takes it, to begin the message with.

    Raises:
      UsageError: in one line, as for a full disk or a file in the way.
    """
    try:
        place = next(place for place in (path, *path.parents) if place.exists())
        if not place.is_dir():
            raise UsageError(f"{option} must be a folder, but {str(place)!r} is a file")
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(bytes(PROBE))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UsageError(f"{option}: cannot write to {str(path)!r}: {error.strerror}") from error


def make_folder(path: Path, *, option: str) -> Path:
    """The folder at `path`, which can be written to, made if it is missing.

    Raises:
      UsageError: as `require_writable`, and if it cannot be made.
    """
    require_writable(path, option=option)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror
        raise UsageError(f"{option}: cannot make the folder {str(path)!r}: {reason}") from error
    return path
