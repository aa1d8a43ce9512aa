"""Ctrl-C, which ends a command at once, and a pool of processes that ends with it.

Python looks at a signal only when a compiled program has returned. So Ctrl-C is blocked, and a
thread waits for it. It has nothing to clean up: files are written whole or not at all.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker

INTERRUPTED = 130  # the exit code
SHOW_CURSOR = "\x1b[?25h"  # which progress bars hide

interruption = "interrupted"  # what the command that is running says


def end_at_ctrl_c() -> None:
    """From now on, end this process at Ctrl-C, unless it ignores it, as one in the background.

    Call it before other threads are started: they must inherit that it is blocked.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        threading.Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    signal.sigwait([signal.SIGINT])
    # not by `print`, which would wait for a thread that is printing
    os.write(2, f"{SHOW_CURSOR * os.isatty(2)}{interruption}\n".encode())
    os._exit(INTERRUPTED)


def available_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def worker_pool(
    workers: int, initializer: Callable[[], None] | None = None
) -> Generator[ProcessPoolExecutor, None, None]:
    """A pool of new processes; their work is dropped where an exception leaves the `with`.

    Args:
      workers: how many processes.
      initializer: called once in each of them.
    """
    # multiprocessing's helper would warn after Ctrl-C of what it cleans up, and lets Ctrl-C through
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    given = os.environ.get("PYTHONWARNINGS", "")
    os.environ["PYTHONWARNINGS"] = "ignore"
    resource_tracker.ensure_running()
    os.environ["PYTHONWARNINGS"] = given
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, spawn, initializer=_begin, initargs=(initializer,))
    try:
        yield pool
    except BaseException:
        for process in multiprocessing.active_children():
            process.kill()
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


def _begin(initializer: Callable[[], None] | None) -> None:
    """The first thing that a process of a pool does: see to it that it ends with its parent."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    if initializer is not None:
        initializer()
