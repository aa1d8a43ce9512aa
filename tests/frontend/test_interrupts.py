"""Ctrl-C and SIGTERM: one line, their exit codes, soon, whatever the main thread does."""

import subprocess
import sys
from pathlib import Path

import pytest

import pgeom

ROOT = Path(__file__).parents[2]
SCRIPT = f"""
import ctypes, gc, os, signal, subprocess, sys, time, types
pgeom = sys.modules["pgeom"] = types.ModuleType("pgeom")  # without JAX, which takes seconds
pgeom.__path__ = [{str(Path(pgeom.__file__).parent)!r}]
from pgeom.frontend import command_line, interrupts, processes

def at_once(number):
    signal.raise_signal(number)

def in_a_callback(number):
    gc.callbacks.append(lambda *_: gc.callbacks.clear() or signal.raise_signal(number))
    gc.collect()
    time.sleep(60)

def in_a_compiled_program(number):
    with processes.worker_pool(1) as pool:
        pool.submit(time.sleep, 60)
        # it reaches another thread, and what the main thread does goes on
        signal.pthread_sigmask(signal.SIG_BLOCK, interrupts.SIGNALS)
        subprocess.Popen(["kill", f"-{{number}}", str(os.getpid())])
        ctypes.CDLL(None).sleep(60)

def swallowed_for_good(number):
    try:
        signal.raise_signal(number)
    except BaseException:
        time.sleep(60)

def swallowed_by_mistake(number):
    try:
        signal.raise_signal(number)
    except BaseException:
        return

def again_while_cleaning_up(number):
    try:
        signal.raise_signal(number)
    finally:
        signal.raise_signal(number)
        print("cleaned up", file=sys.stderr)

def main(how: str, number: int) -> None:
    globals()[how](number)

if __name__ == "__main__":
    command_line.run(main, "example", on_interrupt="stopped")
"""
EARLY = """
import signal, sys
sys.argv = ["-m"]  # as while Python looks for a module
import {package}
signal.raise_signal({number})
"""
CODES = {2: 130, 15: 143}


def run(*command):
    """The exit code and standard error of Python, which must not take longer than a minute."""
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=ROOT, timeout=50
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize("number", CODES)
@pytest.mark.parametrize(
    "how",
    [
        "at_once",
        "in_a_callback",
        "in_a_compiled_program",
        "swallowed_by_mistake",
        "swallowed_for_good",
    ],
)
def test_a_signal_is_one_line_and_its_code(how, number, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    arguments = ["--how", how, "--number", str(number)]
    assert run(tmp_path / "script.py", *arguments) == (CODES[number], "stopped\n")


def test_a_second_signal_lets_the_first_clean_up(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    arguments = ["--how", "again_while_cleaning_up", "--number", "2"]
    assert run(tmp_path / "script.py", *arguments) == (130, "cleaned up\nstopped\n")


@pytest.mark.parametrize("number", CODES)
@pytest.mark.parametrize("package", ["experiments", "proofs_numeric"])
def test_imports_may_be_interrupted(package, number):
    code = EARLY.format(package=package, number=number)
    assert run("-c", code) == (CODES[number], "interrupted\n")


def test_whoever_only_imports_keeps_the_handlers():
    code = """
import signal
before = [signal.getsignal(number) for number in (2, 15)]  # in the background, 2 is ignored
import experiments, proofs_numeric
assert [signal.getsignal(number) for number in (2, 15)] == before
"""
    assert run("-c", code) == (0, "")
