"""A recorded run as a study of its own, from what its record says, computed again and compared."""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from experiments.engine.identity import SCORES, TIMED, identify
from experiments.engine.linked import TSALLIS
from experiments.engine.measures import MEASURES
from experiments.engine.store import Parts, Record, Store, versions
from experiments.engine.study import Study
from experiments.engine.training import train_missing
from experiments.engine.user_files import GENERATORS, LOSSES, load_once, make_model
from experiments.shell.errors import UsageError, refusals
from pgeom.data import sources
from pgeom.data.regimes import Regime
from pgeom.losses import catalogue
from pgeom.losses.own import generator_loss, plain_loss
from pgeom.losses.spec import LossSpec
from pgeom.models.architectures import ARCHITECTURES
from pgeom.training.settings import Optimiser, Rule, Training

SHOWN = 4  # identities in a message
MADE_BY = ("device", "versions", "seconds")  # fields that may differ in equal runs


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


def describe_parts(record: Record, descriptions: Parts) -> dict[str, Any]:
    """The description of each part of a run."""
    parts = {
        part: descriptions.get(part, {}).get(record["made_from"][part])
        for part in ("dataset", "model", "training", "measure", "loss")
    }
    for part, described in parts.items():
        if described is None:
            raise UsageError(
                f"nothing describes the {part} of run {record['identity']}: "
                "rerun the command that trained it"
            )
    return parts


def name_files(parts: Mapping[str, Any]) -> list[str]:
    """What a record names that is not built in: a file of data, and functions, whose code is run.

    A folder of records may be anybody's, so nobody should find out too late.
    """
    dataset, model, loss = (parts[part]["source"] for part in ("dataset", "model", "loss"))
    named = [dataset["name"]] if dataset and dataset["name"] not in sources.BUILT_IN else []
    named += [model] if model and model not in ARCHITECTURES else []
    return named + list((loss or {}).values())


def rebuild_study(record: Record, parts: Mapping[str, Any]) -> Study:
    """The study of one run, whose parts have the hashes of the record.

    Args:
      record: of the run.
      parts: their descriptions.

    Raises:
      UsageError: in one line, if a part cannot be found again or has changed.
    """
    measure, made_from = parts["measure"], record["made_from"]
    for part in ("dataset", "model"):
        if parts[part]["source"] is None:
            raise UsageError(
                f"the {part} of this run was made in Python, and cannot be found again"
            )
    if measure not in (TIMED, SCORES, *MEASURES):
        raise UsageError(f"the measure {measure!r} was made in Python, and cannot be found again")
    with refusals():
        dataset = sources.load(**parts["dataset"]["source"])
    if "noise_map" in made_from:
        pairs = (pair.split(":") for pair in made_from["noise_map"].split())
        moved = {int(label): int(target) for label, target in pairs}
        targets = tuple(moved.get(label, label) for label in range(dataset.num_classes))
        dataset = replace(dataset, noise_map=targets)
    training = dict(parts["training"])
    study = Study(
        name="replay",
        dataset=dataset,
        regimes=(Regime.parse(record["regime"]),),
        seeds=(record["seed"],),
        losses=_candidates(parts["loss"], record),
        model=make_model(parts["model"]["source"], dataset),
        training=Training(
            **training
            | {
                "stopping": Rule(*training["stopping"]),
                "optimiser": Optimiser(**training["optimiser"]),
            }
        ),
        measure=MEASURES.get(measure),
        timed=measure == TIMED,
        noisy_validation=made_from.get("validation") == "noisy",
    )
    return _require_same(study, record)


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
    now = identity.cell_parts(study.cells[0])
    # precision first: the hashes of other parts change with it
    changed = [
        part for part in sorted(now, key="precision".__ne__) if now[part] != made_from.get(part)
    ]
    if not changed and made_from["loss"] in identity.losses:
        return replace(study, losses=(study.losses[identity.losses.index(made_from["loss"])],))
    versions_now = versions()
    others = [
        f"; {name} was {then}, is {versions_now.get(name)}"
        for name, then in record["versions"].items()
        if then != versions_now.get(name)
    ]
    raise UsageError(
        f"the {[*changed, 'loss'][0]} of run {record['identity']} is not the recorded one, or "
        f"computes another thing now{''.join(others)}"
    )


def recompute(study: Study, devices: int, console: Console) -> tuple[Record, np.ndarray]:
    """The record and the logits of the one run of a study, trained in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="replay-") as folder:
        store = Store(Path(folder))
        train_missing(study, store, devices, console, title="replay")
        (record,) = store.records.values()
        return record, store.logits(record["cell"])[record["identity"]]


def compare(recorded: Record, again: Record) -> list[dict[str, Any]]:
    """The values that differ, under names such as "device.cores"; the first of a list."""
    one, other = dict(_flatten(recorded)), dict(_flatten(again))
    different: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys([*one, *other]):
        then, now = one.get(name), other.get(name)
        if then != now:
            found = {"field": name, "recorded": then, "recomputed": now}
            different.setdefault(name.split("[")[0], found)
    return [*different.values()]


def _flatten(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a record, each under its own name."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flatten(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _flatten(inner, f"{name}[{place}]")
    else:
        yield name, value
