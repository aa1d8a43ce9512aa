"""The rooms of the project import one way only."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = {"pgeom.types", "pgeom.edge"}
GEOMETRY = CORE | {"pgeom.geometry"}
LOSSES = GEOMETRY | {"pgeom.losses"}
MEASURED = {"pgeom.types", "pgeom.edge"}  # what data and evaluation may know
ROOMS = {  # a room, and what of the project it may import besides itself
    "pgeom/types.py": set(),
    "pgeom/edge.py": {"pgeom.types"},
    "pgeom/compilation.py": set(),
    "pgeom/frontend": set(),
    "pgeom/geometry": CORE | {"pgeom.compilation"},
    "pgeom/losses": GEOMETRY,
    "pgeom/training": LOSSES | {"pgeom.compilation"},
    "pgeom/data": MEASURED,
    "pgeom/evaluation": MEASURED,
    "experiments": {"pgeom"},
    "proofs_numeric": GEOMETRY
    | {"pgeom.compilation", "pgeom.losses.proper", "pgeom.losses.catalogue", "pgeom.data"}
    | {"pgeom.frontend"},
}
LIBRARIES = {  # a library, and the only places for it
    "sklearn": ("pgeom/data/", "pgeom/estimator"),
    "scipy": ("pgeom/evaluation/significance.py",),
    "matplotlib": ("figures.py", "figures/", "pgeom/frontend/figure_style.py"),
    "torch": ("experiments/speed",),
}


def imported(source):
    """Every module that a source names in an import, `from a import b` as both a and a.b."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def under(name, packages):
    return any(name == package or name.startswith(package + ".") for package in packages)


def forbidden(path, source):
    """The imports of a file that its room does not allow."""
    room = next((room for room in ROOMS if path == room or path.startswith(room + "/")), None)
    allowed = None if room is None else ROOMS[room] | {room.removesuffix(".py").replace("/", ".")}
    for name in imported(source):
        ours = under(name, {"pgeom", "experiments", "proofs_numeric"})
        if ours and allowed is not None and not under(name, allowed):
            yield name
        if path.startswith("pgeom/frontend/") and under(name, {"jax"}):
            yield name  # a command line reports bad input before anything slow is imported
        places = LIBRARIES.get(name.split(".")[0])
        if places is not None and not any(place in path for place in places):
            yield name


def test_every_file_keeps_the_direction():
    files = [
        f for top in ("pgeom", "experiments", "proofs_numeric") for f in ROOT.glob(f"{top}/**/*.py")
    ]
    assert len(files) > 20
    found = {}
    for file in files:
        path = file.relative_to(ROOT).as_posix()
        found |= {path: names} if (names := [*forbidden(path, file.read_text())]) else {}
    assert found == {}


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("pgeom/types.py", "import pgeom.edge"),
        ("pgeom/geometry/margin.py", "from pgeom.losses import proper"),
        ("pgeom/geometry/margin.py", "import pgeom"),
        ("pgeom/losses/proper.py", "def late():\n    from pgeom.training import trainer"),
        ("pgeom/training/trainer.py", "from pgeom import data"),
        ("pgeom/evaluation/metrics.py", "from pgeom.losses.proper import on_logits"),
        ("proofs_numeric/regret.py", "from pgeom.losses import likelihood"),
        ("proofs_numeric/regret.py", "from experiments import protocol"),
        ("pgeom/losses/proper.py", "import sklearn.datasets"),
        ("pgeom/evaluation/metrics.py", "from scipy import stats"),
        ("experiments/tables.py", "import matplotlib.pyplot as plt"),
        ("pgeom/training/trainer.py", "import torch"),
        ("pgeom/frontend/names.py", "import jax.numpy as jnp"),
        ("pgeom/frontend/numbers.py", "import matplotlib"),
        ("pgeom/frontend/loading.py", "from pgeom import types"),
    ],
)
def test_a_forbidden_import_is_found(path, source):
    assert [*forbidden(path, source)]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("pgeom/losses/proper.py", "from pgeom import edge\nfrom pgeom.geometry import margin"),
        ("pgeom/geometry/generators.py", "import jax.scipy.special"),
        ("pgeom/data/sources.py", "from sklearn import datasets"),
        ("experiments/figures.py", "import matplotlib"),
        ("proofs_numeric/regret.py", "from pgeom.losses.proper import on_logits"),
    ],
)
def test_an_allowed_import_is_not(path, source):
    assert not [*forbidden(path, source)]
