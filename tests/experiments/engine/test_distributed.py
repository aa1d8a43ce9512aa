"""Several processes as one machine, and a budget of memory."""

import json
import os
import socket
import subprocess
import sys
from itertools import pairwise

import jax
import numpy as np
import pytest
from rich.console import Console

from experiments import noise
from experiments.engine import jobs
from experiments.engine.command import Command
from experiments.engine.jobs import find_missing
from experiments.engine.options import Options, make_study
from experiments.engine.store import Store
from experiments.shell.errors import UsageError
from pgeom.training.trainer import compile_programs, memory_bounds

JOB = {"dataset": "breast-cancer", "regimes": ("clean",), "losses": ("ce",)}
COMMAND = [sys.executable, "-m", "experiments.noise", "--dataset", "breast-cancer", "--regimes"]
COMMAND += ["clean", "--losses", "ce", "--seeds", "3", "--epochs", "2", "--json", "--distributed"]


def started(process: int, port: int, out, cache):
    """One of two processes, in an environment as Slurm would give it."""
    slurm = {"JOB_ID": 1, "STEP_NODELIST": "localhost", "NTASKS": 2}
    slurm |= {"PROCID": process, "LOCALID": process}
    environment = {f"SLURM_{name}": str(value) for name, value in slurm.items()}
    environment["JAX_COORDINATOR_ADDRESS"] = f"127.0.0.1:{port}"
    environment |= {"XDG_CACHE_HOME": str(cache), "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [*COMMAND, "--out", str(out)]
    return subprocess.Popen(command, env={**os.environ, **environment}, **pipes)


def records_in(folder):
    return {record["seed"]: record for record in Store(folder).records.values()}


def test_two_processes_leave_the_records_of_one(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    primary, other = (started(n, port, tmp_path / f"{n}", tmp_path / "cache") for n in (0, 1))
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
    shared, alone = records_in(tmp_path / "0"), records_in(tmp_path / "one")
    assert shared.keys() == alone.keys() == {0, 1, 2}  # and no member that fills up a crew
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


def test_a_budget_below_one_member_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(UsageError, match=r"--memory must be at least 0\.0\d+ GiB, .*got 1e-06"):
        noise.main(**JOB, out=tmp_path / "out", common=Options(epochs=2, memory=1e-6))
    assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError, match="--memory must be positive, got -1"):
        noise.main(**JOB, out=tmp_path / "out", common=Options(memory=-1.0))


@pytest.fixture
def job(tmp_path):
    """Nine cells of one loss, none of them trained."""
    options = Options(seeds=("9",))
    study = make_study("test", options, "breast-cancer", regimes=("clean",), losses=("ce",))
    return find_missing(study, Store(tmp_path))


def test_the_need_of_a_cell_is_an_upper_bound(job):
    (settings,) = jobs.plan_programs(job, jobs.Machine(1, Console()))
    stats = compile_programs(settings).epoch.memory_analysis()
    used = stats.argument_size_in_bytes + stats.temp_size_in_bytes + stats.output_size_in_bytes
    bound = sum(memory_bounds(settings))
    assert 0.3 * bound < used - stats.alias_size_in_bytes < bound


def test_an_accelerator_takes_as_many_cells_as_fit(job, monkeypatch):
    def plan(memory=None):
        (settings,) = jobs.plan_programs(job, jobs.Machine(2, Console(), memory))
        return settings

    assert plan().cells_per_device == 1 and not plan().batched
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert plan().cells == 10
    fitting = []
    for memory in (0.005, 0.009, 0.016):
        settings = plan(memory)
        cells = settings.cells_per_device
        features, need = memory_bounds(settings)
        room = memory * jobs.GIB / 2 - features
        assert settings.batched and cells * need <= room < (cells + 1) * need
        fitting.append(cells)
    assert all(fewer < more for fewer, more in pairwise(fitting))
