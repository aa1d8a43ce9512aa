"""The command as a process, in surroundings that a test in this process cannot have."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.engine.store import Store

TINY = ["--dataset", "breast-cancer", "--regimes", "clean", "--seeds", "1", "--epochs", "1"]
LOSSES = """
import jax.numpy as jnp

print("imported")

def talks(logits, labels):
    print("traced")
    return -jnp.take_along_axis(logits, labels[..., None], -1)[..., 0] + jnp.max(logits, -1)

def interrupts(logits, labels):
    raise KeyboardInterrupt
"""
NO_UTF8 = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "COLUMNS": "40"}


@pytest.fixture
def noise(tmp_path):
    """`noise(*arguments, **environment)`: the finished process."""
    (tmp_path / "my.py").write_text(LOSSES)
    quick = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])

    def execute(*arguments, stdout=subprocess.PIPE, **environment):
        return subprocess.run(
            [sys.executable, "-m", "experiments.noise", *TINY, *arguments],
            env={**os.environ, **quick, "PYTHONPATH": path, **environment},
            cwd=tmp_path,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )

    return execute


def test_surroundings_change_no_record_and_no_file(noise, tmp_path):
    options = ["--losses", "ce", "--own-losses", "my.py:talks"]
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
