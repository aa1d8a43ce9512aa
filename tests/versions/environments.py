"""Pythons at hand, and virtual environments in which the project is installed from its wheel."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

ASK = "import json, sys; print(json.dumps(sys.version_info[:3]))"
SHOWN = ("jax", "flax", "optax", "numpy", "scipy")
NOT_COPIED = (".*", "__pycache__", "*.egg-info", "build", "dist", "results")


class Python(NamedTuple):
    """An interpreter and its version."""

    path: Path
    version: tuple[int, ...]

    def __str__(self) -> str:
        return ".".join(map(str, self.version))


class InstallationError(Exception):
    """An environment that cannot be made; the message is the end of what pip said."""


def find_pythons(least: tuple[int, ...], places: Iterable[Path] | None = None) -> list[Python]:
    """The newest interpreter of each minor version from `least` on, oldest first.

    Args:
      least: the oldest version that the project supports.
      places: interpreters to look at; by default this one, those on the path, and pyenv's.
    """
    asked = (_ask(path) for path in (_places() if places is None else places))
    usable = sorted((one for one in asked if one and one.version >= least), key=lambda x: x.version)
    return list({one.version[:2]: one for one in usable}.values())


def _places() -> list[Path]:
    folders = [Path(folder) for folder in os.get_exec_path()]
    on_path = [path for folder in folders for path in sorted(folder.glob("python3.*"))]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    installed = sorted(pyenv.glob("versions/*/bin/python"))
    named = [path for path in on_path if re.fullmatch(r"python3\.\d+", path.name)]
    return [Path(sys.executable), *named, *installed]


def _ask(path: Path) -> Python | None:
    """The interpreter at a path, or None if it does not work or cannot make environments."""
    try:
        done = subprocess.run(
            [path, "-c", f"import ensurepip, venv; {ASK}"], capture_output=True, timeout=60
        )
        return Python(path, tuple(json.loads(done.stdout))) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def least_python(pyproject: Path) -> tuple[int, ...]:
    """The oldest Python that the project supports."""
    stated = tomllib.loads(pyproject.read_text("utf-8"))["project"]["requires-python"]
    return tuple(map(int, stated.removeprefix(">=").split(".")))


def lower_bounds(pyproject: Path) -> list[str]:
    """The dependencies with a lower bound, each at that bound, as in "jax==0.8"."""
    stated = tomllib.loads(pyproject.read_text("utf-8"))["project"]["dependencies"]
    return [line.replace(">=", "==") for line in stated if ">=" in line]


def build_wheel(root: Path, folder: Path) -> Path:
    """The wheel of the project, built from a copy: what a build leaves would be in the next one."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root, folder / "source", ignore=shutil.ignore_patterns(*NOT_COPIED))
    _run([sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", folder, folder / "source"])
    return next(folder.glob("*.whl"))


def install(python: Python, wheel: Path, pins: Sequence[str], folder: Path) -> Path:
    """An environment with the wheel and what the tests need; its interpreter.

    Args:
      python: that it is of.
      wheel: of the project.
      pins: further requirements, as in "jax==0.8".
      folder: for it; one that is there keeps its libraries.

    Raises:
      InstallationError: if pip refuses.
    """
    inside = folder / "bin/python"
    if not inside.exists():
        _run([python.path, "-m", "venv", folder])
    _run([inside, "-m", "pip", "install", f"{wheel}[test]", *pins])
    _run([inside, "-m", "pip", "install", "--no-deps", "--force-reinstall", wheel])
    return inside


def installed_versions(interpreter: Path) -> dict[str, str]:
    """The versions of the libraries that matter most."""
    code = f"from importlib.metadata import version as v; print([v(x) for x in {SHOWN!r}])"
    done = subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=True)
    return dict(zip(SHOWN, json.loads(done.stdout.replace("'", '"')), strict=True))


def _run(command: Sequence[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise InstallationError("; ".join(said[-3:]))
