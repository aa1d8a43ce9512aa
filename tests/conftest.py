"""Strictness for every test: checked annotations, no silent promotion of ranks or dtypes."""

import gc
import os
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import jax
import jaxtyping
import pytest
from xdist.scheduler import LoadFileScheduling

# Before anything imports pgeom: the annotations of these packages are checked at every call, by the
# rule of static checkers that an int may stand for a float.
TYPED = ["pgeom", "experiments.engine"]
jaxtyping.install_import_hook(
    TYPED, "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"
)

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_num_cpu_devices", 2)  # so that sharding is real wherever tests run

# The same examples every time, however long each of them takes; and many, where they are asked for.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=5000, database=None)
hypothesis.settings.load_profile("repeatable")

# Tests compile more than they run, and without fusion emitters XLA compiles in half the time. For
# the versions known to have the flag, because others would stop at it.
if jax.__version_info__[:2] == (0, 10):
    os.environ["XLA_FLAGS"] = "--xla_cpu_use_fusion_emitters=false " + os.getenv("XLA_FLAGS", "")
jax.config.update("jax_disable_most_optimizations", True)
# What tracing leaves is mostly kept: looking for garbage among it is a tenth of the time.
gc.freeze()
gc.set_threshold(100_000)

# Linux gives a process 65,530 memory mappings, of which every compiled program takes several, and
# a compiler that cannot have another one crashes.
MAPPINGS = 25_000


@pytest.fixture(scope="module", autouse=True)
def few_memory_mappings():
    """Forget compiled programs before there are too many of them."""
    yield
    mappings = Path("/proc/self/maps")
    if mappings.exists() and len(mappings.read_bytes().splitlines()) > MAPPINGS:
        jax.clear_caches()
        gc.collect()


# Files whose tests read one small report, which takes longer to make than they take.
TOGETHER = ("test_report.py", "test_page.py", "test_studies.py")
# Files that take long: begun last, they would keep one worker waiting for another.
FIRST = (*TOGETHER, "test_readme.py", "test_own.py", "test_losses.py", "test_commands.py")
FIRST += ("test_transformations.py",)


class ByFile(LoadFileScheduling):
    """Sends the tests of a file to one worker, and files that share a report to the same one."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "tests/experiments" if file.endswith(TOGETHER) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With `--dist loadfile`, which the README and continuous integration use."""
    config.option.loadscopereorder = False  # by the number of tests
    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in FIRST)


@pytest.fixture
def x64():
    """Run the test in float64."""
    with jax.enable_x64(True):
        yield


@contextmanager
def unchecked():
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture
def unchecked_annotations():
    """Call the library as users do, so that a value of the wrong type meets its own message."""
    with unchecked():
        yield


@pytest.fixture(scope="module")
def unchecked_module():
    """The same for a file that traces a great deal, of which the checks are a third of the time."""
    with unchecked():
        yield
