"""A house rule that a reader feels: nothing is written twice."""

import ast
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(str(find_spec("pgeom").origin)).parents[1]  # also where a wheel is installed
TOPS = ("pgeom", "experiments", "proofs_numeric", "benchmarks")
REPEATED = 12  # consecutive lines that are no coincidence


def sources():
    """Every Python file of the project by its path."""
    files = (file for top in TOPS for file in ROOT.glob(f"{top}/**/*.py"))
    return {file.relative_to(ROOT).as_posix(): file.read_text() for file in sorted(files)}


def code_lines(text):
    """The numbered lines of a source, stripped, without blank ones and without imports."""
    imports = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.update(range(node.lineno, node.end_lineno + 1))
    numbered = ((number, line.strip()) for number, line in enumerate(text.splitlines(), start=1))
    return [(number, line) for number, line in numbered if line and number not in imports]


def repetitions(files):
    """The places that share `REPEATED` consecutive lines of code, each passage once."""
    places = defaultdict(list)
    for path, text in files.items():
        lines = code_lines(text)
        for first in range(len(lines) - REPEATED + 1):
            window = tuple(line for _, line in lines[first : first + REPEATED])
            places[window].append((path, lines[first][0], first))
    passages, begun = [], set()
    for shared in places.values():
        if len(shared) > 1:
            begun.add(tuple((path, first) for path, _, first in shared))
            if tuple((path, first - 1) for path, _, first in shared) not in begun:
                passages.append([f"{path}:{number}" for path, number, _ in shared])
    return passages


def test_there_are_sources():
    assert len(sources()) > 20


def test_nothing_is_written_twice():
    assert repetitions(sources()) == []


def test_a_repetition_is_seen_once_whatever_its_indentation():
    lines = [f"x = {i}" for i in range(15)]
    first = "import os\n" + "\n\n".join(lines)
    second = "def f():\n    y = 0\n" + "\n".join(f"    {line}" for line in lines)
    assert repetitions({"a.py": first, "b.py": second}) == [["a.py:2", "b.py:3"]]
    shorter = "\n".join(lines[:11])
    assert repetitions({"a.py": shorter, "b.py": second}) == []
    imports = "\n".join(f"import m{i}" for i in range(15))
    assert repetitions({"a.py": imports, "b.py": imports}) == []
