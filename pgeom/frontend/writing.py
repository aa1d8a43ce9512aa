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


def write_file(path: Path, write: Callable[[BinaryIO], object]) -> Path:
    """Replace a file by what `write` writes; until then, the old one stays as it is.

    Args:
      path: of the file; missing folders are made.
      write: called with the new file.

    Returns:
      The path.

    Raises:
      UsageError: if the file cannot be written, as on a full disk.
    """
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(part, "wb") as file:
            write(file)
        os.replace(part, path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise UsageError(f"cannot write {str(path)!r}: {error.strerror}") from error
    return path


def write_text(path: Path, text: str) -> Path:
    """Replace a file by a text, in UTF-8."""
    return write_file(path, lambda file: file.write(text.encode()))
