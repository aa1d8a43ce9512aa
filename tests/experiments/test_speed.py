"""The speed study: contenders that do one job, what counts as work, and its tables."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

from experiments.shell.errors import UsageError
from experiments.show.tables import to_markdown
from experiments.speed import (
    __main__ as speed,
    first,
    grids,
    jax_contenders,
    kernels,
    limit,
    prepare,
    workshop,
)
from experiments.speed.growth import growth
from experiments.speed.job import Lap, read
from experiments.speed.memory import peak_bytes
from experiments.speed.parts import PARTS
from pgeom.data import images
from pgeom.losses import catalogue, structured
from pgeom.models.model import MLP
from pgeom.types import ClassStats

TINY = {"seeds": 2, "epochs": 4, "losses": ("ce", "hpg")}


@pytest.fixture(scope="module")
def job_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("job") / "job.npz"
    prepare.write_job(path, prepare.digits_job(("clean",), **TINY))
    return path


def test_a_job_survives_its_file(job_file):
    job, stack, ridges = read(job_file)
    assert job == prepare.digits_job(("clean",), **TINY) and job.runs == 4
    assert stack.x.shape == (2, 1078, 64) and stack.capm.shape == (2, 10, 10)
    np.testing.assert_array_equal(ridges.w, structured.hpg_generator(10).w)


def test_the_useful_work_of_an_epoch():
    shapes = prepare.products(MLP(64, 10), 1078, 359, 512)
    layers = 64 * 96 + 96 * 96 + 96 * 10
    backward = 2 * layers - 64 * 96  # no gradient in the inputs
    assert prepare.flop(shapes) == 2 * (1078 * (layers + backward) + 359 * layers)
    assert prepare.flop([(2, 3, 5)]) == 60


def test_both_ways_in_jax_do_one_job(job_file):
    job, stack, ridges = read(job_file)
    usual, ours = jax_contenders.one_loss(job, stack, ridges), jax_contenders.trainer(job)
    for lap in (usual, ours):
        assert lap.seconds > 0 and lap.compiling > 0
    # two runs per loss from different initial weights: as close as four epochs let them
    assert abs(usual.nll - ours.nll) < 0.15 and 0.5 < ours.nll < 2.3


def test_the_host_s_nll_is_that_of_the_losses():
    logits = np.random.default_rng(0).normal(size=(3, 7, 4)).astype(np.float32)
    labels = np.arange(7) % 4
    expected = -jax.nn.log_softmax(logits)[:, np.arange(7), labels].mean(axis=1)
    np.testing.assert_allclose(jax_contenders._nll(logits, labels), expected, rtol=1e-5)


def test_the_losses_in_pytorch_are_the_catalogue_s():
    torch = pytest.importorskip("torch", reason="PyTorch is of the bench extra")
    from experiments.speed.torch_losses import LOSSES, Context

    assert tuple(LOSSES) == tuple(catalogue.GENERAL)
    rng = np.random.default_rng(0)
    logits = (2 * rng.standard_normal((30, 10))).astype(np.float32)
    labels = np.arange(30, dtype=np.int32) % 10
    centroids = rng.standard_normal((10, 5)).astype(np.float32)
    stats = ClassStats(np.arange(20.0, 30.0, dtype=np.float32), centroids)
    matrix = torch.as_tensor(np.array(structured.capm_generator(stats).A))
    F = structured.hpg_generator(10)
    ridges = tuple(torch.as_tensor(np.array(part)) for part in (F.lam, F.a, F.rho, F.w, F.b))
    context = Context(matrix, (*ridges, torch.tensor(float(F.scale))), catalogue.MARGIN, 0.1)
    for name, loss in LOSSES.items():
        found = loss(torch.as_tensor(logits), torch.as_tensor(labels).long(), context)
        expected = catalogue.GENERAL[name].build(stats, 0.5)(logits, labels)
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-5, err_msg=name)


def test_the_contenders_in_pytorch_learn(job_file):
    pytest.importorskip("torch", reason="PyTorch is of the bench extra")
    from experiments.speed import torch_contenders

    job = read(job_file)
    both = [way(*job) for way in (torch_contenders.eager, torch_contenders.batched)]
    assert all(0.5 < lap.nll < 2.3 and lap.seconds > 0 for lap in both)
    assert abs(both[0].nll - both[1].nll) < 0.15


def test_the_limit_is_a_rate(job_file, monkeypatch):
    monkeypatch.setattr(limit, "REPEATS", 2)
    monkeypatch.setattr(limit, "products", lambda *sizes: [(32, 8, 16), (32, 8, 16)])
    assert 0.001 < limit.limit(*read(job_file)[:2]) < 10_000


def test_fenchel_young_losses_are_measured_beside_cross_entropy():
    losses = kernels.fenchel_young_losses(10)
    names = ("Shannon", "squared norm", "Tsallis 1.5", "hyperbolic, R = 4", "quadratic")
    assert [*losses] == [kernels.REFERENCE, *(f"Fenchel–Young, {name}" for name in names)]
    some = {name: losses[name] for name in [*losses][:3]}
    rows = kernels.measure(10, 4, repeats=1, make=lambda K: some)
    assert [row["score"] for row in rows] == [*some] and rows[2]["bytes"] > 0


def test_kernels_have_a_reference_and_need_memory_linear_in_the_classes():
    small, large = (kernels.measure(K, 4, repeats=2) for K in (1_001, 8_008))
    assert small[0]["score"] == kernels.REFERENCE and small[0]["ratio"] == 1
    assert all(row["milliseconds"] > 0 for row in small)
    for few, many in zip(small[1:], large[1:], strict=True):
        assert many["bytes"] < 9 * few["bytes"], few["score"]


FIT = {"examples": 143, "features": 13, "epochs": 45, "accuracy": 0.97}
PART = {"dataset": "digits", "cells": 4, "devices": 2, "losses": 13}
PART |= {"compiling": 6.0, "group": 1.0, "host": 0.02, "calls": 40.0}


def answer(module, *arguments):
    """What a module of the study prints."""
    match module, *arguments:
        case "kernels", *_:
            return kernels.measure(10, 4, repeats=1)
        case "first", *_:
            return first.rows(classes=(3,), commands=("experiments.noise --datset x",))
        case "torch_trial", *_:
            ratios = {"eager, ce": 0.5, "eager, hpg": 0.9, "batched, ce": 1.2}
            return {way: {"ratio": ratio, "compiling": 7.0} for way, ratio in ratios.items()}
        case "estimator", dataset, way, _:
            seconds = (
                {"first": 4.0, "second": 0.1} if way == "ours" else {"first": 1, "second": 0.3}
            )
            return {"dataset": dataset, "way": way, **FIT, **seconds}
        case "scale", "parts", _:
            return [PART]
        case "scale", "mesh", _:
            return [{"devices": 2**k, "call": 1e-4 * (1 + 2**k)} for k in range(4)]
        case "scale", "check", seeds:
            return {"seeds": seeds, "runs": 2600, "devices": 2, "seconds": 118.0}
    raise AssertionError(module)


class Scripted(workshop.Workshop):
    """A workshop of which every process is quick, and answers as told."""

    def lap(self, contender, job, *arguments):
        seconds = {workshop.OURS: 1.0}.get(contender, 4.0) / (arguments or (2,))[0]
        return Lap(seconds, 3.0, 0.5, 2**30), seconds + 5

    def run(self, module, *arguments, cache="cache"):
        name = module.removeprefix("experiments.speed.")
        if name in ("limit", "experiments.noise"):
            return "100.0", 20.0 if "warm" in str(arguments[-1]) else 40.0
        return json.dumps(answer(name, *arguments)), 1.0

    def job_file(self, job):
        return Path("job.npz")


def test_every_part_becomes_a_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(workshop, "Workshop", Scripted)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)
    monkeypatch.setattr(images, "find_fashion", lambda: tmp_path)
    page = tmp_path / "docs" / "speed.md"
    assert speed.main(out=tmp_path, seeds=20, page=page, json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert tuple(told) == speed.NAMES == tuple(PARTS)
    throughput = to_markdown(grids.throughput(pd.DataFrame(told["throughput"])))
    assert "| PyTorch, eager | 130.00 (130.00–130.00) | 4.00 (4.00–4.00) |" in throughput
    # torch.compile makes the stack faster, so that it runs, and not the other
    assert "| PyTorch, batched and compiled | " in throughput
    assert "PyTorch, compiled" not in throughput and "eager, hpg 0.90" in throughput
    assert "agree within 0.03: they span 0.000" in throughput
    end_to_end = to_markdown(grids.end_to_end(pd.DataFrame(told["end-to-end"])))
    assert "10 seeds, 520 runs, warm cache | 20.0 | 7.0 | 0.35 |" in end_to_end
    sizes = [row["value"] for row in told["growth"]]
    assert sizes == [*(5, 20, 100, 1, 4, 13, 1, 2, 96, 384), *(5, 20, 1, 4, 13, 1, 2, 96)]
    waited = to_markdown(grids.first(pd.DataFrame(told["first"])))
    assert "| diagnose Σp³, K = 3 | " in waited
    assert all(row["first"] > 0 and row["peak_gib"] > 0 for row in told["first"])
    written = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert written == {"speed.md", "speed.json", "growth.png", "growth.pdf", "growth.svg"}
    check_page(page.read_text())
    assert page.with_name("growth.png").stat().st_size > 5_000


def check_page(text):
    """Every table is on the page, with what the model says."""
    assert text.startswith("# Speed\n\nMade by `a call from Python` on ")
    assert text.count("\n## ") == len(PARTS) and "![growth](growth.png)" in text
    assert "| flax.linen.Conv in the trainer | " in text and "the fastest PyTorch here" in text
    assert "| wine, 143 × 13 | 1.00 | 4.00 | 3.00 | 0.30 | 0.10 | 3.00 (3.00–3.00) |" in text
    # 4,000 members: 2,000 groups of 1.02 s and 6 s of compiling on two devices
    assert "| 2 | 0.57 | 6 | " in text and "118 s, 1.09 times the 108 s of the model" in text


def test_a_run_resumes_with_the_parts_that_are_finished(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(workshop, "Workshop", Scripted)
    asked = []
    monkeypatch.setattr(Scripted, "run", lambda *call, **_: asked.append(call[1]) or ("[]", 1.0))
    monkeypatch.setattr(speed, "_report", lambda *_: True)
    options = {"parts": ("kernels",), "out": tmp_path}
    for changed in ({}, {"resume": True}, {"resume": True, "epochs": 3}, {"epochs": 3}):
        speed.main(**options, **changed)
    assert len(asked) == 3  # all but the second


def test_the_peak_of_a_process_is_not_that_of_its_parent():
    ballast = np.ones(2**26)  # half a GiB, all of it touched
    code = "from experiments.speed.memory import peak_bytes; print(peak_bytes())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 2**22 < int(done.stdout) < ballast.nbytes <= peak_bytes()


def test_a_job_done_differently_is_told():
    shared = {"contender": "pgeom"}
    ours = [{**shared, "regime": "x", "nll": 0.5}, {**shared, "regime": "y", "nll": 0.9}]
    for nll, told in ((0.52, "agree within 0.03: they span 0.020"), (0.54, "DO NOT agree")):
        rows = pd.DataFrame([*ours, {"contender": "b", "regime": "x", "nll": nll}])
        assert told in grids.describe_agreement(rows)
        assert grids.agree(rows) == (nll < 0.53)


def test_bad_input_is_one_line(tmp_path, monkeypatch):
    def error(**options):
        with pytest.raises(UsageError) as told:
            speed.main(out=tmp_path, **options)
        return str(told.value)

    assert "did you mean 'growth'" in error(parts=("grwth",))
    assert error(seeds=0) == "--seeds must be at least 1, got 0"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install -e '.[bench]'" in error(parts=("throughput",))
    assert error(check_seeds=0) == "--check-seeds must be at least 1, got 0"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)
    monkeypatch.setattr(images, "SYSTEM_FOLDERS", ())
    monkeypatch.delenv(images.FOLDER_VARIABLE, raising=False)
    missing = error(parts=("images",))
    assert missing.startswith("--parts images: fashion-mnist is not on this machine")


def test_the_figure_of_growth(tmp_path):
    rows = [
        {"what": what, "value": value, "seconds_per_run": 0.1, "gflops": 50.0}
        for what, values in {"seeds": (5, 20), "losses": (1, 4), "devices": (1, 2)}.items()
        for value in values
    ]
    paths = growth(pd.DataFrame(rows), tmp_path / "growth")
    assert {path.suffix for path in paths} == {".png", ".pdf", ".svg"}
