"""What a newcomer waits for: help and refusals that import nothing slow."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.experiments.shell.test_command_line import commands

ROOT = Path(__file__).parents[3]
SLOW = ("jax", "jaxlib", "flax", "optax", "sklearn", "pandas", "matplotlib", "scipy", "torch")
MISTAKES = {  # words that a command refuses
    "experiments.noise": ("--datset x", "--losses nonsense", "--dataset nonsense", "--seeds none"),
    "experiments.ablation": ("--dataset nonsense",),
    "experiments.answer": ("--losses nonsense",),
    "experiments.calibration": ("--losses nonsense", "--dataset nonsense"),
    "experiments.known_truth": ("--losses nonsense", "--regimes nonsense-40"),
    "experiments.longtail": ("--losses nonsense", "--regime nonsense-30"),
    "experiments.lr_sensitivity": ("--regimes symmetric-140",),
    "experiments.report": ("--losses nonsense",),
    "experiments.robustness": ("--losses nonsense", "--dataset nonsense"),
    "experiments.runtime": ("--losses nonsense", "--dataset nonsense"),
    "proofs_numeric": ("--only nonsense", "--classes 1 --only regret"),
}
SCRIPT = """
import contextlib, io, runpy, sys, warnings

warnings.simplefilter("ignore")  # that a command was imported by another before it is run

def execute(name, words):
    sys.argv = [name, *words]
    with contextlib.redirect_stderr(io.StringIO()) as err, contextlib.redirect_stdout(err):
        try:
            runpy.run_module(name, run_name="__main__")
        except SystemExit as stop:
            return stop.code, err.getvalue()

for name, words, code in {calls!r}:
    ended, text = execute(name, words)
    assert ended == code and (code == 0 or text.count("\\n") == 1), (name, words, ended, text)
    slow = [library for library in {slow!r} if library in sys.modules]
    assert not slow, (name, words, slow)
"""


def run(script):
    """The finished process of a script, in the folder of the project."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-c", textwrap.dedent(script)]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_neither_help_nor_a_mistake_waits_for_anything_slow():
    names = {name for _, name, _ in commands()}
    assert set(MISTAKES) <= names
    calls = [(name, ["--help"], 0) for name in sorted(names)]
    calls += [(name, ["--no-such-option"], 2) for name in sorted(names)]
    for name, mistakes in MISTAKES.items():
        calls += [(name, words.split(), 2) for words in mistakes]
    done = run(SCRIPT.format(calls=calls, slow=SLOW))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("statement", ["import jax", "import pgeom.public"])
def test_a_slow_import_would_be_noticed(statement):
    done = run(statement + SCRIPT.format(calls=[("experiments.noise", ["--help"], 0)], slow=SLOW))
    assert done.returncode == 1 and "AssertionError: ('experiments.noise'" in done.stderr


def test_the_public_names_are_found_when_they_are_used():
    script = """
        import sys, pgeom
        assert "jax" not in sys.modules
        from pgeom import *
        assert set(pgeom.__all__) <= set(dir(pgeom)) & set(globals())
        assert pgeom.losses.brier is pgeom.losses.functions.brier
        assert "brier" in dir(pgeom.losses) and "diagnose" in vars(pgeom)
        for module in (pgeom, pgeom.losses):
            assert not hasattr(module, "nothing") and not hasattr(module, "__nothing__")
    """
    done = run(script)
    assert done.returncode == 0, done.stderr
