"""A recorded run computed again, and what differs."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.engine.identity import identify
from experiments.engine.jobs import Machine, train_missing
from experiments.engine.store import Record, Store
from experiments.engine.study import Study

ACCOMPANYING = ("device", "versions", "seconds")  # which may differ in equal runs


class Difference(NamedTuple):
    """A field, or an entry of one, and its two values."""

    field: str
    recorded: Any
    recomputed: Any

    def __str__(self) -> str:
        return f"{self.field}: recorded {self.recorded!r}, now {self.recomputed!r}"


class Comparison(NamedTuple):
    """How a run compares with its record.

    Attributes:
      values: that differ, the first one of each field.
      accompanying: what else is not as it was: versions, the device, the time it took.
      fields: how many were compared as values.
      logits: by how much they differ at most, NaN if that is no number.
    """

    values: list[Difference]
    accompanying: list[Difference]
    fields: int
    logits: float


def recompute(study: Study, store: Store, machine: Machine) -> Comparison:
    """Train the one run of a study again, in a folder of its own, and compare it with its record.

    Args:
      study: with one regime, seed and loss.
      store: which has its record and logits.
      machine: to train on.
    """
    (cell,), identity = study.cells, identify(study)
    (run,), member = identity.runs(cell), identity.member(cell)
    recorded, recorded_logits = store.records[run], store.logits(member)[run]
    with tempfile.TemporaryDirectory(prefix="replay-") as folder:
        fresh = Store(Path(folder))
        train_missing(study, fresh, machine, "replay")
        again, logits = fresh.records[run], fresh.logits(member)[run]
    found = [*_differences(recorded, again)]
    return Comparison(
        values=[one for one in found if one.field.split(".")[0] not in ACCOMPANYING],
        accompanying=[one for one in found if one.field.split(".")[0] in ACCOMPANYING],
        fields=len((recorded.keys() | again.keys()).difference(ACCOMPANYING)),
        logits=float(np.max(np.abs(logits - recorded_logits))),
    )


def _differences(recorded: Record, again: Record, prefix: str = "") -> Iterator[Difference]:
    """The fields that differ, those of a nested one as in "versions.jax"."""
    for field in dict.fromkeys([*recorded, *again]):
        yield from _compare(f"{prefix}{field}", recorded.get(field), again.get(field))


def _compare(field: str, recorded: Any, again: Any) -> Iterator[Difference]:
    if recorded == again:
        return
    if isinstance(recorded, dict) and isinstance(again, dict):
        yield from _differences(recorded, again, f"{field}.")
    elif isinstance(recorded, list) and isinstance(again, list) and len(recorded) == len(again):
        place = next(k for k, value in enumerate(recorded) if value != again[k])
        yield from _compare(f"{field}[{place}]", recorded[place], again[place])
    else:
        yield Difference(field, recorded, again)
