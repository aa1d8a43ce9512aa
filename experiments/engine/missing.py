"""What is missing of a study: the runs that have no record yet."""

from collections import defaultdict
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jax.experimental import multihost_utils
from jaxtyping import Array, Bool, Float

from experiments.engine.cells import PreparedCell, cell_stream, prepare
from experiments.engine.devices import describe_device
from experiments.engine.identity import identify
from experiments.engine.measures import Fields
from experiments.engine.scoring import make_records
from experiments.engine.store import Store
from experiments.engine.study import Cell, Study
from pgeom.data.regimes import KINDS
from pgeom.data.splits import split_rows
from pgeom.training.program import StaticSettings
from pgeom.training.trainer import Programs, Trained, share_features, static_settings


class Job(NamedTuple):
    """The missing part of a study: its cells, the losses that each needs, and how many devices."""

    study: Study
    store: Store
    cells: list[Cell]
    wanted: list[Bool[np.ndarray, " L"]]
    devices: int = 1

    @property
    def runs(self) -> int:
        return int(np.sum(self.wanted))

    def place_features(self, programs: Programs) -> Float[Array, "N d"]:
        """The features of its dataset, once on each device."""
        return share_features(self.study.dataset.standardised, programs.sharding)

    def prepare(self, first: int, count: int) -> list[PreparedCell]:
        """The data of some of its cells."""
        part = slice(first, first + count)
        pairs = zip(self.cells[part], self.wanted[part], strict=True)
        return [prepare(self.study, cell, wanted) for cell, wanted in pairs]

    def by_size(self) -> list["Job"]:
        """Its parts whose cells have equally many training examples, as a program needs."""
        parts: defaultdict[int, list[int]] = defaultdict(list)
        for row, cell in enumerate(self.cells):
            size = 0  # of those that keep all examples, whatever the seed
            if KINDS[cell.regime.kind].thin is not None:
                size = len(split_rows(self.study.dataset, cell.seed, cell.regime)[0])
            parts[size].append(row)
        return [
            self._replace(
                cells=[self.cells[r] for r in rows], wanted=[self.wanted[r] for r in rows]
            )
            for rows in parts.values()
        ]

    def settings(self, devices: int) -> StaticSettings:
        """What to compile for its cells, if all have equally many examples."""
        study, data = self.study, self.prepare(0, 1)[0].data
        features = study.dataset.standardised
        losses, training = study.losses, study.training
        return static_settings(study.model, losses, training, features, data, devices=devices)

    def write(self, prepared: PreparedCell, trained: Trained, extra_fields: Fields) -> None:
        """Score and record the wanted runs of a trained cell."""
        study, cell = self.study, prepared.cell
        if study.measure is not None:
            seed = int(cell_stream("perturbation", study, cell).integers(2**31))
            measure = partial(study.measure.runs, study.model, study.losses)
            stats = prepared.data.arrays.stats
            measured = measure(trained.parameters, prepared.split, stats, seed)
            extra_fields = {**extra_fields, **measured}
        identity = identify(study)
        records, arrays = make_records(study, identity, prepared, trained, extra_fields)
        device = {"device": describe_device(self.devices)}
        self.store.add(identity.member(cell), [record | device for record in records], arrays)


def find_missing(study: Study, store: Store) -> Job:
    """The runs of a study without a record, decided run by run."""
    identity, seen = identify(study), set(store.records)
    mask = np.zeros((len(study.cells), len(study.losses)), bool)
    for row, cell in enumerate(study.cells):
        for column, key in enumerate(identity.runs(cell)):
            mask[row, column] = key not in seen
            seen.add(key)  # two losses of one study may be the same run
    if jax.process_count() > 1:  # others may not see the disk of the primary process
        mask = np.asarray(multihost_utils.broadcast_one_to_all(mask))
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    losses = tuple(study.losses[column] for column in columns)
    cells = [study.cells[row] for row in rows]
    return Job(replace(study, losses=losses), store, cells, list(mask[rows][:, columns]))
