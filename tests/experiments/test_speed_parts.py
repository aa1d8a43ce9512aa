"""The parts of the speed study beside the digits job, each with tiny settings."""

import itertools
import json
import math

import jax
import numpy as np
import pytest

from experiments.engine import devices
from experiments.speed import estimator, jax_contenders, prepare, scale, scale_model, this_machine
from experiments.speed.job import read
from experiments.speed.scale_model import HostLoop, Part
from pgeom.data import sources
from pgeom.data.dataset import from_arrays


@pytest.fixture(scope="module")
def image_job(tmp_path_factory):
    """A job of bright squares, whose place says the class."""
    labels = np.arange(200) % 10
    pixels = np.random.default_rng(0).uniform(size=(200, 28, 28)) / 3
    for image, label in zip(pixels, labels, strict=True):
        row, column = divmod(label, 4)
        image[8 * row : 8 * row + 8, 7 * column : 7 * column + 7] += 0.6
    squares = from_arrays("squares", pixels.reshape(200, -1), labels, image_shape=(28, 28))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "some_images", lambda count: squares)
        path = tmp_path_factory.mktemp("images") / "job.npz"
        job = prepare.images_job(120, 2, 6)._replace(batch_size=24)
        prepare.write_job(path, job)
        yield path


def test_a_job_of_images_has_as_many_for_training_as_are_asked_for():
    assert prepare.images_job(10_000, 2, 9).images == 16_667
    assert 16_667 - math.ceil(0.4 * 16_667) == 10_000  # as a split rounds


def test_convolutions_of_flax_train(image_job):
    lap = jax_contenders.flax_convolution(read(image_job)[0]._replace(epochs=2))
    assert 0 < lap.nll < 2.3 and lap.seconds > 0


def test_flax_s_network_computes_what_pgeom_s_does():
    ours = prepare.CNN((28, 28), 10)
    theirs = jax_contenders.ConvolutionalNetwork(10, ours.hidden, ours.dropout)
    parameters = ours.layers(ours.initial(np.random.default_rng(0)))
    names = ("Conv_0", "Conv_1", "Dense_0", "Dense_1")
    layers = {
        name: {"kernel": kernel, "bias": bias}
        for name, (kernel, bias) in zip(names, parameters, strict=True)
    }
    for name, depth in (("Conv_0", 1), ("Conv_1", ours.channels[0])):
        layers[name]["kernel"] = layers[name]["kernel"].reshape(3, 3, depth, -1)
    x = np.random.default_rng(1).normal(size=(3, 784)).astype(np.float32)
    expected = ours.logits(ours.initial(np.random.default_rng(0)), x)
    found = theirs.apply({"params": layers}, x.reshape(3, 28, 28), train=False)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", ["first", "last"])
def test_convolutions_of_pytorch_learn(order, image_job, monkeypatch):
    pytest.importorskip("torch", reason="PyTorch is of the bench extra")
    from experiments.speed import torch_contenders, torch_images

    def in_this_process(train, parts):
        return [nll for part in parts for nll in train(*part)]

    monkeypatch.setattr(torch_images, "spread", in_this_process)
    assert all(0 < nll < 1.5 for nll in torch_images.convolutional(*read(image_job), order))
    assert torch_contenders.spread is not in_this_process


