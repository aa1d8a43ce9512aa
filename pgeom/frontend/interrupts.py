"""Ctrl-C and SIGTERM end a command, in one line, soon, and with the exit code that shells expect.

Python turns a signal into an exception in the main thread, which may be swallowed where errors are
ignored, as in callbacks of the garbage collector, or wait for a compiled program to return. So a
thread watches as well: it repeats an exception that was swallowed, and ends the process if it has
not ended by itself.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from types import FrameType
from typing import Any, NoReturn

from pgeom.frontend import processes

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATIENCE = 1.5  # seconds to clean up in, such as to finish writing
CALLBACK = 0.05  # seconds in which a callback that swallowed an exception returns
SHOW_CURSOR = "\x1b[?25h"  # which progress bars hide


class Interrupted(KeyboardInterrupt):
    """A signal asks the process to end."""


class Watch:
    """Inside its `with`, Ctrl-C and SIGTERM raise `Interrupted`; whatever becomes of that, they end
    the process. Once a signal has arrived, the watch goes on to the end of the process.

    Args:
      line: what an interrupted command says.

    Attributes:
      code: the exit code once a signal has arrived, 130 for Ctrl-C and 143 for SIGTERM.
    """

    def __init__(self, line: str) -> None:
        self._line = line
        self.code: int | None = None
        self._swallowed = threading.Event()
        self._restore = ExitStack()

    def __enter__(self) -> None:
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        threading.Thread(target=self._guard, args=(reader,), daemon=True).start()
        self._restore.callback(os.close, writer)
        self._restore.callback(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = partial(self._notice, sys.unraisablehook)
        # C code writes to it at once, whatever the main thread does
        self._restore.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(writer))
        for number in SIGNALS:
            self._restore.callback(signal.signal, number, signal.signal(number, self._handle))

    def __exit__(self, *exception: object) -> None:
        if self.code is None:
            self._restore.close()

    def end(self, code: int) -> NoReturn:
        """Print the line and end the process at once.

        Python would first wait for compiled programs to return, or crash under them.
        """
        processes.end_all()
        with suppress(OSError):
            # not by `print`, which would wait for a thread that is printing
            os.write(2, f"{SHOW_CURSOR * os.isatty(2)}{self._line}\n".encode())
        os._exit(code)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        """Raise, but once: a second Ctrl-C must not interrupt the cleaning up."""
        if self.code is None:
            self.code = 128 + number
            raise Interrupted

    def _notice(self, report: Callable[[Any], object], unraisable: Any) -> None:
        """Have an exception that was swallowed repeated, and do not report it."""
        if isinstance(unraisable.exc_value, Interrupted):
            self.code = None
            self._swallowed.set()
        else:
            report(unraisable)

    def _guard(self, arrivals: int) -> None:
        """Wait for a signal, then for the end of the process, and bring that about if need be."""
        bytes_read = iter(partial(os.read, arrivals, 1), b"")
        number = next((n for (n,) in bytes_read if n in SIGNALS), None)
        if number is None:  # the command has ended
            os.close(arrivals)
            return
        deadline = time.monotonic() + PATIENCE
        while (left := deadline - time.monotonic()) > 0:
            if self._swallowed.wait(left):
                self._swallowed.clear()
                time.sleep(CALLBACK)
                signal.raise_signal(number)
        self.end(128 + number)
