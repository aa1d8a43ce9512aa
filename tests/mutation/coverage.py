"""Which test files run which lines of the library, by measurement: every file runs once, alone."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.mutation import runs
from tests.mutation.operators import Mutant
from tests.mutation.probes import with_probes

SLOWEST = 1200  # CPU seconds that a test file may take before anything is mutated


class TestFile(NamedTuple):
    """A file of tests, or of doctests: what it takes, and the lines that it runs of each source."""

    path: str
    seconds: float
    lines: dict[str, list[int]]


TestFile.__test__ = False  # pytest need not look for tests in it


def room_tests(root: Path, room: str) -> list[str]:
    """The test files of a room and the modules with doctests."""
    tests = sorted((root / "tests" / room).glob("test_*.py"))
    modules = sorted((root / "pgeom" / room).glob("*.py"))
    documented = [file for file in modules if ">>>" in file.read_text()]
    return [file.relative_to(root).as_posix() for file in [*tests, *documented]]


def measure(tree: Path, tests: list[str], store: Path) -> list[TestFile]:
    """Run every file on the copy, or recall how it ran on the same one.

    Raises:
      SystemExit: if a test fails before anything is mutated.
    """
    known = json.loads(store.read_text()) if store.exists() else {}
    library = _fingerprint(sorted(tree.glob("pgeom/**/*.py")))
    states = {t: library + _fingerprint([*_helpers(tree, t), tree / t]) for t in tests}
    with _probes(tree):
        for test in tests:
            if known.get(test, {}).get("state") != states[test]:
                known[test] = {"state": states[test], **_measure_one(tree, test)}
                store.write_text(json.dumps(known))
    return [TestFile(test, known[test]["seconds"], known[test]["lines"]) for test in tests]


def covering(mutant: Mutant, tests: list[TestFile]) -> list[TestFile]:
    """The files that run the place of a mutant, those named after its module first.

    What stands outside of functions runs at import: the files count that run any function of the
    module, or if none does, all of them.
    """
    if mutant.covers:
        chosen = [t for t in tests if set(mutant.covers) & set(t.lines.get(mutant.file, ()))]
    else:
        chosen = [test for test in tests if mutant.file in test.lines] or tests
    stem = Path(mutant.file).stem
    return sorted(chosen, key=lambda test: (stem not in Path(test.path).stem, test.seconds))


def _measure_one(tree: Path, test: str) -> dict:
    lines = tree / "lines.json"
    result = runs.run_tests(tree, [test], SLOWEST, lines)
    if result.code != runs.PASSED:
        output = (tree / "output.txt").read_text()
        raise SystemExit(f"{test} must pass before anything is mutated\n{output}")
    return {"seconds": result.seconds, "lines": json.loads(lines.read_text())}


@contextmanager
def _probes(tree: Path) -> Iterator[None]:
    """The library of a copy, with probes for a while."""
    sources = {file: file.read_text() for file in tree.glob("pgeom/**/*.py")}
    try:
        for file, source in sources.items():
            file.write_text(with_probes(file.relative_to(tree).as_posix(), source))
        yield
    finally:
        for file, source in sources.items():
            file.write_text(source)


def _helpers(tree: Path, test: str) -> list[Path]:
    """What the tests of a file may share with others."""
    shared = [file for file in (tree / test).parent.glob("*.py") if "test_" not in file.name]
    return sorted([*tree.glob("tests/*.py"), *shared])


def _fingerprint(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()
