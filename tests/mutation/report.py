"""The figures of a mutation test as a table, and its survivors."""

from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from tests.mutation.trial import EQUIVALENT, KILLED, ROOMS, SURVIVED, Answer

COLUMNS = ("room", "mutants", "killed", "survived", "equivalent", "share killed")


def print_report(answers: Sequence[Answer], drawn: int, out: TextIO) -> float:
    """Print figures by room, survivors and explained equivalents.

    Returns:
      The share of mutants that were killed, of those that are not equivalent.
    """
    rooms = [room for room in ROOMS if any(answer.room == room for answer in answers)]
    rows = [_row(room, [answer for answer in answers if answer.room == room]) for room in rooms]
    rows.append(_row("all", answers))
    for row in [COLUMNS, *rows]:
        print("".join(f"{entry!s:<14}" for entry in row).rstrip(), file=out)
    for outcome in (SURVIVED, EQUIVALENT):
        for answer in answers:
            if answer.outcome == outcome:
                change = f"{answer.before}  ->  {answer.after}"
                print(f"{outcome}  {answer.place}  {change}  {answer.why}".rstrip(), file=out)
    if len(answers) < drawn:
        print(f"{drawn - len(answers)} of {drawn} were not tried; rerun to resume", file=out)
    return _share(answers)


def _row(room: str, answers: Sequence[Answer]) -> tuple:
    counts = Counter(answer.outcome for answer in answers)
    outcomes = (counts[outcome] for outcome in (KILLED, SURVIVED, EQUIVALENT))
    return room, len(answers), *outcomes, f"{_share(answers):.1%}"


def _share(answers: Sequence[Answer]) -> float:
    counts = Counter(answer.outcome for answer in answers)
    tried = counts[KILLED] + counts[SURVIVED]
    return counts[KILLED] / tried if tried else 1.0
