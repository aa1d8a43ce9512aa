"""The rooms of the project import one way only."""

import ast

import pytest

from tests.sources import ROOT, TOPS

COMMANDS = {f"experiments.{file.stem}" for file in ROOT.glob("experiments/[a-z]*.py")}

# the rooms of the library, the inner ones first: each may import itself and those before it
ORDER = (
    "pgeom.messages",
    "pgeom.types",
    "pgeom.extras",
    "pgeom.deferred",
    "pgeom.compilation",
    "pgeom.checks",
    "pgeom.pickling",
    "pgeom.functions",
    "pgeom.derivatives",
    "pgeom.special",
    "pgeom.simplex",
    "pgeom.generators",
    "pgeom.scores",
    "pgeom.links",
    "pgeom.diagnosis",
    "pgeom.certificates",
    "pgeom.paper",
    "pgeom.losses",
    "pgeom.models",
    "pgeom.training",
    "pgeom.sklearn",
)
MATHEMATICS = set(ORDER[: ORDER.index("pgeom.losses")])
LOSSES = MATHEMATICS | {"pgeom.losses"}


def before(room):
    return set(ORDER[: ORDER.index(room)])


# what reads records and never trains: neither jobs, commands nor the trainer
READING = {
    f"experiments.engine.{name}"
    for name in ("study", "store", "results", "linked", "controls", "measures")
}
READING |= LOSSES | {"pgeom.data", "pgeom.evaluation", "experiments.shell"}
SHELL = "experiments.shell"
SHOWING = {SHELL, "experiments.engine", "experiments.show"}

ROOMS = {  # a room or a file of one, and what of the project it may import besides itself
    "pgeom/__init__.py": {"pgeom.deferred", "pgeom.public"},
    "pgeom/public.py": {"pgeom"},
    # a document is verified by the checker, which shares no code with what made it
    "pgeom/certificates/__init__.py": before("pgeom.certificates")
    | {"pgeom.certificates", "proofs_numeric.checker"},
    # a diagnosis asks for a proof where that is wanted, and certificates name its witnesses
    "pgeom/diagnosis/__init__.py": before("pgeom.certificates") | {"pgeom.certificates"},
    **{room.replace(".", "/") + suffix: before(room) for room in ORDER for suffix in ("", ".py")},
    "pgeom/data": {"pgeom.messages"},
    "pgeom/evaluation": MATHEMATICS,
    "pgeom/training": before("pgeom.training") | {"pgeom.evaluation"},  # to stop early by metrics
    "experiments/shell": {"pgeom.messages"},
    "experiments/engine": {"pgeom", SHELL},
    "experiments/show": READING,
    "benchmarks": {"pgeom", "experiments.engine", SHELL},  # which nothing imports
    "experiments": {"pgeom"} | SHOWING | COMMANDS,  # the commands
    "proofs_numeric/__init__.py": {"pgeom.extras", "experiments"},  # its commands end alike
    "proofs_numeric": MATHEMATICS
    | {f"pgeom.losses.{name}" for name in ("catalogue", "structured", "own")}
    | {"pgeom.data", SHELL, "experiments.show.style"},
}
LIBRARIES = {  # a library, and the only places for it
    "sklearn": ("pgeom/data/", "pgeom/sklearn.py", "benchmarks/estimator.py"),
    "scipy": (
        "pgeom/data/mixtures.py",
        "pgeom/evaluation/significance.py",
    ),
    "matplotlib": (
        "experiments/show/figures/",
        "experiments/show/style.py",
        "proofs_numeric/theory_figures.py",
    ),
    "torch": ("benchmarks/pytorch.py",),
    "beartype": (),  # the tests check annotations with it, users do not
}


