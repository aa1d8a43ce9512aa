"""The command as a process of its own: its devices, its streams, and how much it loads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.engine.store import Store

ROOT = Path(__file__).parents[2]
TINY = ["--dataset", "breast-cancer", "--regimes", "clean", "--seeds", "1", "--epochs", "1"]
TALKS = """
import jax.numpy as jnp

print("imported")

def talks(logits, labels):
    print("traced")
    return -jnp.take_along_axis(logits, labels[..., None], -1)[..., 0] + jnp.max(logits, -1)

def interrupts(logits, labels):
    raise KeyboardInterrupt
"""
NO_UTF8 = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "COLUMNS": "40"}
MODULES = """
import runpy, sys
sys.argv = ["noise", *sys.argv[1:]]
try:
    runpy.run_module("experiments.noise", run_name="__main__")
finally:
    mine = [name for name in sys.modules if name.partition(".")[0] in ("pgeom", "experiments")]
    print(len(mine), file=sys.stderr)
"""


@pytest.fixture
def noise(tmp_path):
    """`noise(*arguments, **environment)`: the finished process."""
    (tmp_path / "my.py").write_text(TALKS)
    quick = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])

    def execute(*arguments, way=("-m", "experiments.noise"), stdout=subprocess.PIPE, **environment):
        return subprocess.run(
            [sys.executable, *way, *TINY, *arguments],
            env={**os.environ, **quick, "PYTHONPATH": path, **environment},
            cwd=tmp_path,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )

    return execute


def test_surroundings_change_no_record_and_no_file(noise, tmp_path):
    options = ["--losses", "ce", "--own-losses", "my.py:talks", "--devices", "1"]
    plain = noise(*options, "--json", "--out", "plain")
    assert plain.returncode == 0, plain.stderr
    assert [row["loss"] for row in json.loads(plain.stdout)] == ["ce", "talks"]
    assert "imported\n" in plain.stderr and "traced\n" in plain.stderr
    with open("/dev/full", "w") as full:
        other = noise(*options, "--out", "other[/bold]", stdout=full, **NO_UTF8)
    assert other.returncode == 2
    assert other.stderr.endswith(
        "error: cannot write to standard output: No space left on device\n"
    )
    folders = tmp_path / "plain", tmp_path / "other[/bold]"
    first, second = ({path.name for path in folder.iterdir()} for folder in folders)
    assert first == second
    table, again = (folder / "tables-breast-cancer.md" for folder in folders)
    assert table.read_bytes() == again.read_bytes() and table.stat().st_size > 0
    assert Store(folders[0]).records == Store(folders[1]).records


def test_an_interruption_in_a_user_s_function(noise):
    done = noise("--losses", "ce", "--own-losses", "my.py:interrupts", "--out", "out")
    assert (done.returncode, done.stdout) == (130, "")
    line = "interrupted: finished runs are kept, rerun to resume\n"
    assert done.stderr == f"imported\n{line}"


def test_devices_that_are_not_there_are_one_line(noise):
    many = noise("--devices", "4096")
    assert many.returncode == 2 and many.stderr.count("\n") == 1
    assert "--devices must be at most" in many.stderr and "got 4096" in many.stderr


def test_a_run_loads_at_most_ninety_modules_of_the_project(noise):
    done = noise("--losses", "ce", "--json", "--out", "out", way=("-c", MODULES))
    assert done.returncode == 0 and int(done.stderr.splitlines()[-1]) <= 90
