"""A pool of processes that does not outlive its command."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker

SECONDS = 0.5  # between two looks at the parent


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
    spawn = multiprocessing.get_context("spawn")
    start = (os.getpid(), initializer)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    _start_tracker()
    pool = ProcessPoolExecutor(workers, spawn, initializer=_begin, initargs=start)
    pool.submit(int)  # something, for the first task starts the processes
    # multiprocessing lets the signals through that `interrupts` waits for
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    try:
        yield pool
    except BaseException:
        for process in multiprocessing.active_children():
            process.kill()
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


def _start_tracker() -> None:
    """Start multiprocessing's helper, which would warn after Ctrl-C of what it cleans up."""
    given = os.environ.get("PYTHONWARNINGS", "")
    os.environ["PYTHONWARNINGS"] = "ignore"
    resource_tracker.ensure_running()
    os.environ["PYTHONWARNINGS"] = given


def _begin(parent: int, initializer: Callable[[], None] | None) -> None:
    """The first thing that a process of a pool does: see to it that it ends with its parent."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if initializer is not None:
        initializer()
