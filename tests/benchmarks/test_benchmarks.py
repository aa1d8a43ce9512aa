"""The benchmarks with tiny settings: all do the same job, and the page says so only if they do."""

import importlib.util
import subprocess
import sys

import jax
import numpy as np
import pytest

from benchmarks import (
    __main__ as command,
    estimator,
    jax_training,
    jobs,
    kernels,
    training,
    waiting,
)
from benchmarks.jobs import Job
from benchmarks.page import section
from benchmarks.processes import Processes, peak_bytes
from pgeom.data.dataset import from_arrays
from pgeom.losses.catalogue import GENERAL

TINY = Job(2, 4, ("clean", "symmetric-20"), ("gce",))


@pytest.fixture(autouse=True)
def as_in_other_tests(monkeypatch):
    """Two devices from the start, promotion as optax needs it, and what a trial sets, set back."""
    monkeypatch.setattr(jax_training, "prepare_devices", lambda devices: devices or 2)
    monkeypatch.setenv("JAX_ENABLE_COMPILATION_CACHE", "true")
    with jax.numpy_dtype_promotion("standard"):
        yield
    jax.config.update("jax_enable_compilation_cache", True)


@pytest.fixture
def pytorch(monkeypatch):
    """The implementations in PyTorch, in this process."""
    pytest.importorskip("torch", reason="PyTorch is of the bench extra").manual_seed(0)
    from benchmarks import pytorch

    def train_all(train, job, parts):
        return [nll for part in parts for nll in train(job, *part)]

    monkeypatch.setattr(pytorch, "_share_out", train_all)
    return pytorch


