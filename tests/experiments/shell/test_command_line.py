"""A typed function as a command: exit codes, and one line for whatever goes wrong."""

import ast
import importlib
import io
import os
import shlex
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

import pytest
import tyro
from rich.table import Table

from experiments.shell import command_line
from experiments.shell.command_line import make_console, run
from experiments.shell.errors import UsageError, refusals


def main(
    classes: Annotated[tuple[int, ...], tyro.conf.arg(metavar="K…")] = (),
    mode: Literal["good", "fail", "refuse", "interrupt", "silent", "talk", "show"] = "good",
) -> int | None:
    """An example of a command.

    Args:
      classes: Numbers of classes, explained at such length that the help text of this option needs
        a second line wherever it is printed.
      mode: What happens.
    """
    if mode == "refuse":
        raise UsageError("mode must not be 'refuse'")
    if mode == "interrupt":
        raise KeyboardInterrupt
    if mode == "talk":
        print("a library's")
    if mode == "show":
        print(command_line.as_typed(), file=command_line.results())
    print("called with", *classes, file=command_line.results())
    return {"good": 0, "fail": 1}.get(mode)


@pytest.fixture
def command(monkeypatch, capsys):
    """`command(*arguments)`: the exit code, standard output and standard error."""

    def execute(*arguments, **options):
        monkeypatch.setattr(sys, "argv", ["example", *arguments])
        with pytest.raises(SystemExit) as stop:
            run(main, "examples.one", **options)
        return stop.value.code or 0, *capsys.readouterr()

    return execute


@pytest.mark.parametrize(("mode", "code"), [("good", 0), ("fail", 1), ("silent", 0)])
def test_the_returned_number_is_the_exit_code(mode, code, command):
    assert command("--mode", mode, "--classes", "2", "3") == (code, "called with 2 3\n", "")


def test_a_usage_error_is_one_line_and_code_two(command):
    assert command("--mode", "refuse") == (2, "", "error: mode must not be 'refuse'\n")


@pytest.fixture
def closed_pipe():
    """A stream whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        yield stream


@pytest.mark.parametrize("mode", ["good", "fail"])
def test_a_reader_that_has_gone_changes_no_exit_code(mode, command, monkeypatch, closed_pipe):
    monkeypatch.setattr(sys, "stdout", closed_pipe)
    assert command("--mode", mode) == ({"good": 0, "fail": 1}[mode], "", "")


@pytest.mark.parametrize("arguments", [["--mode", "good"], ["--help"], ["--version"]])
def test_an_output_that_cannot_be_written_is_one_line_and_code_two(arguments, command, monkeypatch):
    with open("/dev/full", "w") as device:
        monkeypatch.setattr(sys, "stdout", device)
        line = "error: cannot write to standard output: No space left on device\n"
        assert command(*arguments) == (2, "", line)


def test_an_interruption_is_one_line_and_code_130(command):
    line = "interrupted: finished runs are kept, rerun to resume\n"
    assert command("--mode", "interrupt") == (130, "", line)
    assert command("--mode", "interrupt", on_interrupt="stopped") == (130, "", "stopped\n")


@pytest.mark.parametrize("terminal", [False, True])  # where tyro draws its box in colour
@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])  # and with which characters
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--clases", "3"], ["Unrecognized options: --clases, 3; ", "--classes K…"]),
        (["--classes", "two"], ["--classes", "['two']"]),
        (["--classes", "3,10"], ["--classes", "; separate by spaces: 3 10; "]),
        (["--mode", "bad"], ["'bad'", "--mode", "('good', 'fail', "]),
        (["--mode"], ["'--mode'"]),
    ],
)
def test_bad_arguments_are_one_line(arguments, says, terminal, encoding, command, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    stdout.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stdout", stdout)
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and err.count("\n") == 1
    assert err[len("error: ")].isalpha(), err
    assert [part for part in says if part not in err] == [], err
    assert err.endswith("python -m examples.one --help\n")
    assert "at such length" not in err
    assert not set(err) & set("\x1b╭╮╰╯│─")


def test_a_command_is_shown_as_it_was_typed(command):
    _, out, _ = command("--mode", "show", "--classes", "2")
    assert "python -m examples.one --mode show --classes 2\n" in out
    assert command_line.as_typed() == "a call from Python"


def test_help_is_printed_in_full_and_opens_with_an_example(command):
    code, out, err = command("--help", example="--classes 2 3")
    assert (code, err) == (0, "") and "at such length" in out
    paragraphs = out.split("\n\n")
    assert paragraphs[0].startswith("usage: python -m examples.one")
    assert paragraphs[1] == "Example: python -m examples.one --classes 2 3"
    assert paragraphs[2] == "An example of a command."
    assert paragraphs[3].startswith("Exit codes: 0 ")


def test_the_version_is_printed_whatever_else_is_asked(command):
    expected = (0, f"pgeom {metadata.version('pgeom')}\n", "")
    assert command("--version") == command("--mode", "fail", "--version") == expected


def commands():
    """The module and the example of every command of the project."""
    root = Path(command_line.__file__).parents[2]
    for file in sorted([*root.glob("experiments/**/*.py"), *root.glob("proofs_numeric/*.py")]):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "command_line.run":
                keywords = {k.arg: ast.literal_eval(k.value) for k in node.keywords}
                module = ".".join(file.relative_to(root).with_suffix("").parts)
                yield module, ast.literal_eval(node.args[1]), keywords["example"]


def test_every_command_accepts_its_own_example(monkeypatch):
    found = list(commands())
    assert len(found) >= 12
    for module, name, example in found:
        assert module.removesuffix(".__main__") == name
        monkeypatch.setattr(sys, "argv", [name, *shlex.split(example)])
        main = importlib.import_module(module).main
        assert command_line._parse(main, f"python -m {name}", example)
        monkeypatch.setattr(sys, "argv", [*sys.argv, "--no-such-option"])
        with pytest.raises(UsageError, match="--no-such-option"):
            command_line._parse(main, f"python -m {name}", example)


def test_redirected_tables_keep_every_column(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    table = Table(*(f"column {n}" for n in range(30)))
    table.add_row(*(f"the value {n}" for n in range(30)))
    make_console().print(table)
    out, _ = capsys.readouterr()
    assert all(f"the value {n}" in out for n in range(30)) and "…" not in out
    make_console(stderr=True).print(table)
    make_console(quiet=True).print(table)
    assert capsys.readouterr() == ("", out)


def test_texts_are_printed_as_they_are(capsys):
    make_console().print("[/bold] [red]results[/red] :warning: 1")
    assert capsys.readouterr().out == "[/bold] [red]results[/red] :warning: 1\n"


def test_what_cannot_be_encoded_is_replaced():
    for encoding, expected in (("ascii", b"??"), ("latin-1", b"\xb1?"), ("utf-8", "±↑".encode())):
        stream = io.TextIOWrapper(io.BytesIO(), encoding)
        print("±↑", file=command_line.Tolerant(stream), end="", flush=True)
        assert stream.buffer.getvalue() == expected


def test_what_else_is_printed_is_no_result(command):
    assert command("--mode", "talk") == (0, "called with\n", "a library's\n")
    assert command_line.results() is None


def test_what_the_library_refuses_is_one_line():
    for error in (ValueError("no\n good"), TypeError("no good"), ImportError("no good")):
        with pytest.raises(UsageError, match=r"^--rate: no good$"), refusals("--rate: "):
            raise error
    with pytest.raises(UsageError, match=r"^no good$"), refusals("--rate: "):
        raise UsageError("no good")
    with pytest.raises(RuntimeError), refusals():
        raise RuntimeError("a bug")
