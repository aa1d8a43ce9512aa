"""Recompute one recorded run: `python -m experiments.replay 3f2a --out results/noise`."""

import json as json_format
from pathlib import Path
from typing import Annotated

import tyro

from experiments.shell import command_line
from experiments.shell.errors import UsageError
from pgeom.messages import count


def main(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    out: Path = Path("results/noise"),
    trust: tyro.conf.FlagCreatePairsOff[bool] = False,
    json: tyro.conf.FlagCreatePairsOff[bool] = False,
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
    from experiments.engine import devices, replaying
    from experiments.engine.store import Store, json_float

    store = Store(out)
    record = replaying.find_record(store, run)
    parts = replaying.describe_parts(record, store.descriptions)
    named = replaying.name_files(parts)
    if named and not trust:
        files = ", ".join(map(repr, named))
        raise UsageError(f"the record names {files}: give --trust to read it and to run its code")
    available = devices.prepare_devices(None)
    console = command_line.make_console(stderr=json)
    study = replaying.rebuild_study(record, parts)
    console.print(
        f"{record['identity']}: {record['dataset']}, {record['regime']}, seed {record['seed']}, "
        f"{record['label']}",
        soft_wrap=True,
    )
    used = min(record["device"]["count"], available)
    again, logits = replaying.recompute(study, used, console)
    different = replaying.compare(record, again)
    values = [one for one in different if one["field"].split(".")[0] not in replaying.MADE_BY]
    made_by = [one for one in different if one not in values]
    for one in (*made_by, *values):
        line = f"{one['field']}: recorded {one['recorded']!r}, now {one['recomputed']!r}"
        console.print(line, soft_wrap=True)
    fields = len((record.keys() | again.keys()).difference(replaying.MADE_BY))
    gap = float(abs(logits - store.logits(record["cell"])[record["identity"]]).max())
    equal = f"all {count(fields, 'value')} are equal"
    console.print(f"logits: differ by at most {gap:.2g}" if values else equal)
    if json:
        found = {"identity": record["identity"], "fields": fields, "logits": json_float(gap)}
        text = json_format.dumps({**found, "values": values, "accompanying": made_by})
        print(text, file=command_line.results())
    return 1 if values else 0


if __name__ == "__main__":
    command_line.run(main, "experiments.replay", example="3f2a --out results/noise")
