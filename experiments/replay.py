"""Recompute one recorded run: `python -m experiments.replay 3f2a --out results/noise`."""

from pathlib import Path
from typing import Annotated

import tyro

from experiments import robustness
from experiments.engine import devices
from experiments.engine.jobs import Machine
from experiments.engine.rebuild import find_record, rebuild_study
from experiments.engine.recompute import Comparison, recompute
from experiments.engine.records import Store
from pgeom.frontend import command_line
from pgeom.frontend.numbers import count

MEASURES = {robustness.PERTURBATIONS.name: robustness.PERTURBATIONS}


def main(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    out: Path = Path("results/noise"),
) -> int:
    """Train a recorded run again and compare every value; exit code 1 if one differs.

    Everything is taken from the record and the manifest beside it. What was named by a path is read
    again from there. Nothing in the folder is changed.

    Args:
        run: The identity of the run, or the beginning of it, as in records.jsonl.
        out: The folder of the record.
    """
    store = Store(out)
    record = find_record(store, run)
    available = devices.prepare_devices(None)
    console = command_line.make_console()
    study = rebuild_study(record, store.manifest, MEASURES)
    console.print(
        f"{record['identity']}: {record['dataset']}, {record['regime']}, seed {record['seed']}, "
        f"{record['label']}",
        soft_wrap=True,
    )
    machine = Machine(min(record["device"]["count"], available), console)
    found = recompute(study, store, machine)
    for line in describe_comparison(found):
        console.print(line, soft_wrap=True)
    return 1 if found.values else 0


def describe_comparison(found: Comparison) -> list[str]:
    """What differs, a line each, and how many values are equal."""
    if not found.values:
        return [*map(str, found.accompanying), f"all {count(found.fields, 'value')} are equal"]
    return [
        *map(str, found.accompanying),
        *map(str, found.values),
        f"logits: differ by at most {found.logits:.2g}",
    ]


if __name__ == "__main__":
    command_line.run(main, "experiments.replay", example="3f2a --out results/noise")
