"""One writer per folder: others are refused, and a dead one is in nobody's way."""

import errno
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from experiments.engine import lock
from experiments.engine.lock import NAME, claim
from experiments.shell.errors import UsageError

HOLD = """
import sys, time
from pathlib import Path
from experiments.engine.lock import claim
with claim(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that writes to the folder `out`."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_a_second_process_is_refused_and_the_lock_of_a_dead_one_is_taken_over(holder, tmp_path):
    out = tmp_path / "out"
    says = rf"out' is in use by process {holder.pid} since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d: wait"
    with pytest.raises(UsageError, match=says), claim(out):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert json.loads((out / NAME).read_text())["process"] == holder.pid  # it could not tidy up
    with claim(out):
        assert json.loads((out / NAME).read_text())["process"] == os.getpid()
    assert not (out / NAME).exists()


def test_a_process_of_another_host_is_named_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(lock.socket, "gethostname", lambda: "elsewhere")
    with claim(tmp_path):
        monkeypatch.setattr(lock.socket, "gethostname", lambda: "here")
        with pytest.raises(UsageError, match=f"process {os.getpid()} on elsewhere since"):
            lock._acquire(tmp_path)


def signed(host):
    return json.dumps({"process": 1, "host": host, "since": "today"}).encode()


STRANGE = [b"[" * 3000, signed("a\nb"), signed("\x1b[2J"), signed("a\u2028b"), signed("\ud800")]


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"process": 1}', b"\xff", *STRANGE])
def test_an_owner_who_has_not_signed_as_we_do_is_another_process(text, tmp_path):
    with claim(tmp_path):
        (tmp_path / NAME).write_bytes(text)
        with pytest.raises(UsageError, match="in use by another process: wait"):
            lock._acquire(tmp_path)


def test_of_many_takers_one_wins_at_a_time(tmp_path):
    """Of a folder that each of them makes, and removes when it is done."""
    out, inside, most, won = tmp_path / "a" / "b", [], [], []
    barrier = threading.Barrier(4)

    def take(_):
        barrier.wait()
        for _ in range(50):
            with suppress(UsageError), claim(out):
                inside.append(1)
                most.append(len(inside))
                won.append(1)
                inside.pop()

    with ThreadPoolExecutor(4) as executor:
        list(executor.map(take, range(4)))
    assert won and max(most) == 1
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_folder_named_twice_is_claimed_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with claim(tmp_path / "out", tmp_path / "x" / ".." / "out"):
        assert (tmp_path / "out" / NAME).exists()


def test_of_several_folders_all_are_claimed_or_none(tmp_path):
    with claim(tmp_path / "b"):
        with pytest.raises(UsageError, match="b' is in use"), claim(tmp_path / "a", tmp_path / "b"):
            pass
        assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_what_was_there_or_written_stays(tmp_path):
    (tmp_path / "empty").mkdir()
    with claim(tmp_path / "empty", tmp_path / "full"):
        (tmp_path / "full" / "records.jsonl").write_text("")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "full"]
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["records.jsonl"]


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / NAME).symlink_to(tmp_path / "precious")
    with pytest.raises(UsageError, match=r"cannot write to '.*out'"), claim(tmp_path / "out"):
        pass
    assert (tmp_path / "precious").read_text() == "mine"


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named(code, tmp_path, capsys, monkeypatch):
    def flock(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", flock)
    with claim(tmp_path):
        assert re.search("cannot be locked: let no other process", capsys.readouterr().err)


def test_another_error_is_one_line(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(UsageError, match=r"cannot write to .*: Input/output error"):
        claim(tmp_path).__enter__()
