"""The house rules that a reader feels: short files, nothing written twice, one name per idea."""

import ast
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(str(find_spec("pgeom").origin)).parents[1]  # also where a wheel is installed
TOPS = ("pgeom", "experiments", "proofs_numeric")
LONGEST = 250  # lines of a file
REPEATED = 12  # consecutive lines that are no coincidence

MIRRORS = {  # files that share a name on purpose, and why
    ("pgeom/geometry/curvature.py", "proofs_numeric/curvature.py"): "checked by its claim",
    ("pgeom/geometry/displacement.py", "proofs_numeric/displacement.py"): "checked by its claim",
    ("pgeom/geometry/margin.py", "proofs_numeric/margin.py"): "checked by its claim",
    ("pgeom/geometry/softmax.py", "proofs_numeric/softmax.py"): "checked by its claim",
    ("experiments/figures/noise.py", "experiments/noise.py"): "the figures of the command",
    ("experiments/calibration.py", "pgeom/evaluation/calibration.py"): "studied by the command",
}


def sources():
    """Every Python file of the project by its path."""
    files = (file for top in TOPS for file in ROOT.glob(f"{top}/**/*.py"))
    return {file.relative_to(ROOT).as_posix(): file.read_text() for file in sorted(files)}


def too_long(files):
    return {path: n for path, text in files.items() if (n := len(text.splitlines())) >= LONGEST}


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


def names_twice(paths):
    """The files that share a name, but for those that mirror each other."""
    named = defaultdict(list)
    for path in map(Path, paths):
        if path.stem not in ("__init__", "__main__"):
            named[path.stem].append(path.as_posix())
    return [same for same in named.values() if len(same) > 1 and tuple(sorted(same)) not in MIRRORS]


def test_every_file_is_short():
    assert len(sources()) > 100
    assert too_long(sources()) == {}


def test_nothing_is_written_twice():
    assert repetitions(sources()) == []


def test_no_two_files_have_one_name():
    assert names_twice(sources()) == []


def test_every_mirror_is_there():
    assert {path for mirror in MIRRORS for path in mirror} <= set(sources())


def test_a_long_file_is_seen():
    assert too_long({"long.py": "\n" * 250, "short.py": "\n" * 249}) == {"long.py": 250}


def test_a_repetition_is_seen_once_whatever_its_indentation():
    lines = [f"x = {i}" for i in range(15)]
    first = "import os\n" + "\n\n".join(lines)
    second = "def f():\n    y = 0\n" + "\n".join(f"    {line}" for line in lines)
    assert repetitions({"a.py": first, "b.py": second}) == [["a.py:2", "b.py:3"]]
    shorter = "\n".join(lines[:11])
    assert repetitions({"a.py": shorter, "b.py": second}) == []
    imports = "\n".join(f"import m{i}" for i in range(15))
    assert repetitions({"a.py": imports, "b.py": imports}) == []


def test_a_second_file_of_one_name_is_seen():
    paths = ["pgeom/a.py", "experiments/a.py", "pgeom/__init__.py", "experiments/__init__.py"]
    assert names_twice(paths) == [["pgeom/a.py", "experiments/a.py"]]
    mirror = list(next(iter(MIRRORS)))
    assert names_twice(mirror) == []
    third = f"experiments/{Path(mirror[0]).name}"
    assert names_twice([*mirror, third]) == [[*mirror, third]]
