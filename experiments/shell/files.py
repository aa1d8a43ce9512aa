"""Files that are written whole or not at all, in folders that are tried first.

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


def write_file(path: Path, write: Callable[[BinaryIO], object]) -> Path:
    """Replace a file by what `write` writes; until that is on the disk, the old one stays.

    Args:
      path: of the file; missing folders are made.
      write: called with the new file.

    Returns:
      The path.

    Raises:
      UsageError: if the file cannot be written, as on a full disk.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")  # of this process alone
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(part, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise UsageError(f"cannot write {str(path)!r}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            part.unlink()
    return path


def write_text(path: Path, text: str) -> Path:
    """Replace a file by a text, in UTF-8."""
    return write_file(path, lambda file: file.write(text.encode()))


def require_writable(path: Path, *, option: str) -> None:
    """Refuse a folder that cannot be written to; it need not exist, and nothing is left behind.

    Args:
      path: of the folder.
      option: the option that takes it, to begin the message with.

    Raises:
      UsageError: in one line, as for a read-only disk or a file in the way.
    """
    try:
        place = next(place for place in (path, *path.parents) if place.exists())
        if not place.is_dir():
            raise UsageError(f"{option} must be a folder, but {str(place)!r} is a file")
        tempfile.TemporaryFile(dir=place).close()
    except OSError as error:
        raise UsageError(f"{option}: cannot write to {str(path)!r}: {error.strerror}") from error
