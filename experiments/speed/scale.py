"""What the paper's cells cost with many more seeds, from parts that are measured here.

`python -m experiments.speed.scale parts 2` prints rows about the datasets: the seconds of
compiling, of training a group of members, one per device, and of the host's work for a member.
`mesh 8` prints rows about the host loop on simulated devices, and `check 50` trains so many seeds
and prints how long that took.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console

from experiments.engine import devices as machine
from experiments.engine.cells import prepare
from experiments.engine.identity import describe
from experiments.engine.store import Store
from experiments.engine.study import Study
from experiments.engine.training import plan, train_missing, write_cell
from pgeom.data import sources
from pgeom.losses.catalogue import GENERAL
from pgeom.models.model import MLP
from pgeom.training.trainer import compile_programs, fetch, place, share_features, train

CALLS = 50  # of which the median counts


def make_studies(seeds: int, losses: tuple[str, ...] = tuple(GENERAL)) -> list[Study]:
    """The paper's eleven cells by dataset, with the losses that all of them have."""
    specs = tuple(GENERAL[name] for name in losses)
    studies = []
    for dataset in map(sources.load, sources.PAPER):
        model = MLP(dataset.features.shape[1], dataset.num_classes)
        cells = (dataset, dataset.regimes, tuple(range(seeds)))
        studies.append(Study("scale", *cells, specs, model))
    return studies


def measure_parts(seeds: int, losses: tuple[str, ...] = tuple(GENERAL)) -> list[dict]:
    """A row per dataset: medians over its groups, with one member per device."""
    available = machine.prepare_devices(None)
    with tempfile.TemporaryDirectory() as folder:
        return [
            _measure(study, available, Store(Path(folder))) for study in make_studies(seeds, losses)
        ]


def _measure(study: Study, devices: int, store: Store) -> dict:
    training, cells = study.training, study.cells
    begun = time.perf_counter()
    programs = compile_programs(
        plan(study, dict.fromkeys(cells, np.ones(len(study.losses), bool)), devices, None)
    )
    compiling = time.perf_counter() - begun
    shared, rows = share_features(study.dataset.standardised, programs.sharding), []
    store.describe(describe(study))
    for first in range(0, len(cells), devices):
        begun = time.perf_counter()
        prepared = [prepare(study, cell) for cell in cells[first : first + devices]]
        ready = time.perf_counter()
        results = train(programs, shared, [one.data for one in prepared], training.epochs)
        trained = time.perf_counter()
        for one, result in zip(prepared, results, strict=True):
            write_cell(study, store, one, result, {})
        host = (ready - begun + time.perf_counter() - trained) / len(prepared)
        calls = max(int(result.stopped_epoch.max()) for result in results) + 1
        rows.append((trained - ready, host, calls))
    group, host, calls = map(float, np.median(rows, axis=0))
    timed = {"compiling": compiling, "group": group, "host": host, "calls": calls}
    what = {"dataset": study.dataset.name, "cells": len(study.regimes)}
    return {**what, "devices": devices, "losses": len(study.losses), **timed}


def measure_mesh(most: int, calls: int = CALLS) -> list[dict]:
    """The host loop per epoch on 1, 2, … `most` simulated devices, whose runs have all stopped."""
    machine.simulate_devices(most)
    rows = []
    (study, *_) = make_studies(most, losses=("ce",))
    stopped = dict.fromkeys(study.cells, np.zeros(1, bool))
    for devices in (2**power for power in range(most.bit_length())):
        programs, times = compile_programs(plan(study, stopped, devices, None)), []
        cells = [prepare(study, *item).data for item in list(stopped.items())[:devices]]
        shared = share_features(study.dataset.standardised, programs.sharding)
        arrays, runs, orders = place(cells, programs)
        for epoch in range(1, calls + 1):
            begun = time.perf_counter()
            runs, outcome = programs.epoch(shared, arrays, orders(epoch), runs)
            fetch(outcome[0])
            times.append(time.perf_counter() - begun)
        rows.append({"devices": devices, "call": float(np.median(times))})
    return rows


def check(seeds: int, losses: tuple[str, ...] = tuple(GENERAL)) -> dict:
    """The seconds that so many seeds of every cell take, compiling and writing included."""
    devices, console = machine.prepare_devices(None), Console(quiet=True)
    seconds = runs = 0
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        for study in make_studies(seeds, losses):
            begun = time.perf_counter()
            train_missing(study, store, devices, console)
            seconds, runs = seconds + time.perf_counter() - begun, runs + study.runs
    return {"seeds": seeds, "runs": runs, "devices": devices, "seconds": seconds}


if __name__ == "__main__":
    kind, count = sys.argv[1:]
    kinds = {"parts": measure_parts, "mesh": measure_mesh, "check": check}
    print(json.dumps(kinds[kind](int(count))))
