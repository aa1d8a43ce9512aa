"""Printing that fails ends nothing, and standard output has results alone."""

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pgeom
from pgeom.frontend import output

PREPARED = f"""
import os, sys, types
pgeom = sys.modules["pgeom"] = types.ModuleType("pgeom")  # without JAX, which takes seconds
pgeom.__path__ = ["{Path(pgeom.__file__).parent}"]
"""


@pytest.fixture
def closed_pipe():
    """A stream whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        yield stream


@pytest.mark.parametrize("full", [False, True])
def test_the_first_error_is_kept_and_the_rest_discarded(full, closed_pipe):
    with open("/dev/full", "w") as device:
        stream = output.Tolerant(device if full else closed_pipe)
        for _ in range(3):
            print("text" * 10_000, file=stream, flush=True)
        assert stream.error.errno == (errno.ENOSPC if full else errno.EPIPE)
        print("more, which is written nowhere when the stream is closed", file=stream)


def test_what_cannot_be_encoded_is_replaced():
    for encoding, expected in (("ascii", b"??"), ("latin-1", b"\xb1?"), ("utf-8", "±↑".encode())):
        stream = io.TextIOWrapper(io.BytesIO(), encoding)
        print("±↑", file=output.Tolerant(stream), end="", flush=True)
        assert stream.buffer.getvalue() == expected


def test_results_and_the_rest_part_ways(capsys):
    with output.tolerant_streams() as out:
        print("before")
        with output.for_results(out):
            print("a library's")
            print("a result", file=output.results())
        print("after")
    assert capsys.readouterr() == ("before\na result\nafter\n", "a library's\n")
    assert output.results() is None


def execute(code, closing, expected=0):
    """What a new Python prints, some of whose streams are closed."""
    shell = f"exec {sys.executable} -c '{code}' {closing}"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True)
    assert done.returncode == expected, done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize("closing", ["", ">&-", "2>&-", ">&- 2>&-"])
def test_descriptors_part_ways_too(closing):
    """What C++ prints is no result; and whatever is closed, nothing fails."""
    code = f"""{PREPARED}
from pgeom.frontend import output
with output.tolerant_streams() as out, output.for_results(out):
    os.write(1, b"native ")
    print("result", file=output.results())
    os.system("echo child >&1")
"""
    out, err = execute(code, closing)
    assert out == ("" if ">&-" in closing.split() else "result\n")
    if not closing:
        assert err == "native child\n"


@pytest.mark.parametrize("closing", ["", ">&-", "2>&-", ">&- 2>&-"])
def test_what_is_printed_at_exit_is_no_result(closing):
    code = f"""{PREPARED}
import atexit
from pgeom.frontend import command_line, output

def main() -> None:
    atexit.register(lambda: print("bye") or os.system("echo child"))
    print("result", file=output.results())

command_line.run(main, "example")
"""
    out, err = execute(code, closing)
    assert out == ("" if ">&-" in closing.split() else "result\n")
    if not closing:
        assert sorted(err.split()) == ["bye", "child"]


@pytest.mark.parametrize(("error", "code"), [("UsageError(0)", 2), ("KeyboardInterrupt", 130)])
@pytest.mark.parametrize("closing", ["", "2>&-", "2>/dev/full"])
def test_what_went_wrong_is_no_result(error, code, closing):
    script = f"""{PREPARED}
from pgeom.frontend import command_line
from pgeom.frontend.errors import UsageError

def main() -> None:
    raise {error}

command_line.run(main, "example")
"""
    out, err = execute(script, closing, expected=code)
    assert out == "" and err.count("\n") == (not closing)


@pytest.mark.parametrize(
    ("close", "printed"),
    [
        ("sys.stdout.close(); sys.stderr.close()", "a library prints\n"),
        ("sys.stdout.detach()", "a library prints\n"),
        ("sys.stdout.buffer.close()", ""),
        ("sys.__stdout__.close(); sys.__stderr__.close()", ""),
    ],
)
def test_a_user_s_module_that_closes_a_stream_loses_no_result(close, printed):
    script = f"""{PREPARED}
from pgeom.frontend import command_line, output

def main() -> int:
    {close}
    print("a library prints", flush=True)
    print("result", file=output.results())
    return 1

command_line.run(main, "example")
"""
    out, err = execute(script, "", expected=1)
    assert (out, err) == ("result\n", printed)


def test_writing_to_a_closed_stream_is_an_error_that_is_kept():
    stream = io.StringIO()
    tolerant = output.Tolerant(stream)
    stream.close()
    tolerant.flush()  # which has nothing to write
    assert tolerant.error is None
    print("text", file=tolerant)
    assert tolerant.error.strerror == "I/O operation on closed file"
