"""Run the tests on the oldest and the newest libraries of every Python at hand, and from a wheel.

    python -m tests.versions --only oldest --tests tests/geometry tests/losses

Three kinds of cases, each in a virtual environment and a folder of its own below `--out`:

- oldest: the oldest Python, with every library at the lower bound that pyproject.toml states;
- newest: each Python, with the newest libraries that pip finds for it;
- wheel: this Python; beside the tests there are no sources, only the installed wheel.

An environment that is there is used again: remove `--out` to look for newer libraries.
"""

import argparse
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.versions import environments
from tests.versions.environments import InstallationError, Python

ROOT = Path(__file__).parents[2]
OUT = Path("results/versions")
PACKAGES = ("pgeom", "experiments", "proofs_numeric")
ABOUT_SOURCES = ("tests/test_annotations.py",)  # which need a checkout
# The type checker reads the annotations of other libraries, which change with their versions.
OF_NEW_LIBRARIES = "tests/test_annotations.py::test_the_type_checker_has_no_complaints"


class Case(NamedTuple):
    """An environment to test in.

    Attributes:
      name: as in "newest-3.12".
      python: its interpreter.
      pins: requirements beside the project's own.
      from_wheel: whether the sources are out of reach.
    """

    name: str
    python: Python
    pins: Sequence[str] = ()
    from_wheel: bool = False


class Result(NamedTuple):
    """What became of a case: the versions, the numbers of tests, and why there are none."""

    case: Case
    versions: dict[str, str]
    counts: dict[str, int]
    problem: str = ""

    @property
    def passed(self) -> bool:
        return not self.problem and self.counts["failed"] == 0 < self.counts["passed"]


def make_cases(pythons: Sequence[Python], bounds: Sequence[str]) -> list[Case]:
    """Every case, for Pythons from the oldest to the newest."""
    here = next((one for one in pythons if one.version == sys.version_info[:3]), pythons[-1])
    newest = [Case(f"newest-{p.version[0]}.{p.version[1]}", p) for p in pythons]
    return [
        Case("oldest", pythons[0], bounds),
        *newest,
        Case("wheel", here, from_wheel=True),
    ]


def lay_out(root: Path, folder: Path, *, from_wheel: bool) -> None:
    """Copy the checkout, or of a wheel only what is not in it."""
    shutil.rmtree(folder, ignore_errors=True)
    left_out = PACKAGES if from_wheel else ()
    ignore = shutil.ignore_patterns(*environments.NOT_COPIED)
    shutil.copytree(
        root,
        folder,
        ignore=lambda place, names: (
            ignore(place, names) | set(left_out if Path(place) == root else ())
        ),
    )


def choose_tests(case: Case, tests: Sequence[str]) -> list[str]:
    """The arguments of pytest; from a wheel, doctests are found by the names of the packages."""
    if not case.from_wheel:
        return [*tests, *([f"--deselect={OF_NEW_LIBRARIES}"] if case.pins else [])]
    ignored = [f"--ignore={path}" for path in ABOUT_SOURCES]
    return [*(tests or ["tests"]), *ignored, *(["--pyargs", *PACKAGES] if not tests else [])]


def try_case(case: Case, wheel: Path, out: Path, tests: Sequence[str], workers: str) -> Result:
    """Install, run the tests and count; what pytest prints is kept in a file of the case."""
    print(f"{case.name}: installing for Python {case.python}", file=sys.stderr, flush=True)
    try:
        interpreter = environments.install(
            case.python, wheel, case.pins, out / case.name / "environment"
        )
    except InstallationError as error:
        return Result(case, {}, {}, f"pip: {error}")
    place, report = out / case.name / "project", out.resolve() / case.name / "report.xml"
    lay_out(ROOT, place, from_wheel=case.from_wheel)
    report.unlink(missing_ok=True)
    options = ["-q", "-n", workers, "--dist", "loadfile", "-p", "no:cacheprovider"]
    command = [interpreter.absolute(), "-m", "pytest", *options, f"--junitxml={report}"]
    with open(out / case.name / "pytest.txt", "w") as said:
        print(f"{case.name}: testing, see {said.name}", file=sys.stderr, flush=True)
        subprocess.run([*command, *choose_tests(case, tests)], cwd=place, stdout=said, stderr=said)
    versions = environments.installed_versions(interpreter)
    if not report.exists():
        return Result(case, versions, {}, f"pytest did not finish, see {said.name}")
    return Result(case, versions, read_counts(report))


def read_counts(report: Path) -> dict[str, int]:
    """How many tests passed, failed and were skipped."""
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    total, failures, errors, skipped = (
        sum(int(suite.get(key, 0)) for suite in suites)
        for key in ("tests", "failures", "errors", "skipped")
    )
    failed = failures + errors
    return {"passed": total - failed - skipped, "failed": failed, "skipped": skipped}


def describe(result: Result) -> str:
    """One line about a case."""
    parts = [f"{name} {version}" for name, version in result.versions.items()]
    parts += [f"{number} {outcome}" for outcome, number in result.counts.items()]
    parts += [result.problem] if result.problem else []
    return f"{result.case.name:<12} Python {result.case.python}: {', '.join(parts)}"


def main(arguments: list[str] | None = None) -> int:
    """The command; 1 if a test fails or an environment cannot be made."""
    options = _parser().parse_args(arguments)
    pyproject = ROOT / "pyproject.toml"
    pythons = environments.find_pythons(environments.least_python(pyproject))
    cases = [
        case
        for case in make_cases(pythons, environments.lower_bounds(pyproject))
        if any(word in case.name for word in options.only or [""])
    ]
    if options.list or not cases:
        for case in cases:
            print(f"{case.name:<12} Python {case.python} {' '.join(case.pins)}".rstrip())
        return 0 if cases else 2
    wheel = environments.build_wheel(ROOT, options.out / "wheel")
    results = []
    for case in cases:
        results.append(try_case(case, wheel, options.out, options.tests, options.workers))
        print(describe(results[-1]), flush=True)
    return 0 if all(result.passed for result in results) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m tests.versions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", help="cases with one of these in their names")
    parser.add_argument("--tests", nargs="+", default=[], help="files or folders (the whole suite)")
    parser.add_argument("--workers", default="auto", help="processes of pytest (auto)")
    parser.add_argument("--out", type=Path, default=OUT, help=f"the folder of all this ({OUT})")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    return parser


if __name__ == "__main__":
    sys.exit(main())
