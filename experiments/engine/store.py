"""The store: one SQLite database in the folder of a study, `records.db`.

A row of `runs` is a run: its identity, the cell it shares with others, its fields as JSON, its test
logits and labels as .npy, and a checksum of those three. All runs of a cell are written in one
transaction, so that what is there is whole, and a run that two commands finish is there once.
`descriptions` says what the hashes in the fields stand for. The view `results` has the fields that
people look at first as columns.

>>> import tempfile
>>> store = Store(Path(tempfile.mkdtemp()))
>>> logits, labels = np.float32([[2.0, 0.0]]), np.array([0])
>>> store.add("cell", [{"identity": "3f2a", "nll": 0.25}], {"3f2a": logits, "labels": labels})
>>> Store(store.folder).records["3f2a"]["nll"], store.logits("cell")["3f2a"].shape
(0.25, (1, 2))
"""

import hashlib
import json
import math
import os
import platform
import shutil
import sqlite3
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache, cached_property
from importlib import metadata
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any, SupportsFloat

import numpy as np

from experiments.shell.errors import UsageError

NAME = "records.db"
APPLICATION, SCHEMA = 0x7067656F, 1  # "pgeo" in ASCII, and the version of the tables below
PATIENCE = 60.0  # seconds for another process to finish writing
LIBRARIES = ("pgeom", "jax", "jaxlib", "flax", "optax", "numpy", "scikit-learn")
LABELS = "labels"
COLUMNS = {  # of the view, by their types, without which DuckDB takes them for JSON
    "TEXT": ("dataset", "regime", "loss", "label"),
    "INTEGER": ("seed", "best_epoch", "stopped_epoch"),
    "DOUBLE": (
        "accuracy",
        "balanced_accuracy",
        "nll",
        "brier",
        "ece",
        "smooth_ece",
        "temperature",
        "calibrated_nll",
        "calibrated_ece",
    ),
}
VIEW = [
    f"CAST(json_extract(fields, '$.{name}') AS {kind}) AS {name}"
    for kind, names in COLUMNS.items()
    for name in names
]
TABLES = f"""
CREATE TABLE runs (
  identity TEXT PRIMARY KEY,
  cell TEXT NOT NULL,
  fields TEXT NOT NULL,
  logits BLOB NOT NULL,
  labels BLOB NOT NULL,
  checksum TEXT NOT NULL
);
CREATE INDEX runs_of_cells ON runs (cell);
CREATE TABLE descriptions (
  part TEXT NOT NULL, hash TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (part, hash)
);
CREATE VIEW results AS SELECT identity, cell,
  {", ".join(VIEW)} FROM runs;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {SCHEMA};
"""
ADD = "INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?, ?, ?)"
DESCRIBE = "INSERT OR REPLACE INTO descriptions VALUES (?, ?, ?)"
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

Record = dict[str, Any]
"""The fields of one run, as JSON has them."""
Parts = dict[str, dict[str, Any]]
"""Descriptions by part, such as "loss", and by hash."""


class Store:
    """The runs recorded in a folder, by their identities; read once, when first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / NAME

    @cached_property
    def records(self) -> dict[str, Record]:
        """The fields of every run.

        Raises:
          UsageError: if the database is damaged or cannot be read.
        """
        if not self.path.exists():
            return {}
        with _opened(self.path) as connection:
            return _read_runs(self.path, connection)

    def add(self, cell: str, records: Sequence[Record], arrays: Mapping[str, np.ndarray]) -> None:
        """Write finished runs of a cell, all or none; a run that is there already stays as it is.

        Args:
          cell: the hash of what they share.
          records: with an `identity` each.
          arrays: test logits `[n, K]` by identity, and the test labels `[n]` as `labels`.
        """
        labels, rows = _encode(arrays[LABELS]), []
        for record in records:
            fields = json.dumps({**record, "cell": cell, "versions": versions()})
            row = record["identity"], cell, fields, _encode(arrays[record["identity"]]), labels
            rows.append((*row, _checksum(row)))
        with _writing(self.path) as connection:
            connection.executemany(ADD, rows)
        self.records.update((row[0], json.loads(row[2])) for row in rows)

    def logits(self, cell: str) -> dict[str, np.ndarray]:
        """Test logits `[n, K]` by identity, with the test labels as `labels`, of a cell's runs."""
        if not self.path.exists():
            return {}
        with _opened(self.path) as connection:
            query = "SELECT identity, logits, labels FROM runs WHERE cell = ?"
            rows = connection.execute(query, (cell,)).fetchall()
        arrays = {identity: _decode(logits) for identity, logits, _ in rows}
        return arrays | ({LABELS: _decode(rows[0][2])} if rows else {})

    @property
    def descriptions(self) -> Parts:
        """What the hashes in the records stand for."""
        parts: Parts = {}
        if self.path.exists():
            with _opened(self.path) as connection:
                for part, key, value in connection.execute("SELECT * FROM descriptions"):
                    parts.setdefault(part, {})[key] = json.loads(value)
        return parts

    def describe(self, parts: Mapping[str, Mapping[str, Any]]) -> None:
        """Say what the hashes in records stand for."""
        rows = [
            (part, key, json.dumps(value, default=repr))
            for part, values in parts.items()
            for key, value in values.items()
        ]
        with _writing(self.path) as connection:
            connection.executemany(DESCRIBE, rows)