@pytest.fixture
def stripes(monkeypatch):
    """A job of images with a bright stripe, whose place says the class."""
    labels = np.arange(200) % 10
    pixels = np.random.default_rng(0).uniform(size=(200, 784)) / 3
    pixels += 0.6 * (np.arange(784) // 79 == labels[:, None])
    dataset = from_arrays("stripes", pixels, labels, image_shape=(28, 28))
    monkeypatch.setattr(jobs, "first_images", lambda count: dataset)
    monkeypatch.setattr(jobs, "IMAGE_BATCH", 24)
    return Job(2, 6, losses=("ce",), images=120)


def test_both_ways_in_jax_do_one_job():
    ours, usual = jax_training.train_by_pgeom(TINY), jax_training.train_loss_by_loss(TINY)
    assert 0.5 < ours["nll"] < 2.3 and min(usual["seconds"], usual["compiling"]) > 0
    # from other initial weights: as close as four epochs let them
    assert usual["nll"] == pytest.approx(ours["nll"], abs=0.15)


def test_both_ways_in_pytorch_do_the_same_job(pytorch):
    ours = jax_training.train_by_pgeom(TINY)["nll"]
    for nll in (pytorch.train_runs(TINY), pytorch.train_stacks(TINY)):
        assert len(nll) == TINY.runs and np.mean(nll) == pytest.approx(ours, abs=0.15)


def test_the_losses_in_pytorch_are_the_catalogue_s(pytorch):
    assert tuple(pytorch.LOSSES) == jobs.LOSSES
    logits = 2 * np.random.default_rng(0).standard_normal((30, 10)).astype(np.float32)
    labels = np.arange(30) % 10
    for name in pytorch.LOSSES:
        found = pytorch.mean_losses(name, *map(pytorch.torch.tensor, (logits, labels)))
        expected = GENERAL[name].build(None)(logits, labels).mean()
        np.testing.assert_allclose(found, expected, rtol=1e-4, err_msg=name)


def test_convolutions_of_flax_learn(stripes):
    assert jax_training.train_by_pgeom(stripes, convolve="flax")["nll"] < 2


@pytest.mark.parametrize("layout", ["first", "last"])
def test_convolutions_of_pytorch_learn(layout, stripes, pytorch):
    assert max(pytorch.train_runs(stripes, layout)) < 2


def test_the_useful_work_and_its_limit(monkeypatch):
    layers = 64 * 96 + 96 * 96 + 96 * 10
    epoch = 2 * (1078 * (3 * layers - 64 * 96) + 359 * layers)  # no gradient in the inputs
    assert jobs.useful_gflop(TINY) == pytest.approx(TINY.runs * TINY.epochs * epoch / 1e9)
    monkeypatch.setattr(jax_training, "products", lambda job: [(32, 8, 16)])
    assert 0.001 < jax_training.limit(TINY) < 10_000


def test_kernels_are_measured_beside_cross_entropy():
    first, *others = kernels.compare(kernels.losses(5), 5, 4, repeats=1)
    assert first["loss"] == kernels.REFERENCE and first["ratio"] == 1 and len(others) == 9


def test_both_estimators_train_equally_long():
    for way in (estimator.THEIRS, estimator.OURS):
        row = estimator.fit("wine", way, epochs=3)
        assert row["epochs"] == 3 and row["first"] > 0 and row["accuracy"] > 0.3


def test_first_seconds_are_measured_where_nothing_was_imported():
    code = "import sys, benchmarks.waiting; print({'jax', 'numpy'} & {*sys.modules})"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"
    rows = waiting.measure_steps(classes=(3,), commands=("experiments.noise --datset x",))
    assert len(rows) == 5 and rows[-1]["first"] > rows[-1]["second"]


def test_a_trial_has_a_process_and_a_peak_of_its_own(tmp_path):
    ballast = np.ones(2**26)  # half a GiB, all of it touched
    peak = Processes(tmp_path).call("benchmarks.processes.peak_bytes")
    assert 2**22 < peak < ballast.nbytes <= peak_bytes()


NUMBERS = "classes batch milliseconds mib ratio usual_ratio first second later gib accuracy"
ROW = dict.fromkeys(f"{NUMBERS} examples features nll compiling peak_bytes".split(), 1)
ROW |= dict.fromkeys(("loss", "what", "dataset"), "wine")


class Scripted(Processes):
    """Processes that answer at once."""

    def call(self, function, *arguments, **options):
        if function.endswith(("compare_all", "measure_steps")):
            return [ROW]
        if "pytorch" in function:
            return {"seconds": 4.0, "nll": 1}
        named = {"way": arguments[1]} if function.endswith("fit") else {}
        return 100.0 if function.endswith("limit") else ROW | named | {"seconds": 1.0}

    def run(self, *words, cache="trials"):
        return "", 20.0


def test_every_part_becomes_a_section(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "Processes", Scripted)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)
    for words in (["--parts", "kernels", "throughput"], ["--seeds", "4"]):
        monkeypatch.setattr(sys, "argv", ["benchmarks", "--out", str(tmp_path), *words])
        command.main()
    text = (tmp_path / "speed.md").read_text()
    assert text == capsys.readouterr().out[-len(text) - 1 : -1]
    assert text.startswith("# Speed\n\nMade by `python -m benchmarks --out ")
    assert text.count("\n## ") == len(command.PARTS) == len([*tmp_path.glob("*.json")])
    eager = "| PyTorch, eager | 9.00 (9.00–9.00) | 4.00 (4.00–4.00) | "
    assert eager in text and " | – | – | 1.000 |" in text and "limit: the same" in text
    assert "- mean test NLLs agree within 0.03: they span 0.000" in text


def test_a_way_that_does_another_job_is_told():
    trial = {"work": 9, "gflop": 5.0, "limit": 100.0, "seconds": 1.0, "compiling": 1.0}
    harder = [trial | {"repeat": repeat, "nll": 0.2 + 0.2 * repeat} for repeat in range(3)]
    ours = [row | {"way": "pgeom"} for row in harder]
    others = [row | {"way": "JAX"} for row in harder]
    agreed = section(training.THROUGHPUT, [*others, *ours])
    assert "test NLLs agree within 0.03: they span 0.000" in agreed
    fewer = section(training.THROUGHPUT, [others[0], *ours])
    assert "test NLLs DO NOT agree within 0.03: they span 0.200" in fewer


@pytest.mark.parametrize("words", [["grwth"], ["growth", "--seeds", "0"]])
def test_bad_input_is_refused(words, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--parts", *words])
    with pytest.raises(SystemExit, match="2"):
        command.main()
