"""Processes in the background, which leave Ctrl-C to the command and never outlive it."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess

from pgeom.frontend.attached import end_with

_commands: list[subprocess.Popen] = []


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
    with _without_interrupts():
        spawn = multiprocessing.get_context("spawn")
        start = (os.getpid(), initializer)
        pool = ProcessPoolExecutor(workers, spawn, initializer=_begin, initargs=start)
        pool.submit(int)  # something, for the first task starts the processes
    try:
        yield pool
    except BaseException:
        _end(multiprocessing.active_children())
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


def _begin(parent: int, initializer: Callable[[], None] | None) -> None:
    """The first thing that a process of a pool does."""
    end_with(parent)
    if initializer is not None:
        initializer()


@contextmanager
def background(module: str, *arguments: str) -> Generator[subprocess.Popen, None, None]:
    """`python -m module …`, silently; it is ended where the `with` is left before it is done."""
    attached = [sys.executable, "-m", "pgeom.frontend.attached", str(os.getpid())]
    command = [*attached, module, *arguments]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with _without_interrupts():
        process = subprocess.Popen(command, **silent)
    _commands.append(process)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
        _commands.remove(process)


def end_all() -> None:
    """End the processes that this one has started."""
    _end([*multiprocessing.active_children(), *_commands])


def _end(started: Iterable[BaseProcess | subprocess.Popen]) -> None:
    for process in started:
        process.terminate()


@contextmanager
def _without_interrupts() -> Generator[None, None, None]:
    """Start processes that Ctrl-C does not reach; what arrives here meanwhile is kept."""
    _start_tracker()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_tracker() -> None:
    """Start multiprocessing's helper now, because starting it lets Ctrl-C through again.

    It cleans up after processes that are ended at once, which is nothing to warn about.
    """
    given = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = "ignore"
    try:
        resource_tracker.ensure_running()
    finally:
        del os.environ["PYTHONWARNINGS"]
        if given is not None:
            os.environ["PYTHONWARNINGS"] = given
