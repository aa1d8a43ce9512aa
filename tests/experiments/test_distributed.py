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

from experiments import cli, jobs, noise
from experiments.cells import Cell, network_for, prepare
from experiments.protocol import Training, UsageError
from pgeom.losses import catalogue
from pgeom.training.crew import Setup, member_bytes, sizes_of
from pgeom.training.trainer import compile_programs

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
    lines = (folder / "records.jsonl").read_text().splitlines()
    return {line["seed"]: line for line in map(json.loads, lines)}


def test_two_processes_leave_the_records_of_one(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    leader, follower = (started(n, port, tmp_path / f"{n}", tmp_path / "cache") for n in (0, 1))
    try:
        table, said = leader.communicate(timeout=240)
        silent, trouble = follower.communicate(timeout=60)
    finally:
        leader.kill()
        follower.kill()
    assert leader.returncode == 0, said
    assert follower.returncode == 0, trouble
    assert json.loads(table)[0]["loss"] == "ce" and silent == ""
    assert not (tmp_path / "1").exists()  # only the leading process writes
    noise.main(**JOB, out=tmp_path / "one", common=cli.Options(seeds=("3",), epochs=2))
    shared, alone = records_in(tmp_path / "0"), records_in(tmp_path / "one")
    assert shared.keys() == alone.keys() == {0, 1, 2}  # and no member that fills up a crew
    for seed, record in alone.items():
        np.testing.assert_allclose(shared[seed]["nll"], record["nll"], atol=1e-3)
        np.testing.assert_allclose(shared[seed]["validation_nll"], record["validation_nll"], 1e-4)


def test_a_launcher_is_needed(tmp_path, monkeypatch):
    def nobody():
        raise ValueError("coordinator_address should be defined.")

    monkeypatch.setattr(jax.distributed, "initialize", nobody)
    with pytest.raises(UsageError, match=r"--distributed needs a launcher .*: coordinator_address"):
        cli.begin(cli.Options(distributed=True), tmp_path)
    with pytest.raises(UsageError, match="give no --devices"):
        cli.begin(cli.Options(distributed=True, devices=1), tmp_path)


def test_a_budget_below_one_member_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(UsageError, match=r"--memory must be at least 0\.0\d+ GiB, .*got 1e-06"):
        noise.main(**JOB, out=tmp_path / "out", common=cli.Options(epochs=2, memory=1e-6))
    assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError, match="--memory must be positive, got -1"):
        noise.main(**JOB, out=tmp_path / "out", common=cli.Options(memory=-1.0))


def test_the_need_of_a_member_is_an_upper_estimate():
    task = prepare(Cell("breast-cancer", "clean", 0), Training()).training
    network, sizes = network_for("breast-cancer"), sizes_of(task)
    setup = Setup(network, (catalogue.GENERAL["ce"],), 512, devices=1)
    told = compile_programs(setup, sizes).epoch.memory_analysis()
    used = told.argument_size_in_bytes + told.temp_size_in_bytes + told.output_size_in_bytes
    assert 0.3 * member_bytes(setup, sizes) < used - told.alias_size_in_bytes
    assert used - told.alias_size_in_bytes < member_bytes(setup, sizes)


def test_an_accelerator_takes_as_many_members_as_fit(monkeypatch):
    missing = [Cell("breast-cancer", "clean", seed) for seed in range(9)]
    sizes = sizes_of(prepare(missing[0], Training()).training)
    builders = (catalogue.GENERAL["ce"],)
    machine = jobs.Machine(2, console=None)
    assert jobs.setup_of(missing, builders, Training(), machine, sizes).members == 1
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert jobs.setup_of(missing, builders, Training(), machine, sizes).crew == 10
    fitting = []
    for memory in (0.004, 0.008, 0.015):
        setup = jobs.setup_of(missing, builders, Training(), machine._replace(memory=memory), sizes)
        need = 2 * setup.members * member_bytes(setup, sizes) / jobs.GIB
        assert setup.together and need <= memory < need * (setup.members + 1) / setup.members
        fitting.append(setup.members)
    assert all(fewer < more for fewer, more in pairwise(fitting))
