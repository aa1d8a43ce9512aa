"""What is missing of a study is divided among programs, planned, trained and written."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import jax
import numpy as np
import pytest
from rich.console import Console

from experiments import noise
from experiments.engine import devices
from experiments.engine.cells import prepare
from experiments.engine.command import Command
from experiments.engine.options import Options, make_study
from experiments.engine.store import Store
from experiments.engine.training import GIB, divide, find_missing, plan, train_missing
from experiments.shell.errors import UsageError
from pgeom.training.trainer import compile_programs, memory_bounds

REGIMES = ("clean", "long-tail-2", "symmetric-20", "long-tail-10")
JOB = {"dataset": "breast-cancer", "regimes": ("clean",), "losses": ("ce",)}


def make(*regimes, losses=("ce",), seeds=2):
    options = Options(seeds=(str(seeds),), epochs=1)
    return make_study("test", options, "breast-cancer", regimes=regimes, losses=losses)


def train(study, folder):
    train_missing(study, Store(folder), 2, Console(quiet=True))
    return {key: record["nll"] for key, record in Store(folder).records.items()}


def test_parts_have_cells_of_one_size_and_are_the_whole(tmp_path):
    study = make(*REGIMES)
    missing = find_missing(study, Store(tmp_path))
    parts = divide(study, missing)
    assert [len(cells) for _, cells in parts] == [4, 2, 2]
    assert {cell for _, cells in parts for cell in cells} == set(missing) == set(study.cells)
    for part, cells in parts:
        compiled = plan(part, cells, 1, None).cell
        assert {prepare(part, cell).data.arrays.y.shape for cell in cells} == {compiled.y.shape}


def test_regimes_of_several_sizes_give_the_runs_that_each_gives_alone(tmp_path):
    together = train(make(*REGIMES[:2]), tmp_path / "together")
    alone = train(make(REGIMES[0]), tmp_path / "alone")
    alone |= train(make(REGIMES[1]), tmp_path / "alone")
    assert together == alone and len(together) == 4
    assert np.ptp(list(together.values())) > 0


def test_of_a_timed_study_each_size_times_the_losses_that_it_misses(tmp_path):
    def timed(*names, losses):
        train(replace(make(*names, losses=losses), timed=True), tmp_path)

    timed(*REGIMES[:2], losses=("ce",))
    timed(REGIMES[0], losses=("ce", "brier"))
    timed(*REGIMES[:2], losses=("ce", "brier"))
    lines = list(Store(tmp_path).records.values())
    found = {(line["regime"], line["loss"], line["seed"]) for line in lines}
    assert len(lines) == len(found) == 2 * 2 * 2
    assert all(line["seconds"] > 0 for line in lines)


def test_memory_below_one_cell_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(UsageError, match=r"--memory must be at least 0\.0\d+ GiB, .*got 1e-06"):
        noise.main(**JOB, out=tmp_path / "out", common=Options(epochs=2, memory=1e-6))
    assert not (tmp_path / "out").exists()


def test_the_need_of_a_cell_is_an_upper_bound(tmp_path):
    study = make("clean", seeds=9)
    settings = plan(study, find_missing(study, Store(tmp_path)), 1, None)
    stats = compile_programs(settings).epoch.memory_analysis()
    used = stats.argument_size_in_bytes + stats.temp_size_in_bytes + stats.output_size_in_bytes
    bound = sum(memory_bounds(settings))
    assert 0.3 * bound < used - stats.alias_size_in_bytes < bound


def test_an_accelerator_takes_as_many_cells_as_fit(tmp_path, monkeypatch):
    study = make("clean", seeds=9)
    cells = find_missing(study, Store(tmp_path))
    on_cpu = plan(study, cells, 2, None)
    assert on_cpu.cells_per_device == 1 and not on_cpu.batched
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert plan(study, cells, 2, None).cells == 10
    fitting = []
    for memory in (0.005, 0.009, 0.016):
        settings = plan(study, cells, 2, memory)
        taken = settings.cells_per_device
        features, need = memory_bounds(settings)
        room = memory * GIB / 2 - features
        assert settings.batched and taken * need <= room < (taken + 1) * need
        fitting.append(taken)
    assert all(fewer < more for fewer, more in pairwise(fitting))


def start(process: int, port: int, out, cache):
    """One of two processes, in an environment as Slurm would give it."""
    slurm = {"JOB_ID": 1, "STEP_NODELIST": "localhost", "NTASKS": 2}
    slurm |= {"PROCID": process, "LOCALID": process}
    environment = {f"SLURM_{name}": str(value) for name, value in slurm.items()}
    environment["JAX_COORDINATOR_ADDRESS"] = f"127.0.0.1:{port}"
    environment |= {"XDG_CACHE_HOME": str(cache), "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    words = "--dataset breast-cancer --regimes clean --losses ce --seeds 3 --epochs 2"
    command = [sys.executable, "-m", "experiments.noise", *words.split(), "--json", "--distributed"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(
        [*command, "--out", str(out)], env={**os.environ, **environment}, **pipes
    )


def test_two_processes_leave_the_records_of_one(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    primary, other = (start(n, port, tmp_path / f"{n}", tmp_path / "cache") for n in (0, 1))
    try:
        table, said = primary.communicate(timeout=240)
        silent, trouble = other.communicate(timeout=60)
    finally:
        primary.kill()
        other.kill()
    assert primary.returncode == 0, said
    assert other.returncode == 0, trouble
    assert json.loads(table)[0]["loss"] == "ce" and silent == ""
    assert not (tmp_path / "1").exists()  # only the primary process writes
    noise.main(**JOB, out=tmp_path / "one", common=Options(seeds=("3",), epochs=2))
    shared, alone = (
        {record["seed"]: record for record in Store(tmp_path / name).records.values()}
        for name in ("0", "one")
    )
    assert shared.keys() == alone.keys() == {0, 1, 2}  # and no cell that fills up a group
    for seed, record in alone.items():
        np.testing.assert_allclose(shared[seed]["nll"], record["nll"], atol=1e-3)
        np.testing.assert_allclose(shared[seed]["validation_nll"], record["validation_nll"], 1e-4)


def test_a_launcher_is_needed(tmp_path, monkeypatch):
    def nobody(**_):
        raise ValueError("coordinator_address should be defined.")

    monkeypatch.setattr(jax.distributed, "initialize", nobody)
    with pytest.raises(UsageError, match=r"--distributed needs a launcher .*: coordinator_address"):
        Command(Options(distributed=True), tmp_path)
    with pytest.raises(UsageError, match="give no --devices"):
        Command(Options(distributed=True, devices=1), tmp_path)


@pytest.mark.parametrize(("number", "bound"), [(0, "at least 1"), (4096, "at most 2, all there")])
def test_a_number_of_devices_that_cannot_be(number, bound, monkeypatch):
    monkeypatch.undo()  # the devices of the tests
    monkeypatch.setattr(devices, "use_cache", lambda min_seconds: None)
    monkeypatch.setenv("XLA_FLAGS", "")
    with jax.enable_x64(False), pytest.raises(UsageError, match=f"^--devices must be {bound}"):
        devices.prepare_devices(number)
