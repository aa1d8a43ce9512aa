"""A noise job of tiny settings, run once for all the tests that look at what it left."""

import jax
import pytest

from experiments import cli, noise

TINY = {"dataset": "breast-cancer", "regimes": ("clean", "symmetric-40")}
LOSSES = ("ce", "gce", "apms")
THREE = cli.Options(seeds=("3",), epochs=3)
ONE = cli.Options(seeds=("0,",), epochs=3)


@pytest.fixture(autouse=True, scope="package")
def promotion_as_optax_needs_it():
    """Optax raises a float to an integer power, which strict promotion refuses."""
    with jax.numpy_dtype_promotion("standard"):
        yield


@pytest.fixture(autouse=True, scope="package")
def programs_compiled_once(tmp_path_factory):
    """Jobs of one shape share a program, through the cache that the commands use."""
    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.mktemp("cache")))
    yield
    jax.config.update("jax_compilation_cache_dir", None)


@pytest.fixture(autouse=True)
def devices_of_the_tests(monkeypatch):
    """A test session has had its devices from the start; a command sets up its own."""
    monkeypatch.setattr(cli, "prepare_devices", lambda devices: devices or 2)


@pytest.fixture(scope="package")
def finished(tmp_path_factory, promotion_as_optax_needs_it, programs_compiled_once):
    """The folder of a finished job: two regimes, three losses, three seeds."""
    out = tmp_path_factory.mktemp("noise")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "prepare_devices", lambda devices: devices or 2)
        noise.main(**TINY, losses=LOSSES, out=out, common=THREE)
    return out
