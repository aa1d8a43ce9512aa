"""The set-up of JAX in a process where JAX has been used already."""

import os

import jax
import pytest

from experiments.engine import devices
from experiments.engine.devices import ONE_THREAD, prepare_devices
from experiments.shell.errors import UsageError


@pytest.fixture(autouse=True)
def settings_of_the_tests(monkeypatch):
    monkeypatch.setattr(devices, "use_cache", lambda min_seconds: None)
    monkeypatch.setenv("XLA_FLAGS", "--xla_of_the_user")
    precision = jax.config.values["jax_enable_x64"]
    yield
    jax.config.update("jax_enable_x64", precision)


def test_devices_that_are_there_are_kept():
    available = jax.device_count()
    assert prepare_devices(None) == available
    assert prepare_devices(1) == 1
    assert os.environ["XLA_FLAGS"] == f"--xla_of_the_user {ONE_THREAD}"


@pytest.mark.parametrize(("devices", "bound"), [(0, "at least 1"), (4096, "at most 2, all there")])
def test_a_number_of_devices_that_cannot_be(devices, bound):
    with pytest.raises(UsageError, match=f"^--devices must be {bound}"):
        prepare_devices(devices)
