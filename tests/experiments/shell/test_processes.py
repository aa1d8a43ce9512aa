"""The processes of a pool end with whoever started them."""

import multiprocessing
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.shell import processes

ROOT = Path(__file__).parents[3]


def test_the_work_of_a_pool_is_done():
    with processes.worker_pool(1) as pool:
        assert pool.submit(abs, -3).result() == 3
    assert multiprocessing.active_children() == []


def test_an_exception_drops_the_work_of_a_pool():
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), processes.worker_pool(1) as pool:
        pool.submit(time.sleep, 600)
        raise KeyboardInterrupt
    assert multiprocessing.active_children() == []
    assert time.monotonic() - begun < 300


KILLED = """
import os, signal, sys, time
from experiments.shell import processes

def sleep():
    print(os.getpid(), flush=True)
    time.sleep(600)

if __name__ == "__main__":
    with processes.worker_pool(1) as pool:
        pool.submit(sleep)
        sys.stdin.read()
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="it looks for them in /proc")
def test_none_outlives_a_command_that_was_killed(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "killed.py").write_text(KILLED)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, tmp_path / "killed.py"], **pipes) as command:
        started = int(command.stdout.readline())
        assert is_running(started)
        command.kill()
    deadline = time.monotonic() + 60
    while is_running(started):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def is_running(process: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
