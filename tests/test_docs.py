"""The examples of the documentation are run: Python as it stands, commands with tiny settings.

The blocks of a page run in order, in one namespace and one empty folder. A Python block that begins
with the name of a file, as in `# my.py`, is written to that file instead. A command ends with the
exit code that its line announces, as in `# exit code 2`, or else with 0.
"""

import inspect
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

import pgeom

ROOT = Path(__file__).parent.parent
NO_EXAMPLES = {"index", "api", "speed", "comparison-50-seeds", "choosing", "changelog"}
NO_EXAMPLES |= {"contributing"}  # which is CONTRIBUTING.md
GUIDE = sorted(f for f in ROOT.glob("docs/*.md") if f.stem not in NO_EXAMPLES)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *GUIDE]

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


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Commands find this checkout, and share what they compile, with little optimisation."""
    return {
        "PYTHONPATH": str(ROOT),
        "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")),
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_run(page, environment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    text = page.read_text()
    assert blocks(text)
    # as users have it: Optax and Flax promote types and ranks
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        run(text, str(page), tmp_path, environment)
    for file in tmp_path.glob("*.py"):
        sys.modules.pop(file.stem, None)


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.stem)
def test_every_python_block_of_the_guide_asserts_something(page):
    for block in blocks(page.read_text()):
        if block.language == "python" and not file_name(block):
            asserts = re.search(r"^ *assert ", block.text, re.MULTILINE)
            assert asserts, f"the block at line {block.line} does not"


def test_pages_without_examples_have_none():
    for stem in NO_EXAMPLES:
        assert blocks((ROOT / f"docs/{stem}.md").read_text()) == []


def test_a_false_statement_fails_at_its_line(tmp_path):
    page = "# A page\n```python\nx = 2\n```\nand\n```python\ny = 1\nassert x == y\n```\n"
    assert [block.line for block in blocks(page)] == [3, 7]
    with pytest.raises(AssertionError) as error:
        run(page, "page.md", tmp_path, {})
    assert error.traceback[-1].lineno + 1 == 8


def test_a_command_with_another_exit_code_fails(tmp_path, environment):
    with pytest.raises(AssertionError, match="digits"):
        execute("python -m experiments.noise --dataset digit", tmp_path, environment)
    with pytest.raises(AssertionError, match="do not know how to test"):
        execute("make all", tmp_path, environment)


def test_commands_are_made_tiny():
    words = shlex.split("experiments.noise --seeds 10 --dataset digits")
    tiny = "experiments.noise --dataset digits --losses ce hpg --seeds 2 --epochs 2"
    assert shrink(words) == shlex.split(tiny)
    assert shrink(["proofs_numeric"]) == shlex.split("proofs_numeric --only margin --classes 3")


def public_names():
    """The public names of pgeom and of its public modules, such as `losses.brier`."""
    for name in pgeom.__all__:
        value = getattr(pgeom, name)
        if not inspect.ismodule(value):
            yield name
            continue
        own = (k for k, v in vars(value).items() if getattr(v, "__module__", "") == value.__name__)
        for inside in getattr(value, "__all__", own):
            if not inside.startswith("_"):
                yield f"{name}.{inside}"


def documented_names():
    """The names that the reference takes from docstrings."""
    module = ""
    for line in (ROOT / "docs/api.md").read_text().splitlines():
        if found := re.match(r"\.\. currentmodule:: (.*)", line):
            module = found[1]
        elif found := re.match(r"\.\. auto(?:function|class|data):: ([\w.]+)", line):
            full = found[1] if found[1].startswith("pgeom.") else f"{module}.{found[1]}"
            yield full.removeprefix("pgeom.")


def test_the_reference_has_every_public_name():
    assert set(public_names()) - set(documented_names()) == set()


def table_rows(page: str) -> list[list[str]]:
    """The cells of every row of the tables of a page."""
    return [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]


def test_the_numbers_of_the_advice_are_those_that_were_measured():
    """Each cell of choosing.md stands in the results, beside its loss and its metric."""
    measured = set()
    for row in table_rows((ROOT / "docs/comparison-50-seeds.md").read_text()):
        if len(row) == 9:
            _, _, _, loss, metric, _, ours, _, _ = row
            measured.add((loss, metric, ours))
    header, cells = [], set()
    for row in table_rows((ROOT / "docs/choosing.md").read_text()):
        if row[0] == "Loss":
            header = row
        else:
            cells |= {(row[0], metric, value) for metric, value in zip(header, row, strict=True)}
    cells = {cell for cell in cells if cell[1] != "Loss"}
    assert len(cells) > 50 and cells - measured == set()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_to_files_lead_somewhere(page):
    text = (ROOT / page).read_text()
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert [link for link in links if not (ROOT / link).exists()] == []
