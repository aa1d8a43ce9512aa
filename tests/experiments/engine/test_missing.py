"""What is missing of a study, in parts that one program can train."""

from dataclasses import replace

import numpy as np
from rich.console import Console

from experiments.engine import jobs
from experiments.engine.jobs import find_missing
from experiments.engine.options import Options, make_study
from experiments.engine.store import Store

REGIMES = ("clean", "long-tail-2", "symmetric-20", "long-tail-10")


def study_of(*names, losses=("ce",)):
    options = Options(seeds=("2",), epochs=1)
    return make_study("test", options, "breast-cancer", regimes=names, losses=losses)


def train(study, folder):
    jobs.train_missing(study, Store(folder), jobs.Machine(2, Console(quiet=True)))
    return {key: record["nll"] for key, record in Store(folder).records.items()}


def test_parts_have_members_of_one_size_and_are_the_whole(tmp_path):
    job = find_missing(study_of(*REGIMES), Store(tmp_path))
    parts = job.by_size()
    together = [cell for part in parts for cell in part.cells]
    assert len(together) == len(job.cells) and set(together) == set(job.cells)
    for part in parts:
        compiled = part.settings(devices=1).cell
        assert {one.data.arrays.y.shape for one in part.prepare(0, 8)} == {compiled.y.shape}
    assert [len(part.cells) for part in parts] == [4, 2, 2]


def test_regimes_of_several_sizes_give_the_runs_that_each_gives_alone(tmp_path):
    together = train(study_of(*REGIMES[:2]), tmp_path / "together")
    alone = train(study_of(REGIMES[0]), tmp_path / "alone")
    alone |= train(study_of(REGIMES[1]), tmp_path / "alone")
    assert together == alone and len(together) == 4
    assert np.ptp(list(together.values())) > 0


def test_of_a_timed_study_each_size_times_the_losses_that_it_misses(tmp_path):
    def timed(*names, losses):
        train(replace(study_of(*names, losses=losses), timed=True), tmp_path)

    timed(*REGIMES[:2], losses=("ce",))
    timed(REGIMES[0], losses=("ce", "brier"))
    timed(*REGIMES[:2], losses=("ce", "brier"))
    lines = list(Store(tmp_path).records.values())
    found = {(line["regime"], line["loss"], line["seed"]) for line in lines}
    assert len(lines) == len(found) == 2 * 2 * 2
    assert all(line["seconds"] > 0 for line in lines)
