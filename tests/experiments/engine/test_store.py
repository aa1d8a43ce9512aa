"""The store keeps what is finished: through kills, races, damage, a full and a read-only disk."""

import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from experiments.engine import store as module
from experiments.engine.store import NAME, Store, json_float, mend, versions
from experiments.shell.errors import UsageError

CLASSES, EXAMPLES = 3, 50
WRITER = """
import sys
from pathlib import Path
import numpy as np
from experiments.engine.store import Store
from tests.experiments.engine.test_store import arrays, records

folder, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
store = Store(folder)
for cell in range(first, first + count):
    names = [f"{cell}-{k}" for k in range(3)]
    store.add(str(cell), records(*names), arrays(*names))
    print(*names, flush=True)
"""


def records(*identities):
    fields = {"loss": "ce", "nll": 0.5, "made_from": {"loss": "1f"}}
    return [{"identity": identity, **fields} for identity in identities]


def arrays(*identities):
    rng = np.random.default_rng(len(identities))
    logits = {x: rng.normal(size=(EXAMPLES, CLASSES)).astype(np.float32) for x in identities}
    return {**logits, "labels": np.arange(EXAMPLES) % CLASSES}


def fill(folder, cells=40):
    """A folder with three runs in each cell, and its identities."""
    store = Store(folder)
    store.describe({"loss": {"1f": {"name": "ce"}}})
    for cell in range(cells):
        names = [f"{cell}-{k}" for k in range(3)]
        store.add(str(cell), records(*names), arrays(*names))
    return set(store.records)


