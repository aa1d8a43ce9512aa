"""A noise job and a report of tiny settings, run once for the tests of what they left."""

import jax
import pytest

from experiments import ablation, noise, report, runtime
from experiments.ablation import APMS, BETA0, CAPM, HPG
from experiments.engine import devices
from experiments.engine.options import Options

TINY = {"dataset": "breast-cancer", "regimes": ("clean", "symmetric-40")}
LOSSES = ("ce", "gce", "apms")
THREE = Options(seeds=("3",), epochs=3)
ONE = Options(seeds=("0,",), epochs=3)
TWO = Options(seeds=("2",), epochs=2)
REPORTED = ("ce", "hpg", "logit_adjustment")


def two_devices(devices):
    return devices or 2


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
    """The tests have had their devices from the start; a command sets up its own."""
    monkeypatch.setattr(devices, "prepare_devices", two_devices)


@pytest.fixture(scope="package")
def finished(tmp_path_factory, promotion_as_optax_needs_it, programs_compiled_once):
    """The folder of a finished job: two regimes, three losses, three seeds."""
    out = tmp_path_factory.mktemp("noise")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "prepare_devices", two_devices)
        noise.main(**TINY, losses=LOSSES, out=out, common=THREE)
    return out


@pytest.fixture
def tiny_ablation(monkeypatch):
    """A few variants in one cell."""
    shrink_ablation(monkeypatch)


def shrink_ablation(patch):
    patch.setattr(ablation, "CELLS", {"digits": ("symmetric-40",)})
    patch.setattr(ablation, "CAPM", CAPM[:1])
    patch.setattr(ablation, "HPG", HPG[:1])
    patch.setattr(ablation, "BETA0", BETA0[3:4])
    patch.setattr(ablation, "APMS", APMS[3:4])


def shrink_report(patch):
    """Digits, the long tail and small mixtures, and one program to time instead of one per loss."""
    patch.setattr(noise, "PAPER_DATASETS", ("digits",))
    patch.setattr(report, "SIZES", (100, 200))
    shrink_ablation(patch)
    make_timed = runtime.make_timed
    patch.setattr(runtime, "make_timed", lambda options, losses: make_timed(options, ("ce",)))


@pytest.fixture(scope="package")
def reported(tmp_path_factory, promotion_as_optax_needs_it, programs_compiled_once):
    """The results folder of a finished report: two seeds, two epochs."""
    results = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "prepare_devices", two_devices)
        shrink_report(patch)
        report.main(losses=REPORTED, out=results / "report", theory=False, common=TWO)
    return results
