"""Processes in the background, which leave Ctrl-C to the command and never outlive it."""

import multiprocessing
import os
import signal
import subprocess
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess

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
        pool = ProcessPoolExecutor(workers, spawn, initializer=initializer)
        pool.submit(int)  # something, for the first task starts the processes
    try:
        yield pool
    except BaseException:
        _end(multiprocessing.active_children())
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


@contextmanager
def background(command: list[str]) -> Generator[subprocess.Popen, None, None]:
    """A command that runs silently; it is ended where the `with` is left before it has finished."""
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
