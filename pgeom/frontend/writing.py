"""Files that are written whole or not at all, in UTF-8 whatever the locale says.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     page = write_text(Path(folder) / "page.md", "β₀ ± 1")
...     page.read_bytes() == "β₀ ± 1".encode()
True
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from pgeom.frontend.errors import UsageError

PART = ".part"  # ends the name of a file that is being written


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
        with open(part, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        reason = error.strerror or type(error).__name__
        raise UsageError(
            f"cannot write {str(path)!r}: {reason}{advice and '; '}{advice}"
        ) from error
    return path


def write_text(path: Path, text: str) -> Path:
    """Replace a file by a text, in UTF-8."""
    return write_file(path, lambda file: file.write(text.encode()))
