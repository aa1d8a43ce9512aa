"""A recorded run as a study of its own, from what its record says, computed again and compared."""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.engine.identity import SCORES, TIMED, identify
from experiments.engine.jobs import Machine, train_missing
from experiments.engine.linked import TSALLIS
from experiments.engine.measures import Measure
from experiments.engine.store import Parts, Record, Store, versions
from experiments.engine.study import Cell, Study
from experiments.engine.user_files import GENERATORS, LOSSES, load_once, make_model
from experiments.shell.errors import UsageError, refusals
from pgeom.data import sources
from pgeom.data.dataset import Dataset
from pgeom.data.regimes import Regime
from pgeom.losses import catalogue
from pgeom.losses.own import generator_loss, plain_loss
from pgeom.losses.spec import LossSpec
from pgeom.models.architectures import ARCHITECTURES
from pgeom.training.settings import Optimiser, Rule, Training

SHOWN = 4  # identities in a message


def find_record(store: Store, prefix: str) -> Record:
    """The record of the run whose identity begins with `prefix`, or a UsageError."""
    if not store.records:
        raise UsageError(f"there are no records in {str(store.folder)!r}")
    found = sorted(identity for identity in store.records if identity.startswith(prefix))
    if not found:
        raise UsageError(f"no run in {str(store.folder)!r} has an identity like {prefix!r}")
    if len(found) > 1:
        some = ", ".join(found[:SHOWN]) + " …" * (len(found) > SHOWN)
        raise UsageError(f"{prefix!r} begins the identities of {len(found)} runs: {some}")
    return store.records[found[0]]


def name_files(record: Record, descriptions: Parts) -> list[str]:
    """What the record names that is not built in: a file of data, and functions, whose code is run.

    A folder of records may be anybody's, so nobody should find out too late.
    """
    dataset, model, loss = (
        _described(descriptions, part, record)["source"] for part in ("dataset", "model", "loss")
    )
    named = [dataset["name"]] if dataset and dataset["name"] not in sources.BUILT_IN else []
    named += [model] if model and model not in ARCHITECTURES else []
    return named + list((loss or {}).values())


def rebuild_study(record: Record, descriptions: Parts, measures: Mapping[str, Measure]) -> Study:
    """The study of one run, whose parts have the hashes of the record.

    Args:
      record: of the run.
      descriptions: those of its folder.
      measures: those that studies may have, by name.

    Raises:
      UsageError: in one line, if a part cannot be found again or has changed.
    """
    parts = {
        part: _described(descriptions, part, record)
        for part in ("dataset", "model", "training", "measure", "loss")
    }
    dataset, measure = _load_dataset(parts["dataset"], record), parts["measure"]
    if measure not in (TIMED, SCORES, *measures):
        raise UsageError(f"the measure {measure!r} was made in Python, and cannot be found again")
    study = Study(
        name="replay",
        dataset=dataset,
        regimes=(Regime.parse(record["regime"]),),
        seeds=(record["seed"],),
        losses=_candidates(parts["loss"], record),
        model=make_model(_source(parts["model"], "model"), dataset),
        training=_read_training(parts["training"]),
        measure=measures.get(measure),
        timed=measure == TIMED,
        noisy_validation=record["made_from"].get("validation") == "noisy",
    )
    return _require_same(study, record)


def _described(descriptions: Parts, part: str, record: Record) -> Any:
    described = descriptions.get(part, {}).get(record["made_from"][part])
    if described is None:
        raise UsageError(
            f"nothing describes the {part} of run {record['identity']}: "
            "rerun the command that trained it"
        )
    return described


def _source(described: Mapping[str, Any], part: str) -> Any:
    if described["source"] is None:
        raise UsageError(f"the {part} of this run was made in Python, and cannot be found again")
    return described["source"]


def _load_dataset(described: Mapping[str, Any], record: Record) -> Dataset:
    with refusals():
        dataset = sources.load(**_source(described, "dataset"))
    pairs = record["made_from"].get("noise_map")
    if pairs is None:
        return dataset
    words = (pair.split(":") for pair in pairs.split())
    moved = {int(origin): int(target) for origin, target in words}
    targets = tuple(moved.get(label, label) for label in range(dataset.num_classes))
    return replace(dataset, noise_map=targets)


def _read_training(described: Mapping[str, Any]) -> Training:
    settings: dict[str, Any] = dict(described)
    settings["stopping"] = Rule(*settings["stopping"])
    settings["optimiser"] = Optimiser(**settings["optimiser"])
    return Training(**settings)


def _candidates(described: Mapping[str, Any], record: Record) -> tuple[LossSpec, ...]:
    """The losses that the recorded one may be: the user's own, or variants of the catalogue's."""
    constants, source = described["constants"], described["source"]
    if source is None:
        known = (*catalogue.LOSSES.values(), TSALLIS)
        specs = [
            replace(spec, constants=constants)
            for spec in known
            if spec.constants.keys() == constants.keys()
        ]
    elif GENERATORS in source:
        function = load_once(source[GENERATORS], option=GENERATORS)
        specs = [generator_loss(function, record["loss"], **constants)]
    else:
        specs = [plain_loss(load_once(source[LOSSES], option=LOSSES), record["loss"])]
    if described.get("link") == "canonical":
        specs = [spec.with_canonical_link() for spec in specs if spec.generator]
    return tuple(replace(spec, name=record["loss"], label=record["label"]) for spec in specs)


def _require_same(study: Study, record: Record) -> Study:
    """The study with the one loss that has the recorded hash, if all other parts have theirs."""
    identity, made_from = identify(study), record["made_from"]
    now = identity.cell_parts(Cell(study.regimes[0], study.seeds[0]))
    # precision first: the hashes of other parts change with it
    changed = [
        part for part in sorted(now, key="precision".__ne__) if now[part] != made_from.get(part)
    ]
    same = [k for k, key in enumerate(identity.losses) if key == made_from["loss"]]
    for part in changed or ["loss"] * (not same):
        raise UsageError(
            f"the {part} of run {record['identity']} is not the recorded one, or computes another "
            f"thing now{_other_versions(record)}"
        )
    return replace(study, losses=(study.losses[same[0]],))


def _other_versions(record: Record) -> str:
    now = versions()
    changed = [
        f"{name} was {then}, is {now.get(name)}"
        for name, then in record["versions"].items()
        if then != now.get(name)
    ]
    return "".join(f"; {change}" for change in changed)


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