def imported(source):
    """Every module that a source imports, `from a import b` as a.b, or defers the import of."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("Deferred", "lazy_names"):
            yield from (word.value for word in node.args if isinstance(word, ast.Constant))


def under(name, packages):
    return any(name == package or name.startswith(package + ".") for package in packages)


def own_packages(room):
    """What the files of a room may import because it is theirs."""
    return set() if room == "experiments" else {room.removesuffix(".py").replace("/", ".")}


def forbidden(path, source):
    """The imports of a file that its room does not allow."""
    room = next(room for room in ROOMS if path == room or path.startswith(room + "/"))
    allowed = ROOMS[room] | own_packages(room)
    for name in imported(source):
        if name.startswith(".") or (under(name, TOPS) and not under(name, allowed)):
            yield name
        if not path.startswith(LIBRARIES.get(name.split(".")[0], ("",))):
            yield name


def test_every_file_keeps_the_direction():
    files = [file for top in TOPS for file in ROOT.glob(f"{top}/**/*.py")]
    assert len(files) > 100
    found = {}
    for file in files:
        path = file.relative_to(ROOT).as_posix()
        found |= {path: names} if (names := [*forbidden(path, file.read_text())]) else {}
    assert found == {}


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("pgeom/types.py", "import pgeom.checks"),
        ("pgeom/__init__.py", "from pgeom import training"),
        ("pgeom/public.py", "from experiments import noise"),
        ("pgeom/data/regimes.py", 'losses = Deferred("pgeom.losses.likelihood")'),
        ("pgeom/paper/margin.py", "from pgeom.losses import likelihood"),
        ("pgeom/paper/margin.py", "import pgeom"),
        ("pgeom/paper/margin.py", "from . import bounds"),
        ("pgeom/losses/likelihood.py", "def late():\n    from pgeom.training import trainer"),
        ("pgeom/losses/spec.py", "from pgeom.models.model import MLP"),
        ("pgeom/models/model.py", "from pgeom.training.settings import Training"),
        ("pgeom/models/model.py", "from pgeom.data import datasets"),
        ("pgeom/training/trainer.py", "from pgeom import data"),
        ("pgeom/data/sources.py", "from pgeom.losses import catalogue"),
        ("pgeom/evaluation/metrics.py", "from pgeom.losses.likelihood import focal"),
        ("pgeom/evaluation/metrics.py", "from experiments.shell.names import choose_all"),
        ("experiments/shell/loading.py", "from pgeom import types"),
        ("experiments/engine/training.py", "from experiments.show.tables import Grid"),
        ("experiments/engine/training.py", "from experiments.show import figures"),
        ("experiments/engine/training.py", "from experiments.show import page"),
        ("experiments/engine/training.py", "from benchmarks import jobs"),
        ("experiments/engine/training.py", "from experiments import noise"),
        ("experiments/show/summary.py", "from experiments.engine.training import train_missing"),
        ("experiments/show/summary.py", "from experiments.engine.command import Command"),
        ("experiments/show/summary.py", "from experiments.robustness import main"),
        ("experiments/show/figures/noise.py", "from experiments.engine import command"),
        ("experiments/show/figures/noise.py", "from pgeom.training.trainer import train"),
        ("benchmarks/training.py", "from experiments.noise import main"),
        ("benchmarks/jax_training.py", "import torch"),
        ("experiments/noise.py", "from benchmarks.page import spread"),
        ("experiments/noise.py", "from proofs_numeric import search"),
        ("proofs_numeric/regret.py", "from pgeom.losses import likelihood"),
        ("proofs_numeric/regret.py", "from pgeom.training.settings import PROTOCOL"),
        ("proofs_numeric/regret.py", "from experiments.engine import study"),
        ("pgeom/losses/likelihood.py", "import sklearn.datasets"),
        ("pgeom/evaluation/metrics.py", "from scipy import stats"),
        ("experiments/show/summary.py", "import matplotlib.pyplot as plt"),
        ("experiments/show/items.py", "import matplotlib.pyplot as plt"),
        ("experiments/shell/names.py", "import matplotlib"),
        ("pgeom/training/trainer.py", "import torch"),
        ("pgeom/checks.py", "from beartype import beartype"),
    ],
)
def test_a_forbidden_import_is_found(path, source):
    assert [*forbidden(path, source)]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("pgeom/losses/likelihood.py", "from pgeom import checks\nfrom pgeom.paper import margin"),
        ("pgeom/generators.py", "import jax.scipy.special"),
        ("pgeom/data/sources.py", "from sklearn import datasets"),
        ("pgeom/data/regimes.py", "from pgeom.messages import nearest"),
        ("pgeom/training/trainer.py", "from pgeom.models.model import Model"),
        ("experiments/engine/cells.py", "from pgeom.training.program import CellArrays"),
        ("experiments/show/figures/noise.py", "import matplotlib"),
        ("experiments/show/figures/noise.py", "from experiments.engine.results import TestLogits"),
        ("experiments/show/tables.py", "from experiments.show.tables import Grid"),
        ("experiments/links.py", "from experiments import longtail"),
        ("experiments/noise.py", "from experiments.show.tables import publish"),
        ("proofs_numeric/regret.py", "from pgeom.scores import on_logits"),
    ],
)
def test_an_allowed_import_is_not(path, source):
    assert not [*forbidden(path, source)]
