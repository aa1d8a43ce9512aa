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

import io
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, redirect_stdout
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
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")

    def write(self, text: str) -> int:
        self._attempt(self.stream.write, text)
        return len(text)

    def flush(self) -> None:
        self._attempt(self.stream.flush)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def _attempt(self, method: Callable[..., object], *arguments: str) -> None:
        if self.error is None:
            try:
                method(*arguments)
            except OSError as error:
                self.error = error
                # what the stream still holds, and Python would write at exit, goes nowhere
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self.stream.fileno())
                os.close(nowhere)


_RESULTS: ContextVar[Tolerant | None] = ContextVar("results", default=None)


@contextmanager
def tolerant_output() -> Generator[Tolerant, None, None]:
    """Make standard output tolerant."""
    before, out = sys.stdout, Tolerant(sys.stdout)
    sys.stdout = cast(TextIO, out)
    try:
        yield out
    finally:
        out.flush()
        sys.stdout = before


@contextmanager
def for_results(out: Tolerant) -> Generator[None, None, None]:
    """Keep `out` for what is printed to `results()`; what else is printed goes to standard error.

    That is what a user's function prints, and what libraries print from C++.
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


@contextmanager
def _own_descriptor(out: Tolerant) -> Generator[None, None, None]:
    """Move `out` to a descriptor of its own, and let descriptor 1 be standard error meanwhile."""
    stream, stdout, stderr = out.stream, 1, 2
    try:
        is_stdout = stream.fileno() == stdout
    except OSError:  # a stream of Python's, as in a test
        is_stdout = False
    if not is_stdout:
        yield
        return
    out.flush()
    with os.fdopen(os.dup(stdout), "w", encoding=stream.encoding, errors="replace") as moved:
        out.stream = moved
        os.dup2(stderr, stdout)
        try:
            yield
        finally:
            out.flush()
            os.dup2(moved.fileno(), stdout)
            out.stream = stream
