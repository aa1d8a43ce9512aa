"""Ctrl-C: one line and exit code 130, at once, whatever the main thread does."""

import subprocess
import sys
from pathlib import Path

import pytest

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
