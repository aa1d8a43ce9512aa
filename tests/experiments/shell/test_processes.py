"""Ctrl-C is one line and exit code 130 at once, and no process outlives who started it."""

import multiprocessing
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.shell import processes

ROOT = Path(__file__).parents[3]
BEGIN = """
import ctypes, os, signal, subprocess, sys, time
sys.argv, sys.orig_argv = ["-m"], ["-m", "{package}"]  # as while Python looks for a module
import {package}
from experiments.shell import processes

def send():  # what the main thread does goes on meanwhile
    subprocess.Popen(["sh", "-c", f"sleep .2; kill -INT {{os.getpid()}}"])

"""
HOW = {
    "while it sleeps": "send(); time.sleep(60)",
    "in a compiled program": "send(); ctypes.CDLL(None).sleep(60)",
    "while a pool works": """
if __name__ == "__main__":
    with processes.worker_pool(1) as pool:
        pool.submit(time.sleep, 60)
        send()
        ctypes.CDLL(None).sleep(60)
""",
}


def run(code):
    """The exit code and standard error of Python, which must not take as long as it would sleep."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=50
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize("how", HOW)
def test_it_is_one_line_and_its_code(how):
    assert run(BEGIN.format(package="experiments") + HOW[how]) == (130, "interrupted\n")


@pytest.mark.parametrize("package", ["experiments", "proofs_numeric"])
def test_the_line_is_that_of_the_command(package):
    code = BEGIN.format(package=package) + "processes.interruption = 'stopped'\n"
    assert run(code + HOW["while it sleeps"]) == (130, "stopped\n")


def test_a_command_in_the_background_ignores_what_it_should():
    code = "import signal; signal.signal(2, signal.SIG_IGN)\n" + BEGIN.format(package="experiments")
    assert run(code + "send(); time.sleep(1); sys.exit(7)") == (7, "")


def test_whoever_only_imports_keeps_the_handler():
    code = """
import signal
before = signal.getsignal(2)  # in the background it is ignored
import experiments, proofs_numeric
assert signal.getsignal(2) == before
assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()
"""
    assert run(code) == (0, "")


def test_the_work_of_a_pool_is_done_or_dropped():
    with processes.worker_pool(1) as pool:
        assert pool.submit(abs, -3).result() == 3
    assert multiprocessing.active_children() == []
    with pytest.raises(KeyboardInterrupt), processes.worker_pool(1) as pool:
        pool.submit(time.sleep, 600)
        raise KeyboardInterrupt
    assert multiprocessing.active_children() == []


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
