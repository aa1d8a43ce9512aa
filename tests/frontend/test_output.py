"""Printing that fails ends nothing, and standard output has results alone."""

import errno
import io
import os
import subprocess
import sys

import pytest

from pgeom.frontend import output


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
    with output.tolerant_output() as out:
        print("before")
        with output.for_results(out):
            print("a library's")
            print("a result", file=output.results())
        print("after")
    assert capsys.readouterr() == ("before\na result\nafter\n", "a library's\n")
    assert output.results() is None


def test_what_a_library_prints_from_c_is_no_result():
    code = """
import os
from pgeom.frontend import output
with output.tolerant_output() as out, output.for_results(out):
    os.write(1, b"native ")
    print("result", file=output.results())
    os.system("echo child")
print("after")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("result\nafter\n", "native child\n")
