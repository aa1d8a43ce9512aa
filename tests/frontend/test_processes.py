"""Processes in the background end with whoever started them."""

import multiprocessing
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pgeom.frontend import processes

ROOT = Path(__file__).parents[2]


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


@pytest.fixture
def sleeper(tmp_path, monkeypatch):
    """The name of a module that sleeps, or ends with a code that it is given."""
    (tmp_path / "sleeper.py").write_text(
        "import sys, time\nsys.exit(int(sys.argv[1])) if sys.argv[1:] else time.sleep(600)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return "sleeper"


def test_a_command_is_ended_with_its_block(sleeper):
    with processes.background(sleeper) as process:
        assert process.poll() is None
    assert process.returncode < 0
    with processes.background(sleeper, "3") as process:
        process.wait()
    assert process.returncode == 3


def test_all_are_ended_at_once(sleeper):
    with processes.background(sleeper) as process:
        processes.end_all()
        assert process.wait() < 0


KILLED = """
import os, signal, sys, time
from pgeom.frontend import processes

def sleep():
    print(os.getpid(), flush=True)
    time.sleep(600)

if __name__ == "__main__":
    with processes.background("sleeper") as process, processes.worker_pool(1) as pool:
        print(process.pid, flush=True)
        pool.submit(sleep)
        sys.stdin.read()
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="it looks for them in /proc")
def test_none_outlives_a_command_that_was_killed(sleeper, tmp_path):
    (tmp_path / "killed.py").write_text(KILLED)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "killed.py"], **pipes) as command:
        started = [int(command.stdout.readline()) for _ in range(2)]
        assert all(map(is_running, started))
        command.kill()
    deadline = time.monotonic() + 60
    while any(map(is_running, started)):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def is_running(process: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
