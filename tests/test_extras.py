"""The library works where its extras are not installed, and what needs one says so in one line."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata

import pytest

from pgeom import extras
from tests.sources import ROOT

MODULES = {"scikit-learn": "sklearn", "python-flint": "flint"}  # that differ from their package
CORE = {"jax", "jaxlib", "jaxtyping", "numpy"}
# what comes with them
BROUGHT = {"ml_dtypes", "opt_einsum", "scipy", "wadler_lindig"}

LIBRARY = """
import jax, jax.numpy as jnp, numpy as np, pgeom

def cubic(p):
    return jnp.sum(p**3)

logits, labels = jnp.array([[2.0, 0.0, 1.0], [0.0, 1.0, 0.5]]), jnp.array([0, 1])
loss = pgeom.on_logits(pgeom.bregman_score(cubic))
for _ in range(30):
    logits -= jax.grad(lambda z: jnp.sum(loss(z, labels)))(logits)
assert float(jnp.max(loss(logits, labels))) < 0.01
assert pgeom.diagnose(cubic, 3).strictly_convex
p = pgeom.canonical_link(cubic)(logits)
assert jnp.allclose(jnp.sum(p, axis=1), 1.0)
assert float(pgeom.metrics.accuracy(p, labels)) == 1.0
assert pgeom.decompose(cubic, p, labels).miscalibration >= 0
assert pgeom.significance.paired_wilcoxon([0.1, 0.2, 0.4], [0.2, 0.1, 0.5]).p_value <= 1
runs = np.array([[0.9, 0.8, 0.7, 0.9, 0.8, 0.9]])
paired = pgeom.compare(runs, runs[0] - 0.1, margin=0.01, higher_is_better=True)
assert abs(paired.difference[0] - 0.1) < 1e-9
spec = pgeom.LossSpec("mine", "Mine", "Own", lambda stats: lambda z, y, annealing: loss(z, y))
assert spec.build(None)(logits, labels, None).shape == (2,)
assert pgeom.from_arrays("two", [[0.0], [1.0]], [0, 1]).num_classes == 2
for name in dir(pgeom):
    getattr(pgeom, name)
for name in dir(pgeom.losses):
    getattr(pgeom.losses, name)
"""


def run(code, *arguments):
    """A process in which nothing can be found that is installed but the core and what it brings."""
    packages = metadata.packages_distributions()
    without = set(packages) - CORE - BROUGHT - {"pgeom", "experiments", "proofs_numeric"}
    hide = f"""
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in {without!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name in {without!r} else found(name, *more)
"""
    command = [sys.executable, "-c", hide + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_the_library_alone_trains_diagnoses_links_and_measures():
    done = run(LIBRARY)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("code", "what", "extra"),
    [
        ("import pgeom.sklearn", "pgeom.sklearn", "experiments"),
        ("import pgeom; pgeom.certify(lambda p: p @ p, 3)", "certify", "certify"),
        ("import pgeom; pgeom.verify({})", "verify", "certify"),
        ("import pgeom; pgeom.fit(None, None, None, None, None, [0])", "fit", "experiments"),
    ],
)
def test_what_the_library_misses_is_named_in_one_line(code, what, extra):
    last = run(code).stderr.splitlines()[-1]
    expected = rf"ModuleNotFoundError: {what} needs [\w, ]+: pip install 'pgeom\[{extra}\]'"
    assert re.fullmatch(expected, last)


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("experiments.noise", "experiments"),
        ("proofs_numeric", "experiments"),
        ("proofs_numeric.proof_figures", "experiments"),
        ("proofs_numeric.checker", "certify"),
    ],
)
def test_a_command_names_the_extra_it_needs_and_ends(module, extra):
    start = f"""
import runpy
sys.argv, sys.orig_argv = ["-m", "--help"], ["python", "-m", {module!r}, "--help"]
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""
    done = run(start)
    assert done.returncode == 2
    command = f"python -m {module}" if extra == "certify" else "this command"
    expected = rf"{command} needs [\w, ]+: pip install 'pgeom\[{extra}\]'\n"
    assert re.fullmatch(expected, done.stderr) and not done.stdout


@pytest.mark.parametrize("extra", extras.EXTRAS)
def test_the_modules_of_an_extra_are_those_of_its_packages(extra):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    packages = [re.match(r"[\w-]+", line)[0] for line in project["optional-dependencies"][extra]]
    assert sorted(MODULES.get(name, name) for name in packages) == [*extras.EXTRAS[extra]]


def test_the_library_depends_on_four_packages():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.match(r"[\w-]+", line)[0] for line in project["dependencies"]}
    assert names == CORE


def test_and_installs_little_besides():
    needed = set()
    waiting = set(CORE)
    while waiting:
        name = waiting.pop()
        needed.add(name)
        lines = [line for line in metadata.requires(name) or () if "extra ==" not in line]
        waiting |= {re.match(r"[\w-]+", line)[0].replace("-", "_") for line in lines} - needed
    assert needed <= CORE | BROUGHT
