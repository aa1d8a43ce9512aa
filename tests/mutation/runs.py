"""Test runs on a copy of the project, each in a process of its own.

The processes are forked from one that has imported the libraries and nothing of the project, which
saves each of them several seconds.
"""

import json
import multiprocessing
import os
import resource
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutation.watch import Choice, Watch

LIBRARIES = [
    "beartype",
    "chex",
    "flax.linen",
    "hypothesis",
    "jax.numpy",
    "jaxtyping",
    "mpmath",
    "optax",
    "pandas",
    "pytest",
    "rich.table",
    "scipy.stats",
    "sklearn.model_selection",
    "sklearn.preprocessing",
    "tyro",
]
OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=line"]
# hypothesis, which is a plugin of pytest, has been imported before pytest could rewrite it
OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
COPIED = ("pgeom", "experiments", "proofs_numeric", "tests", "pyproject.toml", "README.md")
MEMORY = 12 * 2**30  # bytes of address space, beyond which a mutant has run wild
PASSED = 0


class Result(NamedTuple):
    """The exit code of a test run, or None if it had to be killed, and the seconds it took."""

    code: int | None
    seconds: float


def copy_project(root: Path, tree: Path) -> None:
    """Make `tree` a copy of the project, without what running it has left behind."""
    unwanted = shutil.ignore_patterns("__pycache__", ".*")
    for name in COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, tree / name, ignore=unwanted)
        elif (root / name).exists():
            shutil.copy(root / name, tree / name)


def prepare(libraries: Sequence[str] = LIBRARIES) -> None:
    """Import the libraries that every test run needs, once; before the first run."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    multiprocessing.get_context("forkserver").set_forkserver_preload(list(libraries))


def run_tests(tree: Path, tests: Sequence[str], cpu_seconds: float) -> Result:
    """Run tests of a copy, each by its name and in this order, until one fails.

    Args:
      tree: the copy.
      tests: as pytest names them, which begins with the file.
      cpu_seconds: after which the run is killed; ten times as long by the clock.
    """
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    return _run(tree, files, cpu_seconds, Choice(tests), None)


def watch_tests(tree: Path, file: str, cpu_seconds: float, notes: Path) -> Result:
    """Run a test file of a copy with probes, and write what `Watch` has noted as JSON."""
    return _run(tree, [file], cpu_seconds, Watch(), str(notes))


def _run(
    tree: Path, files: list[str], cpu_seconds: float, plugin: Choice | Watch, notes: str | None
) -> Result:
    began = time.monotonic()
    limit = max(5, int(cpu_seconds))
    process = multiprocessing.get_context("forkserver").Process(
        target=_test, args=(str(tree), files, limit, plugin, notes)
    )
    process.start()
    process.join(10 * limit)
    if process.exitcode is None:
        process.kill()
        process.join()
    killed = process.exitcode is None or process.exitcode < 0
    return Result(None if killed else process.exitcode, time.monotonic() - began)


def _test(
    tree: str, files: list[str], cpu_seconds: int, plugin: Choice | Watch, notes: str | None
) -> None:
    """The whole life of a child process."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    output = os.open(Path(tree) / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(tree)
    os.environ["PYTHONPATH"] = tree
    sys.path.insert(0, tree)
    sys.dont_write_bytecode = True  # a mutant of the same second and size would not be recompiled
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]  # those of the copy are wanted
    import pytest

    code = pytest.main([*OPTIONS, *files], plugins=[plugin])
    if notes is not None:
        Path(notes).write_text(json.dumps({"seconds": plugin.seconds, "lines": plugin.lines}))
    sys.stdout.flush()
    os._exit(int(code))  # at once: what the libraries do at exit is no part of the tests
