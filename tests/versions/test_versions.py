"""The cases of the version test, and its verdicts on a tiny project."""

import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.versions import __main__ as versions, environments
from tests.versions.__main__ import Case, Result, choose_tests, lay_out, main, make_cases, try_case
from tests.versions.environments import InstallationError, Python

PYPROJECT = """
[project]
name = "tiny"
requires-python = ">=3.11"
dependencies = ["jax>=0.8", "flax", "numpy>=2"]
"""
TESTS = """
import pytest

def test_one(): pass
def test_two(): assert {verdict}
def test_three(): pytest.skip("it is not for today")
"""
OLD, NEW = Python(Path("old"), (3, 11, 4)), Python(Path("new"), (3, 14, 0))
THIS = Python(Path(sys.executable), sys.version_info[:3])


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A tiny checkout, which the command takes for the project; its environments are this one."""
    root = tmp_path / "checkout"
    for file, text in {
        "pyproject.toml": PYPROJECT,
        "tests/test_tiny.py": TESTS.format(verdict=True),
        "pgeom/__init__.py": "",
        "results/old.json": "{}",
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    monkeypatch.setattr(versions, "ROOT", root)
    monkeypatch.setattr(environments, "find_pythons", lambda least: [THIS])
    monkeypatch.setattr(environments, "build_wheel", lambda root, folder: folder / "tiny.whl")
    monkeypatch.setattr(environments, "install", lambda *_: Path(sys.executable))
    return root


def test_bounds_are_those_of_the_project(project):
    assert environments.lower_bounds(project / "pyproject.toml") == ["jax==0.8", "numpy==2"]
    assert environments.least_python(project / "pyproject.toml") == (3, 11)


def test_pythons_that_are_missing_or_too_old_are_left_out(tmp_path):
    (tmp_path / "python3.9").write_text("no program")
    places = [tmp_path / "no-such", tmp_path / "python3.9", THIS.path, THIS.path]
    assert environments.find_pythons((3, 11), places) == [THIS]
    assert environments.find_pythons((99, 0), places) == []


def test_every_kind_of_case():
    cases = make_cases([OLD, NEW], ["jax==0.8"])
    assert [case.name for case in cases] == ["oldest", "newest-3.11", "newest-3.14", "wheel"]
    assert cases[0].python == OLD and cases[0].pins == ["jax==0.8"] and not cases[2].pins
    assert [case.from_wheel for case in cases] == [False, False, False, True]
    assert make_cases([OLD, THIS], [])[-1].python == THIS


def test_from_a_wheel_no_source_is_in_reach(project, tmp_path):
    for from_wheel in (True, False):
        lay_out(project, tmp_path / "out", from_wheel=from_wheel)
        assert (tmp_path / "out/tests/test_tiny.py").exists()
        assert (tmp_path / "out/pgeom").exists() == (not from_wheel)
        assert not (tmp_path / "out/results").exists()
    case = Case("wheel", THIS, from_wheel=True)
    assert choose_tests(case, [])[0] == "tests" and choose_tests(case, [])[-4:][0] == "--pyargs"
    assert choose_tests(case, ["tests/losses"])[0] == "tests/losses"
    assert "--ignore=tests/test_annotations.py" in choose_tests(case, ["tests/losses"])
    assert choose_tests(Case("newest", THIS), []) == []


def test_modules_of_the_bench_extra_are_passed_over_wherever_they_are_installed(pytestconfig):
    patterns = pytestconfig.getoption("ignore_glob")

    def passed_over(name):
        path = f"/elsewhere/site-packages/experiments/speed/{name}"
        return any(fnmatch(path, str(Path(pattern).absolute())) for pattern in patterns)

    assert passed_over("torch_losses.py") and not passed_over("laps.py")


def test_types_are_checked_against_new_libraries_only():
    old, new = Case("oldest", THIS, ["jax==0.8"]), Case("newest", THIS)
    left_out = f"--deselect={versions.OF_NEW_LIBRARIES}"
    assert choose_tests(old, ["tests"]) == ["tests", left_out]
    assert choose_tests(new, ["tests"]) == ["tests"]
    file, _, test = versions.OF_NEW_LIBRARIES.partition("::")
    assert f"def {test}(" in (versions.ROOT / file).read_text("utf-8")


def test_what_is_left_out_of_the_wheel_is_there():
    assert all((versions.ROOT / path).exists() for path in versions.ABOUT_SOURCES)


@pytest.mark.parametrize(("verdict", "failed", "code"), [(True, 0, 0), (False, 1, 1)])
def test_the_command_counts_and_fails(verdict, failed, code, project, tmp_path, capsys):
    (project / "tests/test_tiny.py").write_text(TESTS.format(verdict=verdict))
    assert main(["--out", str(tmp_path / "out"), "--workers", "0", "--only", "oldest"]) == code
    said = capsys.readouterr().out
    assert f", {2 - failed} passed, {failed} failed, 1 skipped\n" in said and ": jax " in said


def test_an_environment_that_cannot_be_made_is_a_failure(project, tmp_path, monkeypatch):
    def refuse(*_):
        raise InstallationError("no matching distribution")

    monkeypatch.setattr(environments, "install", refuse)
    result = try_case(Case("oldest", THIS), Path("tiny.whl"), tmp_path, [], "0")
    assert not result.passed and "no matching distribution" in versions.describe(result)
    assert not Result(Case("oldest", THIS), {}, {"passed": 0, "failed": 0, "skipped": 3}).passed


def test_cases_are_listed_and_an_unknown_one_is_refused(project, capsys):
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed[0].split() == ["oldest", "Python", str(THIS), "jax==0.8", "numpy==2"]
    assert main(["--only", "no-such"]) == 2
