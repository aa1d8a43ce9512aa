"""Run a typed function as a command line whose errors are one line each.

def main(dataset: str = "digits") -> None: ...

run(main, "experiments.noise", example="--dataset digits")  # python -m experiments.noise ...

Standard output is for results alone, and writing to it never fails halfway through a command: a
character that the terminal cannot show becomes a question mark, and a reader that has gone, as in
`| head -1`, stops the printing and nothing else. The command goes on to write its files.
"""

import inspect
import io
import os
import re
import shlex
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial, wraps
from importlib import metadata
from typing import IO, Any, NoReturn, cast

import tyro
from rich.console import Console

from experiments.shell import processes
from experiments.shell.errors import UsageError
from pgeom.messages import separated

BAD_INPUT = 2  # the exit code
HELP_END = (
    "Exit codes: 0 success, 1 a check failed, 2 bad input or an output that cannot be written, "
    "130 interrupted. --version prints the version."
)
WIDE = 1000  # columns where no terminal says how many there are: more than any table has
INTERRUPTION = "interrupted: finished runs are kept, rerun to resume"


class Tolerant:
    """A text stream that keeps the first error of writing, and discards what is written after it.

    Attributes:
      error: the first error, if there was one.
    """

    def __init__(self, stream: Any) -> None:
        self.error: OSError | None = None
        self._stream = stream
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")

    def write(self, text: str) -> int:
        self._attempt(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        self._attempt(self._stream.flush)

    def leave_descriptor(self) -> None:
        """Go on writing to where standard output was, which from now on is standard error."""
        self._stream = os.fdopen(os.dup(1), "w", errors="replace")
        os.dup2(2, 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _attempt(self, method: Callable[..., object], *arguments: str) -> None:
        if self.error is None:
            try:
                method(*arguments)
            except OSError as error:
                self.error = error
                # what the stream still holds, and Python would write at exit, goes nowhere
                with open(os.devnull, "w") as nowhere:
                    os.dup2(nowhere.fileno(), self._stream.fileno())


_out: Tolerant | None = None
_typed: str | None = None


def results() -> Tolerant | None:
    """The stream for tables and JSON, as `print` and rich take it; None is `sys.stdout`."""
    return _out


def as_typed() -> str:
    """The command line that is running, to stand beside what it made."""
    return _typed or "a call from Python"


def run(
    main: Callable[..., int | None],
    name: str,
    *,
    example: str = "",
    on_interrupt: str = INTERRUPTION,
) -> NoReturn:
    """Parse `sys.argv` for a typed `main`, call it, and exit with the code it returns.

    Bad arguments and a `UsageError` are one line on standard error and exit code 2, Ctrl-C is one
    line and exit code 130. `--version` prints the version of the project.

    Standard output is for what `main` prints on a console of `make_console` or to `results()`.
    Whatever else is printed meanwhile goes to standard error.

    Args:
      main: the command; None means exit code 0.
      name: of the module, as in `python -m name`.
      example: arguments that show how the command is used; `--help` opens with them.
      on_interrupt: what Ctrl-C prints.
    """
    global _out, _typed
    processes.interruption = on_interrupt
    program, out = f"python -m {name}", Tolerant(sys.stdout)
    _out, _typed = out, f"{program} {shlex.join(sys.argv[1:])}".rstrip()
    try:
        with redirect_stdout(cast(IO[str], out)):
            command = _parse(main, program, example)
        with redirect_stdout(sys.stderr):
            code = command() or 0
        out.flush()
        if out.error is not None and not isinstance(out.error, BrokenPipeError):
            raise UsageError(f"cannot write to standard output: {out.error.strerror}")
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        code = BAD_INPUT
    except KeyboardInterrupt:  # not by Ctrl-C, but by a user's function
        print(on_interrupt, file=sys.stderr)
        code = processes.INTERRUPTED
    finally:
        _out = _typed = None
    sys.exit(code)


def make_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """A console for results, which prints texts as they are and does not wrap redirected ones.

    Args:
      stderr: print on standard error.
      quiet: print nothing.
    """
    file = None if stderr else cast(IO[str] | None, results())
    plain = {"markup": False, "emoji": False, "highlight": False}  # a user's [name] is no style
    console = Console(file=file, stderr=stderr, quiet=quiet, **plain)
    if not console.is_terminal:
        console.width = WIDE
    return console


def _parse(main: Callable[..., int | None], program: str, example: str) -> Callable[[], int | None]:
    """`main` with the arguments of the command line, not yet called.

    Parsing ends before `main` begins, so that nothing `main` prints or raises is taken for tyro's.
    """
    if "--version" in sys.argv[1:]:
        return partial(print, f"pgeom {metadata.version('pgeom')}", file=results())

    bind = wraps(main)(partial(partial, main))
    box = io.StringIO()
    try:
        with redirect_stderr(box):
            return tyro.cli(bind, prog=program, description=_describe(main, program, example))
    except SystemExit as stop:
        if stop.code != BAD_INPUT:  # --help
            return lambda: None
        message = _flatten(box.getvalue())
        joined = re.search(r"valid parse for arguments: \['([^']*)'\]", message)
        if joined is not None and (hint := separated(joined[1])) is not None:
            message = message.replace("; For full", f"; {hint}; For full", 1)
        raise UsageError(message) from None


def _describe(main: Callable[..., int | None], program: str, example: str) -> str:
    """What `--help` says before the options: an example, what the command does, exit codes."""
    purpose, _, _ = (inspect.getdoc(main) or "").partition("\nArgs:")
    return f"Example: {program} {example}\n\n{purpose.strip()}\n\n{HELP_END}"


def _flatten(box: str) -> str:
    """The message in the box that tyro draws about bad arguments, as one line without help texts.

    The box is read because tyro 1.0 has no public hook for its errors: the one in `tyro._errors` is
    private, may change in any release, and leaves out the options that the user may have meant.
    """
    plain = re.sub(r"\x1b\[[\d;]*m", "", box)  # the colours of a terminal
    lines = (line[2:-1] for line in plain.splitlines()[1:-1])
    # help texts are indented by eight columns, or are a section of their own
    text = " ".join(line.strip() for line in lines if not line.startswith(" " * 8))
    text = re.sub("Argument helptext:.*(?=For full)", "", text)
    return re.sub(r"(\.?\s*[─-]{9,}\s*)+", "; ", text).strip("; ")
