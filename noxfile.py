"""The tests in fresh environments: `nox --list` names them, `nox --session newest` runs one kind.

Arguments after `--` are given to pytest: `nox --session oldest -- tests/losses`.
"""

import tempfile
import tomllib
from pathlib import Path

import nox

ROOT = Path(__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGES = ("pgeom", "experiments", "proofs_numeric")
OPTIONS = ("-q", "-n", "auto", "--dist", "loadfile", "-p", "no:cacheprovider")
nox.options.error_on_missing_interpreters = False


@nox.session(python=["3.11", "3.12", "3.13"])
def newest(session: nox.Session) -> None:
    """With the newest libraries that pip finds for a Python."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", *OPTIONS, *session.posargs)


@nox.session(python="3.11")
def oldest(session: nox.Session) -> None:
    """With every library at the lower bound that pyproject.toml states."""
    extra = PROJECT["optional-dependencies"]["experiments"]
    bounds = [line for line in (*PROJECT["dependencies"], *extra) if ">=" in line]
    session.install("-e", ".[test]", *(line.replace(">=", "==") for line in bounds))
    session.run("python", "-m", "pytest", *OPTIONS, *session.posargs)


@nox.session(python="3.11")
def wheel(session: nox.Session) -> None:
    """From the wheel, with the tests but no sources in reach."""
    with tempfile.TemporaryDirectory() as folder:
        session.run("python", "-m", "pip", "wheel", "--no-deps", "-w", folder, str(ROOT))
        (built,) = Path(folder).glob("*.whl")
        session.install(f"{built}[test]")
        for name in ("tests", "docs", "pyproject.toml", "README.md", "CONTRIBUTING.md"):
            session.run("cp", "-r", str(ROOT / name), folder, external=True)
        session.chdir(folder)
        # which need a checkout
        ignored = ("--ignore=tests/test_annotations.py", "--ignore=tests/benchmarks")
        chosen = session.posargs or ["tests", "--pyargs", *PACKAGES]
        session.run("python", "-m", "pytest", *OPTIONS, *ignored, *chosen)
