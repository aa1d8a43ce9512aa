"""Torture the commands for some minutes, and count what was lost, wrong or a traceback.

    python -m tests.torture --minutes 5

The kinds of trials take turns, so that a short run has some of each. All trials of a seed are the
same, but for the moment at which a signal arrives.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.torture.trials import Bench, Trial, attempt, kinds


def main(arguments: list[str] | None = None) -> int:
    """The command; 1 if anything went wrong."""
    options = _parser().parse_args(arguments)
    chosen = {kind: trials for kind, trials in kinds().items() if options.only in kind}
    deadline = time.monotonic() + 60 * options.minutes
    counts: dict[str, int] = dict.fromkeys(chosen, 0)
    wrong: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory(prefix="torture-") as scratch:
        bench = Bench(Path(scratch), random.Random(options.seed))
        for kind, trial in _take_turns(chosen):
            counts[kind] += 1
            print(f"{kind}: {counts[kind]}, {len(wrong)} wrong so far", file=sys.stderr, flush=True)
            wrong += [(kind, problem) for problem in attempt(trial, bench)]
            if time.monotonic() > deadline:
                break
    _show(counts, wrong)
    return 1 if wrong else 0


def _take_turns(chosen: dict[str, Iterator[Trial]]) -> Iterator[tuple[str, Trial]]:
    left = dict(chosen)
    while left:
        for kind, trials in list(left.items()):
            trial = next(trials, None)
            if trial is None:
                del left[kind]
            else:
                yield kind, trial


def _show(counts: dict[str, int], wrong: list[tuple[str, str]]) -> None:
    table = Table("trials of", "made", "wrong", title="Torture", title_justify="left")
    for kind, count in counts.items():
        table.add_row(kind, str(count), str(sum(kind == one for one, _ in wrong)))
    console = Console(markup=False, highlight=False)
    console.print(table)
    for kind, problem in wrong:
        console.print(f"{kind}: {problem}", soft_wrap=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5, help="when to stop (5)")
    parser.add_argument("--seed", type=int, default=0, help="of the trials (0)")
    parser.add_argument("--only", default="", help="kinds with this in their name")
    return parser


if __name__ == "__main__":
    sys.exit(main())
