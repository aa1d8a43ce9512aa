"""Which tests run which lines of the library, by measurement: every test file runs once, alone."""

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
    """What the tests of a room run, on a copy of the project, kept in a file.

    What one test traces is compiled for the next, in which its lines do not run. A test file that
    runs a line is therefore chosen whole, with those tests first in which the line was seen.
    """

    def __init__(self, tree: Path, room: str, store: Path) -> None:
        self.tree, self.store = tree, store
        self.files = _room_tests(tree, room)
        self.sources = {file: file.read_text() for file in tree.glob("pgeom/**/*.py")}
        self.library = _digest(*(self.sources[file] for file in sorted(self.sources)))
        self.known = json.loads(store.read_text()) if store.exists() else {}
        self._measure([file for file in self.files if self._is_new(file)])

    def choose(self, mutant: Mutant, most: float) -> tuple[list[str], float]:
        """The quickest tests of the files that run the place of a mutant, for so many CPU seconds.

        Tests of one file are together, because they share what is made once for it. Each of them
        has passed on the copy as it is.

        Returns:
          The tests in the order in which to run them, and the CPU seconds that they took.
        """
        seen = {file: self._seen(file, mutant) for file in self.files}
        files = [file for file, tests in seen.items() if tests is not None]
        self._measure([file for file in files if self.known[file]["library"] != self.library])
        timed = [
            (test not in seen[file], seconds, file, test)
            for file in files
            for test, seconds in self.known[file]["seconds"].items()
        ]
        chosen, total = [], 0.0
        for unseen, seconds, file, test in sorted(timed):
            if total + seconds <= most or not chosen:
                chosen.append((unseen, file, seconds, test))
                total += seconds
        return [test for *_, test in sorted(chosen)], total

    def _seen(self, file: str, mutant: Mutant) -> set[str] | None:
        """The tests of a file in which the place of a mutant ran, or None if it never did.

        What stands outside of functions runs at import: any line of the module counts then. So it
        does where the module has changed since the file was measured.
        """
        module, tests = (
            self.known[file]["lines"].get(mutant.file),
            list(self.known[file]["seconds"]),
        )
        if module is None:
            return None
        changed = module["source"] != _digest(self.sources[self.tree / mutant.file])
        wanted = None if changed or not mutant.covers else set(map(str, mutant.covers))
        numbers = {
            n for line, ns in module["lines"].items() if not wanted or line in wanted for n in ns
        }
        return {tests[number] for number in numbers} or None

    def _is_new(self, file: str) -> bool:
        return self.known.get(file, {}).get("tests") != self._fingerprint(file)

    def _fingerprint(self, test: str) -> str:
        """A hash of a test file and of what it may share with others, which are not tests."""
        folders = (
            [] if test.startswith("pgeom") else [self.tree / "tests", (self.tree / test).parent]
        )
        files = [file for folder in folders for file in sorted(folder.glob("*.py"))]
        shared = [file for file in files if not file.name.startswith("test_")]
        return _digest(*(file.read_text() for file in [*shared, self.tree / test]))

    def _measure(self, files: list[str]) -> None:
        """Run test files on the copy.

        Raises:
          SystemExit: if a test fails before anything is mutated.
        """
        if not files:
            return
        with self._probes():
            for file in files:
                self.known[file] = self._measure_one(file)
                self.store.write_text(json.dumps(self.known))

    def _measure_one(self, file: str) -> dict[str, Any]:
        path = self.tree / "notes.json"
        result = runs.watch_tests(self.tree, file, SLOWEST, path)
        if result.code != runs.PASSED:
            output = (self.tree / "output.txt").read_text()
            raise SystemExit(f"{file} must pass before anything is mutated\n{output}")
        notes = json.loads(path.read_text())
        lines = {
            module: {"source": _digest(self.sources[self.tree / module]), "lines": seen}
            for module, seen in notes["lines"].items()
        }
        state = {"tests": self._fingerprint(file), "library": self.library}
        return {**state, "seconds": notes["seconds"], "lines": lines}

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
