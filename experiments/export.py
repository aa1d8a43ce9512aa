"""The records of a folder as a table: `python -m experiments.export results/noise --csv`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from experiments.shell import command_line
from experiments.shell.errors import UsageError
from pgeom.messages import count

if TYPE_CHECKING:
    import pandas as pd

Flag = tyro.conf.FlagCreatePairsOff[bool]


def main(
    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")],
    csv: Flag = False,
    parquet: Flag = False,
    jsonl: Flag = False,
) -> None:
    """Write records.csv, records.parquet or records.jsonl beside records.db, a row per run.

    Args:
        out: The folder of a study.
        csv: Write comma-separated values; what is nested is JSON in its column.
        parquet: Write Parquet, in the same way; needs pyarrow.
        jsonl: Write a line of JSON per run, with everything as it is.
    """
    if not (csv or parquet or jsonl):
        raise UsageError("give at least one of --csv, --parquet and --jsonl")
    from experiments.engine.store import Store
    from experiments.shell.files import write_file, write_text

    records = list(Store(out).records.values())
    if not records:
        raise UsageError(f"there are no records in {str(out)!r}")
    written = []
    if jsonl:
        lines = (json.dumps(record) + "\n" for record in records)
        written.append(write_text(out / "records.jsonl", "".join(lines)))
    if csv:
        text = _flat(records).to_csv(index=False)
        written.append(write_text(out / "records.csv", text))
    if parquet:
        frame, path = _flat(records), out / "records.parquet"
        try:
            written.append(write_file(path, lambda file: frame.to_parquet(file, index=False)))
        except ImportError as error:
            raise UsageError("--parquet needs pyarrow: pip install 'pgeom[parquet]'") from error
    names = ", ".join(str(path) for path in written)
    command_line.make_console().print(f"{count(len(records), 'run')}: {names}", soft_wrap=True)


def _flat(records: list[dict]) -> "pd.DataFrame":
    """A column per field; lists and dictionaries as JSON."""
    import pandas as pd

    rows = [
        {name: json.dumps(x) if isinstance(x, (list, dict)) else x for name, x in record.items()}
        for record in records
    ]
    return pd.DataFrame(rows)


if __name__ == "__main__":
    command_line.run(main, "experiments.export", example="results/noise --csv")
