"""The examples of the documentation, and how they are run: Python as it stands, commands tiny.

The blocks of a page run in order, in one namespace and one empty folder. A Python block that begins
with the name of a file, as in `# my.py`, is written to that file instead. A command ends with the
exit code that its line announces, as in `# exit code 2`, or else with 0.
"""

import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import jax
import pytest

ROOT = Path(__file__).parents[2]
NO_EXAMPLES = {"index", "api", "speed", "comparison-100-seeds", "choosing", "changelog"}
NO_EXAMPLES |= {"answer", "promises", "contributing"}  # which is CONTRIBUTING.md
GUIDE = sorted(f for f in ROOT.glob("docs/*.md") if f.stem not in NO_EXAMPLES)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *GUIDE]

# which file of tests runs which pages: pytest-xdist gives each to one worker
GROUPS = {
    "test_readme": ("README", "CONTRIBUTING", "uses"),
    "test_losses": ("start", "training", "estimator", "targets", "accuracy", "learning", "links"),
    "test_own": ("own-generator", "own-data", "certificates"),
    "test_commands": ("commands", "records", "cluster", "probabilities"),
}

# What the tests cannot run inside themselves; .ci/run runs it.
TOOLS = r"\S*(pip install|ruff|pyrefly|python -m (pytest|sphinx)) "
SETUP = rf"python3 -m venv|\. .venv/bin/activate|{TOOLS}"
PROGRAM = r"\S*python -m (?P<command>(experiments|proofs_numeric)\b.*)"


class Block(NamedTuple):
    """A block of code: its language, the number of its first line, its text."""

    language: str
    line: int
    text: str


def blocks(page: str) -> list[Block]:
    """The Python and shell blocks of a page of Markdown."""
    found = re.finditer(r"^```(python|bash)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [Block(b[1], page.count("\n", 0, b.start(2)) + 1, b[2]) for b in found]


def file_name(block: Block) -> str | None:
    """The file that a block is to be written to."""
    named = re.match(r"# (\S+\.py)\n", block.text)
    return named[1] if block.language == "python" and named else None


def shrink(words: list[str]) -> list[str]:
    """A command with tiny settings: two seeds, two epochs, two losses; one claim, three classes."""
    if {"--help", "--version"} & set(words):
        return words
    if words[0] == "proofs_numeric":
        words = words if "--generator" in words else [*words, "--only", "margin"]
        return words if "--classes" in words else [*words, "--classes", "3"]
    if "--seeds" in words:
        place = words.index("--seeds")
        words = words[:place] + words[place + 2 :]
    if "--losses" not in words:
        words = [*words, "--losses", "ce", "hpg"]
    return [*words, "--seeds", "2", "--epochs", "2"]


def launched() -> dict[str, str]:
    """The environment of the only task of a Slurm job."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    slurm = {"JOB_ID": "1", "STEP_NODELIST": "localhost", "NTASKS": "1", "PROCID": "0"}
    slurm |= {"LOCALID": "0"}
    return {f"SLURM_{k}": v for k, v in slurm.items()} | {"JAX_COORDINATOR_ADDRESS": address}


def execute(line: str, folder: Path, environment: dict[str, str]) -> None:
    """Run one line of a shell block in a folder, and compare its exit code."""
    for part in line.split(" && "):
        if re.match(SETUP, part.strip()):
            continue
        found = re.search(PROGRAM, part)
        assert found, f"do not know how to test {part!r}"
        words = shrink(shlex.split(found["command"], comments=True))
        expected = re.search(r"# exit code (\d+)", part)
        extra = launched() if "--distributed" in words else {}
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=folder,
            env={**os.environ, **environment, **extra},
            capture_output=True,
            text=True,
            timeout=400,
        )
        wanted = int(expected[1]) if expected else 0
        assert done.returncode == wanted, f"{part}\n{done.stdout}\n{done.stderr}"


def run(page: str, name: str, folder: Path, environment: dict[str, str]) -> None:
    """Run the blocks of a page; a failure of Python names its line."""
    namespace = {"__name__": "__docs__"}
    for block in blocks(page):
        if block.language == "bash":
            for line in block.text.splitlines():
                execute(line, folder, environment)
        elif file := file_name(block):
            (folder / file).write_text(block.text)
        else:
            exec(compile("\n" * (block.line - 1) + block.text, name, "exec"), namespace)


def run_page(stem: str, folder: Path, environment: dict[str, str], patch: pytest.MonkeyPatch):
    """Run the examples of a page in an empty folder."""
    (page,) = (one for one in PAGES if one.stem == stem)
    patch.chdir(folder)
    patch.syspath_prepend(folder)
    text = page.read_text()
    assert blocks(text)
    # as users have it: Optax and Flax promote types and ranks
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        run(text, str(page), folder, environment)
    for file in folder.glob("*.py"):
        sys.modules.pop(file.stem, None)
