"""Checks compile much and run little: no optimisation, and float64."""

import jax
import pytest

from proofs_numeric import runner


@pytest.fixture(autouse=True)
def as_at_the_entry_point(x64, monkeypatch):
    """float64 and quick compilation, as `python -m proofs_numeric` has it."""
    monkeypatch.setattr(runner, "configure", lambda: None)  # it would outlast the test
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