def test_what_is_compiled_is_compared_with_what_is_not(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch", reason="PyTorch is of the bench extra")
    from experiments.speed import torch_trial

    asked = []
    monkeypatch.setattr(torch, "compile", lambda f, dynamic: asked.append(dynamic) or f)
    threads = torch.get_num_threads()
    job = prepare.digits_job(("clean",), 1, 1, losses=("ce",))
    prepare.write_job(tmp_path / "job.npz", job)
    found = torch_trial.trial(*read(tmp_path / "job.npz"), epochs=1)
    torch.set_num_threads(threads)
    assert set(found) == {"eager, ce", "batched, ce"} and asked == [False, False]
    assert all(row["ratio"] > 0 and row["compiling"] > 0 for row in found.values())


def test_both_estimators_train_equally_long():
    rows = [estimator.row("wine", way, epochs=3) for way in estimator.WAYS.values()]
    for row in rows:
        assert (row["examples"], row["features"], row["epochs"]) == (143, 13, 3)
        assert row["first"] > 0 and row["second"] > 0 and row["accuracy"] > 0.3
    assert estimator.load("synthetic")[0].shape == (10_000, 50)


@pytest.fixture
def one_dataset(monkeypatch):
    monkeypatch.setattr(sources, "PAPER", ("breast-cancer",))


def test_the_parts_of_a_job_are_measured(one_dataset):
    (row,) = json.loads(json.dumps(scale.measure_parts(1, losses=("ce",))))
    part = Part(**row)
    assert (part.dataset, part.cells, part.devices, part.losses) == ("breast-cancer", 3, 2, 1)
    assert min(part.compiling, part.group, part.host) > 0 and 13 <= part.calls <= 46


def test_the_host_loop_and_a_checked_run(one_dataset):
    loops = scale.measure_mesh(2, calls=3)
    assert [row["devices"] for row in loops] == [1, 2] and all(row["call"] > 0 for row in loops)
    checked = scale.check(1, losses=("ce",))
    assert (checked["runs"], checked["seeds"], checked["devices"]) == (3, 1, 2)
    assert checked["seconds"] > 0 and jax.device_count() == 2 == devices.prepare_devices(None)


def test_the_paper_s_cells_are_eleven():
    assert sum(len(study.regimes) for study in scale.make_studies(1)) == 11


def part(**changes):
    sizes = {"dataset": "digits", "cells": 3, "devices": 2, "losses": 13}
    return Part(**sizes | {"compiling": 7.0, "group": 2.0, "host": 0.25, "calls": 10} | changes)


def test_devices_wait_for_the_host_only_where_it_is_slower():
    loop = HostLoop(fixed=0.01, per_device=0.001)
    few, many = (scale_model.predict([part()], loop, 100, devices) for devices in (3, 100))
    longer = 10 * (loop.call(3) - loop.call(2))
    assert few.total == pytest.approx(7 + 100 * (2.25 + longer))
    assert few.host == pytest.approx(100 * (3 * 0.25 + 10 * loop.call(3)))
    assert many.total == pytest.approx(7 + 3 * (100 * 0.25 + 10 * loop.call(100)))
    assert few.compiling == many.compiling == 7 and many.host == pytest.approx(many.total - 7)


def test_the_limit_is_where_host_and_devices_are_equal():
    loop, parts = HostLoop(0.01, 0.001), [part(), part(cells=1, dataset="wine")]
    limit = scale_model.host_limit(parts, loop)
    costs = [scale_model.predict(parts, loop, 100_000, devices) for devices in (limit - 1, limit)]
    busy = [cost.host / (cost.total - cost.compiling) for cost in costs]
    assert busy[0] < 1 and busy[1] == pytest.approx(1)
    assert scale_model.host_limit([part(host=0.0, calls=0)], loop) is None


def test_a_host_loop_is_the_line_through_its_calls():
    loop = scale_model.fit_host_loop((1, 2, 4, 8), [3.0 + 0.5 * n for n in (1, 2, 4, 8)])
    assert loop == pytest.approx((3.0, 0.5))
    assert scale_model.fit_host_loop((1, 2), (2.0, 1.0)).per_device == 0


@pytest.mark.parametrize(
    ("flags", "name"),
    [("avx avx2 avx512f", "AVX-512"), ("avx avx2", "AVX2"), ("asimd", "NEON"), ("", "no vector")],
)
def test_the_widest_instructions_are_named(flags, name):
    for order in itertools.permutations(flags.split()):
        assert this_machine.instruction_set(set(order)).startswith(name)
    assert " cores of " in this_machine.describe_machine()
