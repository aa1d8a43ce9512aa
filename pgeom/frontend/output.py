"""Standard output for results alone, to which writing never fails halfway through a command.

A character that the terminal cannot show becomes a question mark. A reader that has gone, as in
`| head -1`, or a full device stops the printing and nothing else: the command goes on to write its
files, and the first error is kept for its end.

>>> import io
>>> stream = Tolerant(io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
>>> print("0.92 ± 0.01", file=stream)
>>> stream.seek(0), stream.read()
(0, '0.92 ? 0.01\\n')
"""

import errno
import io
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, redirect_stdout, suppress
from contextvars import ContextVar
from typing import Any, TextIO, cast


class Tolerant:
    """A text stream that keeps the first error of writing, and discards what is written after it.

    Attributes:
      error: the first error, if there was one.
      stream: what it writes to.
    """

    def __init__(self, stream: Any) -> None:
        self.error: OSError | None = None
        self.stream = stream
        if isinstance(stream, io.TextIOWrapper) and stream.errors != "backslashreplace":
            stream.reconfigure(errors="replace")

    def write(self, text: str) -> int:
        try:
            self._attempt(self.stream.write, text)
        except ValueError as error:  # closed by a user's module, past this class
            self.error = OSError(errno.EBADF, str(error).rstrip("."))
        return len(text)

    def flush(self) -> None:
        with suppress(ValueError):  # closed, and so flushed
            self._attempt(self.stream.flush)

    def close(self) -> None:
        """Flush: a user's module that closes its standard output closes nobody else's."""
        self.flush()

    def detach(self) -> Any:
        """The stream of bytes, which a user's module may wrap; this goes on to write to it."""
        self.flush()
        return self.stream.buffer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def _attempt(self, method: Callable[..., object], *arguments: str) -> None:
        if self.error is None:
            try:
                method(*arguments)
            except OSError as error:
                self.error = error
                _discard(self.stream)


_RESULTS: ContextVar[Tolerant | None] = ContextVar("results", default=None)


@contextmanager
def tolerant_streams() -> Generator[Tolerant, None, None]:
    """Make standard output and standard error tolerant; gives the former."""
    before = sys.stdout, sys.stderr
    out, err = (Tolerant(stream or _nowhere()) for stream in before)  # None where it was closed
    sys.stdout, sys.stderr = cast(TextIO, out), cast(TextIO, err)
    try:
        yield out
    finally:
        out.flush()
        sys.stdout, sys.stderr = before


@contextmanager
def for_results(out: Tolerant) -> Generator[None, None, None]:
    """Keep `out` for what is printed to `results()`; all else that is printed is for stderr.

    That is what a user's function or a library prints, from C++ too.
    """
    token = _RESULTS.set(out)
    try:
        with redirect_stdout(sys.stderr), _own_descriptor(out):
            yield
    finally:
        _RESULTS.reset(token)


def results() -> Tolerant | None:
    """The stream for tables and JSON, as `print` and rich take it; None is `sys.stdout`."""
    return _RESULTS.get()


def say(line: str) -> None:
    """Print a line on standard error, if there is one: `print` would take standard output."""
    if sys.stderr is not None:
        print(line, file=Tolerant(sys.stderr), flush=True)


def close_results() -> None:
    """Flush standard output; what is printed after that goes to standard error, if there is one.

    For the end of a process, where a user's module may still print.
    """
    stdout, stderr = 1, 2
    with suppress(AttributeError, OSError, ValueError):  # it may be full, or closed
        sys.stdout.flush()
    try:
        os.dup2(stderr, stdout)
    except OSError:
        _discard(sys.stdout)


@contextmanager
def _own_descriptor(out: Tolerant) -> Generator[None, None, None]:
    """Move `out` to a descriptor of its own, and let descriptor 1 be standard error meanwhile."""
    stream, stdout, stderr = out.stream, 1, 2
    if _descriptor(stream) != stdout:  # a stream of Python's, as in a test
        yield
        return
    out.flush()
    look = {"encoding": stream.encoding, "errors": "replace"}
    with os.fdopen(os.dup(stdout), "w", **look) as moved:
        out.stream = moved
        with suppress(OSError):  # no standard error
            os.dup2(stderr, stdout)
        try:
            yield
        finally:
            out.flush()
            os.dup2(moved.fileno(), stdout)
            out.stream = stream


def _descriptor(stream: Any) -> int | None:
    try:
        return stream.fileno()
    except (AttributeError, OSError, ValueError):  # None, or of Python alone, or closed
        return None


def _discard(stream: Any) -> None:
    """Send what the stream still holds, and would try to write at exit, nowhere."""
    descriptor = _descriptor(stream)
    if descriptor is not None:
        with _nowhere() as nowhere:
            os.dup2(nowhere.fileno(), descriptor)


def _nowhere() -> io.TextIOWrapper:
    return open(os.devnull, "w", encoding="utf-8")
