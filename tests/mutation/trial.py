"""Mutants on trial: which are drawn, what the tests say about each, and what is known already."""

import hashlib
import json
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

from tests.mutation import runs
from tests.mutation.coverage import Coverage
from tests.mutation.operators import Mutant, draw, find_mutants, mutated, shown

ROOMS = ["geometry", "losses", "evaluation", "data", "training"]
KILLED, SURVIVED, EQUIVALENT = "killed", "survived", "equivalent"
MOST_SECONDS = 60  # of CPU time per mutant: what only slower ones would notice counts as unnoticed
PATIENCE = 5  # times what the tests take, and half a minute, before a mutant counts as endless
ANY = "*"  # any change of the line

Equivalents = dict[tuple[str, str, str], str]
"""Why no test notices a mutant, by its file and its line before and after."""


class Trial(NamedTuple):
    """The project, the copy of it that is mutated, and the folder of answers."""

    root: Path
    tree: Path
    out: Path


class Answer(NamedTuple):
    """What became of a mutant."""

    room: str
    place: str
    before: str
    after: str
    outcome: str
    why: str = ""


def draw_mutants(root: Path, rooms: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """As many mutants of every room."""
    share = math.ceil(count / len(rooms))
    return [mutant for room in rooms for mutant in draw(_room_mutants(root, room), share, seed)]


def read_equivalents(path: Path) -> Equivalents:
    """The mutants that no test can or should notice: file, line before, after and why, by tabs."""
    rows = [line.split("\t") for line in path.read_text().splitlines() if line]
    return {(file, before, after): why for file, before, after, why in rows}


def explain(mutant: Mutant, source: str, equivalents: Equivalents) -> str | None:
    """Why no test notices the mutant, if that is known."""
    before, after = shown(mutant, source)
    exact = equivalents.get((mutant.file, before, after))
    return exact or equivalents.get((mutant.file, before, ANY))


def try_mutants(
    trial: Trial,
    mutants: Iterable[Mutant],
    equivalents: Equivalents,
    deadline: float,
    progress: TextIO,
) -> list[Answer]:
    """The answers that there are by the deadline, in the order of the mutants."""
    runs.copy_project(trial.root, trial.tree)
    answers = []
    for answer in _answers(trial, mutants, equivalents):
        print(answer.outcome, answer.place, answer.before, "->", answer.after, file=progress)
        progress.flush()
        answers.append(answer)
        if time.monotonic() > deadline:
            break
    return answers


def _answers(trial: Trial, mutants: Iterable[Mutant], equivalents: Equivalents) -> Iterator[Answer]:
    known, coverage = _Memory(trial.out / "answers.jsonl"), {}
    for mutant in mutants:
        room, source = Path(mutant.file).parts[1], (trial.tree / mutant.file).read_text()
        place = f"{mutant.file}:{mutant.line}", *shown(mutant, source)
        key = _digest(source, str(mutant.edits))
        if (why := explain(mutant, source, equivalents)) is not None:
            yield Answer(room, *place, EQUIVALENT, why)
        elif known.outcome(key) == KILLED:
            yield Answer(room, *place, KILLED)
        else:
            if room not in coverage:
                coverage[room] = Coverage(trial.tree, room, trial.out / "coverage.json")
            yield Answer(room, *place, _outcome(trial, mutant, source, key, known, coverage[room]))


def _outcome(
    trial: Trial, mutant: Mutant, source: str, key: str, known: "_Memory", coverage: Coverage
) -> str:
    """What the tests say about a mutant, unless these tests have said it before."""
    tests, seconds = coverage.choose(mutant, MOST_SECONDS)
    files = sorted({test.partition("::")[0] for test in tests})
    state = _digest(*((trial.tree / file).read_text() for file in files))
    if known.outcome(key, state) is None:
        patience = 30 + PATIENCE * seconds
        known.remember(key, state, _try(trial.tree, mutant, source, tests, patience))
    return known.outcome(key, state)


def _try(tree: Path, mutant: Mutant, source: str, tests: list[str], patience: float) -> str:
    """Whether a test fails on the mutant, or takes far too long."""
    if not tests:
        return SURVIVED
    file = tree / mutant.file
    try:
        file.write_text(mutated(mutant, source))
        result = runs.run_tests(tree, tests, patience)
    finally:
        file.write_text(source)
    return SURVIVED if result.code == runs.PASSED else KILLED


def _room_mutants(root: Path, room: str) -> list[Mutant]:
    files = sorted((root / "pgeom" / room).glob("*.py"))
    named = ((file.relative_to(root).as_posix(), file.read_text()) for file in files)
    return [mutant for file, source in named for mutant in find_mutants(file, source)]


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


class _Memory:
    """Outcomes on disk: who is killed stays so, who survives is tried again by other tests."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.known = {row["mutant"]: row for row in map(json.loads, lines)}

    def outcome(self, mutant: str, tests: str | None = None) -> str | None:
        row = self.known.get(mutant)
        valid = row is not None and (row["outcome"] == KILLED or row["tests"] == tests)
        return row["outcome"] if valid else None

    def remember(self, mutant: str, tests: str, outcome: str) -> None:
        row = self.known[mutant] = {"mutant": mutant, "tests": tests, "outcome": outcome}
        with self.path.open("a") as file:
            print(json.dumps(row), file=file)
