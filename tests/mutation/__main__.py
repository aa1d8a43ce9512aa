"""Put small errors into the library and see whether its tests notice.

    python -m tests.mutation --mutants 200 --only geometry --minutes 60

Every mutant is tried on a copy of the project, by the tests of its room that run the place of the
error, the quickest first and at most a minute of them. The answers are kept in `--out`: rerun to
resume, and after adding tests, to try only the survivors again. Nothing of the project is imported
here, because it is what is being changed.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.mutation import runs
from tests.mutation.report import print_report
from tests.mutation.trial import ROOMS, Trial, draw_mutants, read_equivalents, try_mutants

ROOT = Path(__file__).parents[2]
OUT = Path("results/mutation")
PASSING = 0.9  # the share of mutants that the tests must notice


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """The command; 1 if the tests notice too few."""
    options = _parser().parse_args(arguments)
    equivalents = read_equivalents(Path(__file__).with_name("equivalents.tsv"))
    rooms = [options.only] if options.only else ROOMS
    mutants = draw_mutants(root, rooms, options.mutants, options.seed)
    deadline = time.monotonic() + 60 * options.minutes
    options.out.mkdir(parents=True, exist_ok=True)
    runs.prepare()
    with tempfile.TemporaryDirectory(prefix="mutation-") as scratch:
        trial = Trial(root, Path(scratch).resolve() / "project", options.out)
        answers = try_mutants(trial, mutants, equivalents, deadline, progress=sys.stderr)
    share = print_report(answers, len(mutants), sys.stdout)
    return 0 if share >= PASSING else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.mutation", description=__doc__)
    parser.add_argument("--mutants", type=int, default=200, help="how many (200)")
    parser.add_argument("--only", choices=ROOMS, help="one room alone")
    parser.add_argument("--seed", type=int, default=0, help="which mutants are drawn (0)")
    parser.add_argument("--minutes", type=float, default=600, help="when to stop (600)")
    parser.add_argument("--out", type=Path, default=OUT, help="the folder of answers")
    return parser


if __name__ == "__main__":
    sys.exit(main())
