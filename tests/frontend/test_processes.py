"""Processes in the background end with whoever started them."""

import multiprocessing
import sys
import time

import pytest

from pgeom.frontend import processes


def test_the_work_of_a_pool_is_done():
    with processes.worker_pool(1) as pool:
        assert pool.submit(abs, -3).result() == 3
    assert multiprocessing.active_children() == []


def test_an_exception_drops_the_work_of_a_pool():
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), processes.worker_pool(1) as pool:
        pool.submit(time.sleep, 600)
        raise KeyboardInterrupt
    assert multiprocessing.active_children() == []
    assert time.monotonic() - begun < 300


def test_a_command_is_ended_with_its_block():
    with processes.background([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        assert process.poll() is None
    assert process.returncode < 0
    with processes.background([sys.executable, "-c", "raise SystemExit(3)"]) as process:
        process.wait()
    assert process.returncode == 3


def test_all_are_ended_at_once():
    with processes.background([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        processes.end_all()
        assert process.wait() < 0
