"""One writer per folder, by a lock that ends with its process, however that ends.

The operating system locks a file in the folder: the lock of a dead process is free, a process that
has inherited its number is not mistaken for it, and of two that want the lock one gets it. What the
file says is only for the message to the other.
"""

import errno
import fcntl
import json
import os
import socket
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from experiments.engine.disk import one_line_errors
from experiments.shell.errors import UsageError

NAME = ".lock"
UNSUPPORTED = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # by some network file systems


@contextmanager
def claim(*folders: Path) -> Generator[None, None, None]:
    """Be the only process that writes to the folders; they are made, and removed if left empty.

    Raises:
      UsageError: in one line, if another process writes to one of them, or nobody can.
    """
    with ExitStack() as stack:
        for folder in {folder.resolve(): folder for folder in folders}.values():
            stack.enter_context(_claim_one(folder))
        yield


@contextmanager
def _claim_one(folder: Path) -> Generator[None, None, None]:
    made = [place for place in (folder, *folder.parents) if not os.path.lexists(place)]
    with one_line_errors("write to", folder):
        lock = _acquire(folder)
    try:
        yield
    finally:
        with suppress(OSError):  # nothing is lost by a file or an empty folder that stays
            (folder / NAME).unlink()  # before the lock is free: afterwards it may be another's
        os.close(lock)
        with suppress(OSError):
            for place in made:
                place.rmdir()


def _acquire(folder: Path) -> int:
    """The locked file, open."""
    path = folder / NAME
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        except FileNotFoundError:  # who held it before has just removed the folder
            continue
        try:
            _lock(lock, folder)
            if _is_still_at(path, lock):
                _sign(lock)
                return lock
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)  # who held it before has just removed the file


def _lock(lock: int, folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"{str(folder)!r} is in use by {_owner(lock)}: wait for it, or choose another folder"
        ) from None
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        warning = "cannot be locked: let no other process write there"
        print(f"{str(folder)!r} {warning}", file=sys.stderr)


def _is_still_at(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False


def _sign(lock: int) -> None:
    """Write who holds the lock."""
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    owner = {"process": os.getpid(), "host": socket.gethostname(), "since": since}
    os.ftruncate(lock, 0)
    os.write(lock, json.dumps(owner).encode())
    os.fsync(lock)


def _owner(lock: int) -> str:
    """Who holds the lock, as far as the file says."""
    try:
        owner = json.loads(os.pread(lock, 4096, 0))
        place = "" if owner["host"] == socket.gethostname() else f" on {owner['host']}"
        named = f"process {owner['process']}{place} since {owner['since']}"
    except (ValueError, KeyError, TypeError, RecursionError):  # it has not signed, or is not ours
        return "another process"
    return named if named.isprintable() else "another process"  # a message is one line
