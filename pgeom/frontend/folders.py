"""Folders that a command is to write to: tried before anything slow begins.

>>> require_writable(Path("."), option="--out")
"""

import os
import stat
import tempfile
from pathlib import Path

from pgeom.frontend.errors import UsageError

PROBE = 4096  # bytes: a block, which a full disk has no room for


def require_writable(path: Path, *, option: str) -> None:
    """Refuse a folder that cannot be written to; it need not exist, and nothing is left behind.

    A block is written to a file without a name, in the folder or in the one it would be made in.

    Args:
      path: of the folder.
      option: the option that takes it, to begin the message with.

    Raises:
      UsageError: in one line, as for a full disk, a name that is too long or a file in the way.
    """
    try:
        with tempfile.TemporaryFile(dir=_nearest_folder(path, option)) as file:
            file.write(bytes(PROBE))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        reason = error.strerror
        raise UsageError(f"{option}: cannot write to {str(path)!r}: {reason}") from error


def _nearest_folder(path: Path, option: str) -> Path:
    """The folder itself, or the innermost of those around it that exists."""
    for place in (path, *path.parents):
        try:
            mode = os.stat(place).st_mode
        except NotADirectoryError:  # it is below a file, to which this loop comes
            continue
        except FileNotFoundError:
            if place.is_symlink():
                raise UsageError(f"{option}: {str(place)!r} is a link to nothing") from None
            continue
        if not stat.S_ISDIR(mode):
            raise UsageError(f"{option} must be a folder, but {str(place)!r} is a file")
        return place
    raise UsageError(f"{option}: the current folder has been removed")
