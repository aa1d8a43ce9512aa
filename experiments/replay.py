"""Recompute one recorded run: `python -m experiments.replay 3f2a --out results/noise`."""

import json as json_format
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from experiments.shell import command_line
from experiments.shell.errors import UsageError
from pgeom.messages import count

if TYPE_CHECKING:
    from experiments.engine.replaying import Comparison


def main(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    out: Path = Path("results/noise"),
    trust: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> int:
    """Train a recorded run again and compare every value; exit code 1 if one differs.

    Everything is taken from records.db, and nothing in the folder is changed.

    Args:
        run: The identity of the run, or the beginning of it, as in records.db.
        out: The folder of the record.
        trust: Read the files that the record names and run their code.
        json: Print what differs as JSON, and nothing else, on stdout.
    """
    # here and not above: --help should not wait for JAX
    from experiments.engine import devices
    from experiments.engine.jobs import Machine
    from experiments.engine.measures import MEASURES
    from experiments.engine.replaying import find_record, name_files, rebuild_study, recompute
    from experiments.engine.store import Store

    store = Store(out)
    record = find_record(store, run)
    named = name_files(record, store.descriptions)
    if named and not trust:
        files = ", ".join(map(repr, named))
        raise UsageError(f"the record names {files}: give --trust to read it and to run its code")
    available = devices.prepare_devices(None)
    console = command_line.make_console(stderr=json)
    study = rebuild_study(record, store.descriptions, MEASURES)
    console.print(
        f"{record['identity']}: {record['dataset']}, {record['regime']}, seed {record['seed']}, "
        f"{record['label']}",
        soft_wrap=True,
    )
    machine = Machine(min(record["device"]["count"], available), console)
    found = recompute(study, store, machine)
    for line in describe_comparison(found):
        console.print(line, soft_wrap=True)
    if json:
        print(to_json(record["identity"], found), file=command_line.results())
    return 1 if found.values else 0


def describe_comparison(found: "Comparison") -> list[str]:
    """What differs, a line each, and how many values are equal."""
    if not found.values:
        return [*map(str, found.accompanying), f"all {count(found.fields, 'value')} are equal"]
    return [
        *map(str, found.accompanying),
        *map(str, found.values),
        f"logits: differ by at most {found.logits:.2g}",
    ]


def to_json(identity: str, found: "Comparison") -> str:
    """What differs, for programs."""
    differences = {
        kind: [one._asdict() for one in getattr(found, kind)] for kind in ("values", "accompanying")
    }
    logits = None if math.isnan(found.logits) else found.logits
    everything = {"identity": identity, "fields": found.fields, "logits": logits, **differences}
    return json_format.dumps(everything, ensure_ascii=False)


if __name__ == "__main__":
    command_line.run(main, "experiments.replay", example="3f2a --out results/noise")
