"""Ctrl-C and SIGTERM end a command at once, in one line, with the exit code that shells expect.

Python looks at a signal only when a compiled program has returned. So signals are blocked, and a
thread waits for them. It has nothing to clean up: every file is written whole or not at all.
"""

import multiprocessing
import os
import signal
import threading

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SHOW_CURSOR = "\x1b[?25h"  # which progress bars hide

line = "interrupted"  # what the command that is running says


def watch() -> None:
    """From now on, end this process when a signal arrives, unless it ignores it already.

    Call it before other threads are started: they must inherit that signals are blocked.
    """
    awaited = {number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    threading.Thread(target=_wait, args=(awaited,), daemon=True).start()


def _wait(awaited: set[signal.Signals]) -> None:
    number = signal.sigwait(awaited)
    for process in multiprocessing.active_children():
        process.kill()
    # not by `print`, which would wait for a thread that is printing
    os.write(2, f"{SHOW_CURSOR * os.isatty(2)}{line}\n".encode())
    os._exit(128 + number)