def mend(folder: Path) -> str | None:
    """Make the database of a folder ready to be written to, and say what was wrong with it.

    A damaged or foreign file is moved aside, and whatever runs can still be read and match their
    checksums are kept. Those that are lost are trained again by the command that needs them.

    Returns:
      One line, if anything was wrong.

    Raises:
      UsageError: if a newer version wrote the file, or it cannot be written to.
    """
    path = folder / NAME
    if not path.exists():
        return None
    try:
        with _opened(path) as connection:
            if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise Damage(path, "is damaged")
            _read_runs(path, connection)
    except Damage as damage:
        return _move_aside(path, damage.reason)
    with _writing(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA}")  # fails where nothing can be written
    return None


class Damage(UsageError):
    """A file that is not, or no longer, a database of records."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{str(path)!r} {reason}: rerun the command that made it")
        self.reason = reason


@contextmanager
def _opened(path: Path) -> Generator[sqlite3.Connection, None, None]:
    """A connection to a database that is there and whose tables are ours."""
    try:
        with _connected(path) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (schema,) = connection.execute("PRAGMA user_version").fetchone()
            if application != APPLICATION:
                raise Damage(path, "is no database of records")
            if schema > SCHEMA:
                raise UsageError(
                    f"{str(path)!r} was written by a newer version of pgeom: update pgeom, or "
                    "choose another folder"
                )
            yield connection
    except sqlite3.DatabaseError as error:
        # a text that is not UTF-8 has no code
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) in DAMAGED:
            raise Damage(path, "is damaged") from error
        raise UsageError(f"cannot read {str(path)!r}: {error}") from error


@contextmanager
def _writing(path: Path) -> Generator[sqlite3.Connection, None, None]:
    """A transaction on a database, which is made if it is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _connected(path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("PRAGMA user_version").fetchone() == (0,):
                for statement in TABLES.split(";"):
                    connection.execute(statement)
            yield connection
            connection.execute("COMMIT")
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(
            f"cannot write {str(path)!r}: {reason}; finished runs are kept, rerun to resume"
        ) from error


def _connected(path: Path) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(path, timeout=PATIENCE, isolation_level=None))


def _read_runs(path: Path, connection: sqlite3.Connection) -> dict[str, Record]:
    """The fields of every run, each of which must match its checksum."""
    found = {}
    for row in connection.execute("SELECT * FROM runs ORDER BY rowid"):
        if not _is_sound(row):
            raise Damage(path, "has runs that do not match their checksums")
        found[row[0]] = json.loads(row[2])
    return found


def _move_aside(path: Path, why: str) -> str:
    """Keep a copy of a damaged file under another name, and what can be read of it in its place."""
    names = (path.with_name(f"{path.stem}-damaged{f'-{n}' * (n > 1)}.db") for n in count(1))
    aside = next(name for name in names if not name.exists())
    fresh = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        rows = {row[0]: row for row in _readable(path, "runs", 6) if _is_sound(row)}
        with _writing(fresh) as connection:
            connection.executemany(ADD, rows.values())
            connection.executemany(DESCRIBE, [*_readable(path, "descriptions", 3)])
        shutil.copy2(path, aside)
        with suppress(FileNotFoundError):  # of a transaction that the damaged file ended in
            path.with_name(f"{path.name}-journal").unlink()
        os.replace(fresh, path)
    except OSError as error:
        raise UsageError(f"cannot write beside {str(path)!r}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            fresh.unlink()
    return (
        f"{path} {why}: moved to {aside.name}, {len(rows)} runs kept; the others are trained again"
    )


def _readable(path: Path, table: str, columns: int) -> Iterator[tuple]:
    """The rows of a table that can be read, each by itself."""
    with _connected(path) as connection:
        try:
            connection.execute("PRAGMA writable_schema = ON")  # or a file cut short is not opened
            (last,) = connection.execute(f"SELECT max(rowid) FROM {table}").fetchone()
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_CORRUPT:
                return  # another kind of file, or one without this table
            last = path.stat().st_size // 256  # no row is as short
        for number in range(1, (last or 0) + 1):
            with suppress(sqlite3.DatabaseError):
                query = f"SELECT * FROM {table} WHERE rowid = ?"
                row = connection.execute(query, (number,)).fetchone()
                if row is not None and len(row) == columns:
                    yield row


def _is_sound(row: tuple) -> bool:
    """Whether a row of `runs` is as it was written."""
    *content, checksum = row
    return all(isinstance(x, str | bytes) for x in content) and checksum == _checksum(content)


def _checksum(content: Iterable[str | bytes]) -> str:
    whole = hashlib.sha256()
    for part in content:
        data = part.encode() if isinstance(part, str) else bytes(part)
        whole.update(len(data).to_bytes(8, "big") + data)
    return whole.hexdigest()


def _encode(array: np.ndarray) -> bytes:
    file = BytesIO()
    np.save(file, np.asarray(array), allow_pickle=False)
    return file.getvalue()


def _decode(blob: bytes) -> np.ndarray:
    return np.load(BytesIO(blob), allow_pickle=False)


@cache
def versions() -> dict[str, str]:
    """What makes a record now: Python, this project and the libraries under it."""
    return {"python": platform.python_version()} | {
        name: metadata.version(name) for name in LIBRARIES
    }


def json_float(value: SupportsFloat) -> float | None:
    """A float32 as the shortest decimal that reads back as it; None where it is not finite."""
    return float(str(np.float32(value))) if math.isfinite(value) else None