def writer(folder, first=0, count=10_000):
    command = [sys.executable, "-c", WRITER, str(folder), str(first), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def rewrite(folder, identity, **changes):
    """Change the fields of a run, with a good checksum."""
    with closing(sqlite3.connect(folder / NAME)) as connection, connection:
        query = "SELECT * FROM runs WHERE identity = ?"
        row = list(connection.execute(query, (identity,)).fetchone())
        row[2] = json.dumps(json.loads(row[2]) | changes)
        row[5] = module._checksum(row[:5])
        connection.execute("REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?)", row)


def test_what_is_written_reads_back(tmp_path):
    store, given = Store(tmp_path), arrays("a", "b")
    store.add("cell", records("a", "b"), given)
    store.describe({"loss": {"1f": {"name": "ce"}}})
    again = Store(tmp_path)
    assert list(again.records) == list(store.records) == ["a", "b"]
    assert again.records == store.records
    assert again.records["a"]["versions"] == versions()
    assert again.descriptions == {"loss": {"1f": {"name": "ce"}}}
    found = again.logits("cell")
    assert found.keys() == given.keys() and again.logits("another") == {}
    for name, array in given.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


def test_a_run_is_there_once_whoever_finishes_first(tmp_path):
    first, second = Store(tmp_path), Store(tmp_path)
    assert first.records == second.records == {}
    first.add("cell", records("a"), arrays("a"))
    other = [{**record, "nll": 0.75} for record in records("a", "b")]
    second.add("cell", other, arrays("a", "b"))
    found = Store(tmp_path).records
    assert list(found) == ["a", "b"] and found["a"]["nll"] == 0.5


def test_descriptions_are_added_up(tmp_path):
    store = Store(tmp_path)
    store.describe({"loss": {"1": {"name": "ce"}}, "model": {"2": "MLP"}})
    store.describe({"loss": {"3": "hpg"}})
    assert store.descriptions == {"loss": {"1": {"name": "ce"}, "3": "hpg"}, "model": {"2": "MLP"}}


def test_the_shell_of_sqlite_sees_columns(tmp_path):
    fill(tmp_path, cells=1)
    with closing(sqlite3.connect(tmp_path / NAME)) as connection:
        rows = connection.execute("SELECT identity, loss, nll FROM results").fetchall()
    assert rows == [(f"0-{k}", "ce", 0.5) for k in range(3)]


def test_fifty_kills_lose_nothing_and_double_nothing(tmp_path):
    """Each at a random moment while transactions are written, and on what the last one left."""
    rng, finished = random.Random(0), set()
    for trial in range(50):
        process = writer(tmp_path, first=1000 * trial)
        finished.update(process.stdout.readline().split())  # it has begun to write
        time.sleep(rng.uniform(0, 0.02))
        process.kill()
        finished.update(process.communicate()[0].rpartition("\n")[0].split())
        assert mend(tmp_path) is None
    found = Store(tmp_path).records
    assert len(finished) >= 150 and finished <= found.keys()
    cells = [record["cell"] for record in found.values()]
    assert all(cells.count(cell) == 3 for cell in set(cells))  # whole transactions


@pytest.mark.parametrize("starts", [(0, 0), (0, 20), (0, 0, 20)])
def test_writers_of_one_folder_all_finish(tmp_path, starts):
    processes = [writer(tmp_path, first=start, count=30) for start in starts]
    for process in processes:
        _, error = process.communicate(timeout=100)
        assert (process.returncode, error) == (0, "")
    cells = set().union(*(range(start, start + 30) for start in starts))
    assert Store(tmp_path).records.keys() == {f"{cell}-{k}" for cell in cells for k in range(3)}
    assert mend(tmp_path) is None


COMMANDS = (  # the same losses, other losses, other seeds
    ("--losses", "ce", "brier", "--seeds", "0", "1"),
    ("--losses", "ce", "brier", "--seeds", "0", "1"),
    ("--losses", "ce", "hpg", "--seeds", "1", "2"),
)


def test_commands_in_one_folder_all_finish(tmp_path):
    words = ["--dataset", "breast-cancer", "--regimes", "clean", "--epochs", "2", "--json"]
    quick = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    command = [sys.executable, "-m", "experiments.noise", *words, "--out", str(tmp_path / "out")]
    processes = [
        subprocess.Popen(
            [*command, *more],
            env={**os.environ, **quick},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for more in COMMANDS
    ]
    for process in processes:
        _, error = process.communicate(timeout=300)
        assert process.returncode == 0, error
    found = Counter((r["loss"], r["seed"]) for r in Store(tmp_path / "out").records.values())
    wanted = {(loss, seed) for *_, a, b, _, c, d in COMMANDS for loss in (a, b) for seed in (c, d)}
    assert found == Counter((loss, int(seed)) for loss, seed in wanted)


def cut_short(path):
    os.truncate(path, int(0.6 * path.stat().st_size))


def overwrite_part(path):
    with open(path, "r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(random.Random(1).randbytes(9000))


def overwrite_the_beginning(path):
    with open(path, "r+b") as file:
        file.write(random.Random(1).randbytes(4096))


def write_no_text(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE runs SET fields = CAST(x'ff' AS TEXT) WHERE rowid = 3")


def change_a_number(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE runs SET fields = replace(fields, '0.5', '0.1') WHERE rowid = 7")


def exchange_logits(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        query = "SELECT logits FROM runs WHERE rowid = 2"
        (logits,) = connection.execute(query).fetchone()
        connection.execute("UPDATE runs SET logits = ? WHERE rowid = 1", (logits,))


def rename_a_run(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE runs SET identity = 'other' WHERE rowid = 5")


@pytest.mark.parametrize(
    ("damage", "least"),
    [
        (cut_short, 40),
        (overwrite_part, 60),
        (overwrite_the_beginning, 0),
        (write_no_text, 119),
        (change_a_number, 119),
        (exchange_logits, 119),
        (rename_a_run, 119),
    ],
)
def test_damage_is_one_line_and_what_can_be_read_is_kept(tmp_path, damage, least):
    whole = fill(tmp_path)
    before = Store(tmp_path).records
    damage(tmp_path / NAME)
    with pytest.raises(UsageError, match=r"records\.db.*: rerun the command that made it$"):
        Store(tmp_path).records.values()
    line = mend(tmp_path)
    assert "\n" not in line and str(tmp_path / NAME) in line and "records-damaged.db" in line
    kept = Store(tmp_path).records
    assert least <= len(kept) < len(whole) and f"{len(kept)} runs kept" in line
    assert all(before[identity] == record for identity, record in kept.items())
    assert (tmp_path / "records-damaged.db").exists() and mend(tmp_path) is None
    Store(tmp_path).add("new", records("new"), arrays("new"))
    assert len(Store(tmp_path).records) == len(kept) + 1


@pytest.mark.parametrize("content", [b"", b"{}\n", bytes(5000), b"SQLite format 3\0" + bytes(99)])
def test_another_kind_of_file_is_moved_aside(tmp_path, content):
    (tmp_path / NAME).write_bytes(content)
    line = mend(tmp_path)
    assert "records-damaged.db, 0 runs kept" in line
    assert (tmp_path / "records-damaged.db").read_bytes() == content
    assert len(fill(tmp_path, cells=1)) == 3


def test_the_database_of_another_program_is_moved_aside(tmp_path):
    with closing(sqlite3.connect(tmp_path / NAME)) as connection, connection:
        connection.execute("CREATE TABLE runs (a, b)")
    line = mend(tmp_path)
    assert "is no database of records" in line and Store(tmp_path).records == {}


def test_damage_after_damage_has_names_of_its_own(tmp_path):
    for name in ("records-damaged.db", "records-damaged-2.db"):
        (tmp_path / NAME).write_text("no database")
        assert name in mend(tmp_path) and (tmp_path / name).read_text() == "no database"


def test_a_newer_schema_is_refused_and_left_alone(tmp_path):
    fill(tmp_path, cells=1)
    with closing(sqlite3.connect(tmp_path / NAME)) as connection:
        connection.execute(f"PRAGMA user_version = {module.SCHEMA + 1}")
    before = (tmp_path / NAME).read_bytes()
    for use in (mend, lambda folder: Store(folder).records):
        with pytest.raises(UsageError, match="written by a newer version of pgeom"):
            use(tmp_path)
    assert (tmp_path / NAME).read_bytes() == before


@contextmanager
def small_files(size):
    """No file may grow beyond a size, as where a disk is full."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    former = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        signal.signal(signal.SIGXFSZ, former)


def test_a_full_disk_is_one_line_and_keeps_what_is_finished(tmp_path):
    before = fill(tmp_path, cells=10)
    size = (tmp_path / NAME).stat().st_size
    names = [f"more-{k}" for k in range(300)]
    with small_files(size + 4096), pytest.raises(UsageError) as refused:
        Store(tmp_path).add("more", records(*names), arrays(*names))
    assert "finished runs are kept, rerun to resume" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert mend(tmp_path) is None and Store(tmp_path).records.keys() == before


@contextmanager
def nobody():
    """Without the rights of root, for whom nothing is read-only."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def public_folder():
    """A folder that nobody can reach, too."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_a_read_only_folder_can_be_read_and_is_refused_in_one_line(public_folder):
    before = fill(public_folder, cells=2)
    public_folder.chmod(0o555)
    (public_folder / NAME).chmod(0o444)
    with nobody():
        store = Store(public_folder)
        assert store.records.keys() == before
        for write in (
            lambda: mend(public_folder),
            lambda: store.add("new", records("new"), arrays("new")),
            lambda: Store(public_folder / "below").describe({"loss": {"1": "ce"}}),
        ):
            with pytest.raises(UsageError, match="cannot write") as refused:
                write()
            assert "\n" not in str(refused.value)
    public_folder.chmod(0o755)
    assert Store(public_folder).records.keys() == before


def test_a_store_that_is_locked_for_good_is_one_line(tmp_path, monkeypatch):
    fill(tmp_path, cells=1)
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    with closing(sqlite3.connect(tmp_path / NAME, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(UsageError, match="database is locked; finished runs are kept"):
            Store(tmp_path).add("new", records("new"), arrays("new"))


@pytest.mark.parametrize("value", [1 / 3, 1e-30, 123456.78, 0.0])
def test_numbers_read_back(value):
    assert np.float32(json_float(np.float32(value))) == np.float32(value)
    assert json.loads(json.dumps(json_float(np.float32(value)))) == json_float(np.float32(value))


def test_what_is_not_finite_is_null():
    assert json_float(np.nan) is None and json_float(np.inf) is None
