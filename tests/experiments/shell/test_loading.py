"""Functions by the names they have on a command line, of modules and of files."""

import sys

import pytest

from experiments.shell import loading
from experiments.shell.errors import UsageError
from pgeom import generators

FILES = {
    "own/math.py": "import neighbour\ndef F(p):\n    return neighbour.twice(p)\nnumber = 3\n",
    "own/neighbour.py": "def twice(x):\n    return 2 * x\n",
    "own/with.dots.py": "import dataclasses\n@dataclasses.dataclass\nclass Point:\n    x: 'int'\n",
    "raises.py": "raise RuntimeError('no luck')\n",
    "quits.py": "import sys\nsys.exit(0)\n",
    "interrupted.py": "raise KeyboardInterrupt\n",
    "mistyped.py": "def F(p:\n",
    "notes.txt": "def F(p): return p\n",
}


FORMS = "must be module:function or path/to/file.py:function"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder with files; what loading leaves behind is removed."""
    (tmp_path / "own").mkdir()
    for path, text in FILES.items():
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def load(spec):
    return loading.load(spec, option="--function")


def test_a_file_is_found_from_the_working_folder_or_by_its_full_path(folder):
    assert load("own/math.py:F")(3) == load(f"{folder}/own/math.py:F")(3) == 6


def test_a_file_hides_no_module_and_leaves_no_path():
    import math

    before = list(sys.path)
    load("own/math.py:F")
    assert sys.modules["math"] is math
    assert sys.path == before


def test_a_file_may_have_dots_in_its_name_and_define_dataclasses():
    assert load("own/with.dots.py:Point")(3).x == 3


def test_modules_of_the_working_folder_and_of_packages_are_found(folder):
    (folder / "own_module.py").write_text("def F(p):\n    return p + 1\n")
    assert load("own_module:F")(1) == 2
    assert load("pgeom.generators:shannon") is generators.shannon


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("F", f"{FORMS}, got 'F'"),
        ("own/math.py:", FORMS),
        ("own/math.py:F,G", FORMS),
        ("own/math.py:F,own/math.py:G", FORMS),
        ("notes.txt:F", "cannot import 'notes.txt': ModuleNotFoundError"),
        ("./notes.txt:F", "must be module:function or path/to/file.py:function, got the path"),
        ("own/maths.py:F", "there is no file 'own/maths.py'"),
        ("pgeom.nothing:F", "cannot import 'pgeom.nothing': ModuleNotFoundError"),
        ("raises.py:F", "cannot import 'raises.py': RuntimeError: no luck"),
        ("raises:F", "cannot import 'raises': RuntimeError: no luck"),
        ("quits.py:F", "cannot import 'quits.py': SystemExit: 0"),
        ("mistyped.py:F", "cannot import 'mistyped.py': SyntaxError"),
        ("own/math.py:f", "'own/math.py' has no 'f'; did you mean 'F'?"),
        ("own/math.py:zzz", "'own/math.py' has no 'zzz'"),
        ("own/math.py:number", "own/math.py:number must be a function, got int"),
    ],
)
def test_what_cannot_be_loaded_is_one_line(spec, says):
    with pytest.raises(UsageError) as refused:
        load(spec)
    assert str(refused.value).startswith(f"--function: {says}")
    assert "\n" not in str(refused.value)


def test_an_interruption_passes():
    with pytest.raises(KeyboardInterrupt):
        load("interrupted.py:F")
