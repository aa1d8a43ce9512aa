"""Check every claim of the paper numerically: `python -m proofs_numeric`.

Exit code 0 if all hold, 1 if any fails, 2 for bad input.
"""

import contextlib
import io
import json as json_format
import re
import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from pgeom.frontend import loading
from pgeom.frontend.command_line import UsageError
from proofs_numeric import report, runner, user_generator

TABLE_WIDTH = 240  # where the output is no terminal


def main(
    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME…")] = (),
    classes: Annotated[tuple[int, ...], tyro.conf.arg(metavar="K…")] = (),
    generator: Annotated[str, tyro.conf.arg(metavar="SOURCE:FUNCTION")] = "",
    figures: Annotated[str, tyro.conf.arg(metavar="DIR")] = "",
    json: tyro.conf.FlagCreatePairsOff[bool] = False,
) -> int:
    """Check every claim of the paper: search for violations, show where bounds are attained.

    Exits with 0 if all hold, 1 if any fails, 2 for bad input.

    Args:
      only: Claims to check, all by default: regret, curvature, loss_range, gradients,
        hessian_lipschitz, margin, displacement, improper, contamination, numerics.
      classes: Numbers of classes to check them for. By default 2, 3 and 10, with 6 for CAPM on the
        dataset that has so many, and 100 for the claims that are cheap (margin, improper,
        contamination); for --generator 2, 3 and 10.
      generator: Check a generator of your own instead, a function F(p[K]) -> scalar, named as
        module:function or path/to/file.py:function.
      figures: Also draw the paper's theory figures into this folder, as PNG and PDF.
      json: Print JSON on standard output, and nothing else there.
    """
    progress = Console(stderr=True)
    folder = _folder(figures) if figures else None
    if generator:
        results, notes = _of_generator(generator, only, classes)
    else:
        jobs = runner.jobs(only, classes)
        results, notes = runner.run(jobs, progress, capm_only=not classes), []
    if folder is not None:
        from proofs_numeric import figures as drawing  # matplotlib only where it is wanted

        with progress.status("figures"):
            notes += [f"wrote {path}" for path in drawing.draw(folder)]
    if json:
        print(json_format.dumps(report.as_json(results) | {"notes": notes}, ensure_ascii=False))
    else:
        _print(results, notes)
    return 0 if report.holds(results) else 1


def _of_generator(spec: str, only, classes) -> tuple[dict, list[str]]:
    if only:
        raise UsageError("--only: has no meaning with --generator, which has checks of its own")
    runner.check_classes(classes)
    F, results, notes = loading.load(spec, option="--generator"), {}, []
    with Console(stderr=True).status(spec):
        for K in classes or (2, 3, 10):
            results[f"{spec}, K = {K}"], found = user_generator.checks(F, K, spec)
            notes += found
    return results, notes


def _folder(name: str) -> Path:
    """The folder to draw into, made if it is missing."""
    try:
        Path(name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--figures: cannot make the folder {name!r}: {error.strerror}") from error
    return Path(name)


def _print(results: dict, notes: list[str]) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=TABLE_WIDTH)
    console.print(report.as_table(results))
    for claim, ratio in report.medians(results).items():
        console.print(f"median sharp/paper {ratio:.3f}  {claim}", highlight=False, markup=False)
    for note in notes:
        console.print(note, highlight=False, markup=False, soft_wrap=True)
    checks = [check for found in results.values() for check in found]
    failed = sum(not check.holds for check in checks)
    verdict = "all hold" if failed == 0 else f"{failed} FAIL"
    console.print(f"{len(checks)} checks: {verdict}", highlight=False)


def _parse(arguments: list[str]) -> Callable[[], int]:
    """`main` with its arguments; what `tyro` prints in a box about bad ones, in one line."""

    @wraps(main)
    def with_arguments(**options):
        return partial(main, **options)

    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(with_arguments, args=arguments, prog="python -m proofs_numeric")
    except SystemExit as stop:
        if stop.code != 2:
            raise
        words = re.sub(r"[╭╮╰╯│─]+", " ", said.getvalue()).split()
        raise UsageError(" ".join(words)) from stop


def command(arguments: list[str]) -> int:
    """The exit code of a command line; bad input is one line on standard error."""
    try:
        return _parse(arguments)()
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    runner.configure()
    sys.exit(command(sys.argv[1:]))
