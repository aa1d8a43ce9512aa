"""Which test files run which lines of the library, by measurement: every file runs once, alone."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.mutation import runs
from tests.mutation.operators import Mutant
from tests.mutation.probes import with_probes

SLOWEST = 1200  # CPU seconds that a test file may take before anything is mutated


class Coverage:
    """What the test files of a room run, on a copy of the project, kept in a file."""

    def __init__(self, tree: Path, room: str, store: Path) -> None:
        self.tree, self.store = tree, store
        self.tests = _room_tests(tree, room)
        self.sources = {file: file.read_text() for file in tree.glob("pgeom/**/*.py")}
        self.library = _digest(*(self.sources[file] for file in sorted(self.sources)))
        self.known = json.loads(store.read_text()) if store.exists() else {}
        self._measure([test for test in self.tests if self._is_new(test)])

    def choose(self, mutant: Mutant) -> list[str]:
        """The files that run the place of a mutant, those named after its module first.

        Each of them has passed on the copy as it is.
        """
        chosen = [test for test in self.tests if self._runs(test, mutant)]
        self._measure([test for test in chosen if self.known[test]["library"] != self.library])
        stem = Path(mutant.file).stem
        return sorted(chosen, key=lambda test: (stem not in Path(test).stem, self.seconds([test])))

    def seconds(self, tests: list[str]) -> float:
        """How long the files took, one by one."""
        return sum(self.known[test]["seconds"] for test in tests)

    def _runs(self, test: str, mutant: Mutant) -> bool:
        """What stands outside of functions runs at import: any function of the module counts then.

        So it does where the module has changed since the file was measured.
        """
        seen = self.known[test]["lines"].get(mutant.file)
        if seen is None:
            return False
        changed = seen["source"] != _digest(self.sources[self.tree / mutant.file])
        return changed or not mutant.covers or not set(mutant.covers).isdisjoint(seen["lines"])

    def _is_new(self, test: str) -> bool:
        return self.known.get(test, {}).get("tests") != self._fingerprint(test)

    def _fingerprint(self, test: str) -> str:
        """A hash of a test file and of what it may share with others, which are not tests."""
        folders = (
            [] if test.startswith("pgeom") else [self.tree / "tests", (self.tree / test).parent]
        )
        files = [file for folder in folders for file in sorted(folder.glob("*.py"))]
        shared = [file for file in files if not file.name.startswith("test_")]
        return _digest(*(file.read_text() for file in [*shared, self.tree / test]))

    def _measure(self, tests: list[str]) -> None:
        """Run files on the copy.

        Raises:
          SystemExit: if a test fails before anything is mutated.
        """
        if not tests:
            return
        with self._probes():
            for test in tests:
                self.known[test] = self._measure_one(test)
                self.store.write_text(json.dumps(self.known))

    def _measure_one(self, test: str) -> dict[str, Any]:
        notes = self.tree / "lines.json"
        result = runs.run_tests(self.tree, [test], SLOWEST, notes)
        if result.code != runs.PASSED:
            output = (self.tree / "output.txt").read_text()
            raise SystemExit(f"{test} must pass before anything is mutated\n{output}")
        lines = {
            file: {"source": _digest(self.sources[self.tree / file]), "lines": seen}
            for file, seen in json.loads(notes.read_text()).items()
        }
        state = {"tests": self._fingerprint(test), "library": self.library}
        return {**state, "seconds": result.seconds, "lines": lines}

    @contextmanager
    def _probes(self) -> Iterator[None]:
        """The library of the copy, with probes for a while."""
        try:
            for file, source in self.sources.items():
                file.write_text(with_probes(file.relative_to(self.tree).as_posix(), source))
            yield
        finally:
            for file, source in self.sources.items():
                file.write_text(source)


def _room_tests(root: Path, room: str) -> list[str]:
    """The test files of a room and the modules with doctests."""
    tests = sorted((root / "tests" / room).glob("test_*.py"))
    modules = sorted((root / "pgeom" / room).glob("*.py"))
    documented = [file for file in modules if ">>>" in file.read_text()]
    return [file.relative_to(root).as_posix() for file in [*tests, *documented]]


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
