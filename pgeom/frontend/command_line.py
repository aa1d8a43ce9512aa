"""Run a typed function as a command line whose errors are one line each.

def main(dataset: str = "digits") -> None: ...

run(main, "experiments.noise", example="--dataset digits")  # python -m experiments.noise ...
"""

import contextlib
import inspect
import io
import re
import sys
from collections.abc import Callable
from functools import partial, wraps
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

import tyro
from rich.console import Console

from pgeom.frontend.errors import UsageError

BAD_INPUT, INTERRUPTED = 2, 130  # exit codes
HELP_END = (
    "Exit codes: 0 success, 1 a check failed, 2 bad input, 130 interrupted. "
    "--version prints the version."
)
WIDE = 1000  # columns where no terminal says how many there are: more than any table has
INTERRUPTION = "interrupted: finished runs are kept, rerun to resume"


def run(
    main: Callable[..., int | None],
    name: str,
    *,
    example: str = "",
    on_interrupt: str = INTERRUPTION,
) -> NoReturn:
    """Parse `sys.argv` for a typed `main`, call it, and exit with the code it returns.

    Bad arguments and a `UsageError` are one line on standard error and exit code 2; Ctrl-C is one
    line and exit code 130. `--version` prints the version of the project.

    Args:
      main: the command; None means exit code 0.
      name: of the module, as in `python -m name`.
      example: arguments that show how the command is used; `--help` opens with them.
      on_interrupt: what Ctrl-C prints.
    """
    if "--version" in sys.argv[1:]:
        print(f"pgeom {metadata.version('pgeom')}")
        sys.exit(0)
    try:
        sys.exit(_parse(main, f"python -m {name}", example)())
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        print(on_interrupt, file=sys.stderr)
        sys.exit(INTERRUPTED)


def make_folder(path: Path, *, option: str) -> Path:
    """The folder at `path`, made if it is missing.

    Args:
      path: of the folder.
      option: the option that takes it, to begin the message with.

    Raises:
      UsageError: if it cannot be made, as where a file is in the way.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror
        raise UsageError(f"{option}: cannot make the folder {str(path)!r}: {reason}") from error
    return path


def make_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """A console that cuts no column of a table off, unless a terminal is too narrow for it.

    Args:
      stderr: print on standard error.
      quiet: print nothing.
    """
    console = Console(stderr=stderr, quiet=quiet)
    if not console.is_terminal:
        console.width = WIDE
    return console


def _parse(main: Callable[..., int | None], program: str, example: str) -> Callable[[], int | None]:
    """`main` with the arguments of the command line, not yet called.

    Parsing ends before `main` begins, so that nothing `main` prints or raises is taken for tyro's.
    """

    @wraps(main)
    def bind(*arguments: Any, **options: Any) -> Callable[[], int | None]:
        return partial(main, *arguments, **options)

    box = io.StringIO()
    try:
        with contextlib.redirect_stderr(box):
            return tyro.cli(bind, prog=program, description=_describe(main, program, example))
    except SystemExit as stop:
        if stop.code != BAD_INPUT:  # --help
            raise
        raise UsageError(_flatten(box.getvalue())) from None


def _describe(main: Callable[..., int | None], program: str, example: str) -> str:
    """What `--help` says before the options: an example, what the command does, exit codes."""
    purpose, _, _ = (inspect.getdoc(main) or "").partition("\nArgs:")
    paragraphs = (f"Example: {program} {example}", purpose, HELP_END)
    return "\n\n".join(paragraph.strip() for paragraph in paragraphs)


def _flatten(box: str) -> str:
    """The message in the box that tyro draws about bad arguments, as one line without help texts.

    The box is read because tyro 1.0 has no public hook for its errors: the one in `tyro._errors` is
    private, may change in any release, and leaves out the options that the user may have meant.
    """
    plain = re.sub(r"\x1b\[[\d;]*m", "", box)  # the colours of a terminal
    inside = [line[1:-1] for line in plain.splitlines()[1:-1]]
    sections = re.split(r"^ *[─-]+ *$", "\n".join(inside), flags=re.MULTILINE)
    messages = [_join_outer_lines(part) for part in sections if "Argument helptext:" not in part]
    return "; ".join(filter(None, messages))  # in ASCII a line without a message is under the title


def _join_outer_lines(section: str) -> str:
    """Leaves out what is indented by eight columns or more: help texts of options."""
    lines = [line for line in section.splitlines() if not line.startswith(" " * 8)]
    return " ".join(" ".join(lines).split()).rstrip(".")
