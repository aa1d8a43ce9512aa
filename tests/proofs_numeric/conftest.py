"""Checks compile much and run little: no optimisation, and float64; commands in this process."""

import sys

import jax
import pytest

from experiments.shell import command_line
from proofs_numeric import __main__ as entry, runner


@pytest.fixture(autouse=True)
def as_at_the_entry_point(x64, monkeypatch):
    """float64 and quick compilation, as `python -m proofs_numeric` has it."""
    monkeypatch.setattr(runner, "configure", lambda: None)  # it would outlast the test
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture
def command(monkeypatch):
    """`command(*arguments)`: the exit code of `python -m proofs_numeric`, or of another `main`."""

    def execute(*arguments, main=entry.main):
        monkeypatch.setattr(sys, "argv", ["proofs_numeric", *arguments])
        with pytest.raises(SystemExit) as stop:
            command_line.run(main, "proofs_numeric")
        return stop.value.code or 0

    return execute
