"""Damage in a folder of records: found by checksums, named, and set aside.

What is damaged is moved to the folder `damaged`. A run without a sound line and sound logits is
then missing, and the next command that needs it trains it again. What cannot be read is no damage:
everything is read before anything is changed, so that a refusal leaves the folder as it is.
"""

import os
from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from experiments.engine.disk import (
    append,
    list_folder,
    one_line_errors,
    read_bytes,
    replace_file,
)
from experiments.engine.lines import Line, Record, describe_flaws, mark_repeated, parse_each
from experiments.engine.logits import Run, read_logits, write_logits
from experiments.engine.manifest import decode_manifest
from experiments.engine.records import LOGITS, MANIFEST, RECORDS
from experiments.shell.files import PART

DAMAGED = "damaged"  # the folder


def set_damage_aside(folder: Path) -> list[str]:
    """Take out of a folder what is damaged; only for the process that has claimed the folder.

    Returns:
      One line per kind of damage, which names the file and the lines.

    Raises:
      UsageError: if something cannot be read; nothing is changed then.
    """
    found, manifest = parse_each(read_bytes(folder / RECORDS) or b""), read_bytes(folder / MANIFEST)
    checked, damaged = _check_logits(folder, found)
    lines = mark_repeated(checked)
    _remove_unfinished(folder)
    for path, runs in damaged.items():
        _keep_sound(folder, path, runs)
    notes = [f"{folder / RECORDS}, {flaw}" for flaw in describe_flaws(lines)]
    if notes:
        bad = (line.text.removesuffix(b"\n") + b"\n" for line in lines if line.flaw)
        append(folder / DAMAGED / RECORDS, b"".join(bad))
        sound = b"".join(line.text for line in lines if not line.flaw)
        replace_file(folder / RECORDS, lambda file: file.write(sound))
    notes = [f"{note}; set aside in {folder / DAMAGED}" for note in notes]
    return notes + _check_manifest(folder, manifest, expected=bool(found))


def _check_logits(folder: Path, lines: Sequence[Line]) -> tuple[list[Line], dict[Path, list[Run]]]:
    """The lines, with a flaw for each without sound logits, and the runs of each damaged file."""
    files = {path.name: path for path in list_folder(folder / LOGITS) if path.suffix == ".npz"}
    runs: defaultdict[str, list[Run]] = defaultdict(list)
    for line in lines:
        if not line.flaw:
            runs[line.record["logits_file"]].append(_run(line.record))
    flaws: dict[tuple[str, Run], str] = {}
    damaged: dict[Path, list[Run]] = {}
    for name, those in runs.items():
        path = files.get(name)  # what a record names is looked up, and never made a path
        arrays, wrong = read_logits(path, those)
        if path is not None and any(identity not in arrays for identity, _ in wrong):
            damaged[path] = those
        flaws |= {(name, run): f"{LOGITS}/{name} {flaw}" for run, flaw in wrong.items()}
    return [line if line.flaw else _mark(line, flaws) for line in lines], damaged


def _mark(line: Line, flaws: dict[tuple[str, Run], str]) -> Line:
    flaw = flaws.get((line.record["logits_file"], _run(line.record)), "")
    return line._replace(record={}, flaw=flaw) if flaw else line


def _run(record: Record) -> Run:
    return record["identity"], record["logits_checksum"]


def _keep_sound(folder: Path, path: Path, runs: Sequence[Run]) -> None:
    """Set a damaged file of logits aside, and write those of its sound runs again."""
    arrays, _ = read_logits(path, runs)  # again: of many damaged files, one is in memory at a time
    _set_file_aside(folder, path)
    if arrays:
        write_logits(path, arrays)


def _check_manifest(folder: Path, data: bytes | None, *, expected: bool) -> list[str]:
    """Set a damaged manifest aside: commands describe their runs anew."""
    path = folder / MANIFEST
    if data is None:
        return [f"{path} is missing; it is written again"] * expected
    try:
        decode_manifest(data)
    except (ValueError, RecursionError):
        _set_file_aside(folder, path)
        return [f"{path} does not match its checksum; set aside in {folder / DAMAGED}"]
    return []


def _set_file_aside(folder: Path, path: Path) -> None:
    """Move a file to the folder `damaged`, under a name that is free there."""
    with one_line_errors("set aside", path):
        aside = folder / DAMAGED
        aside.mkdir(exist_ok=True)
        names = (f"{path.stem}{f'-{n}' * (n > 1)}{path.suffix}" for n in count(1))
        os.rename(path, next(aside / name for name in names if not os.path.lexists(aside / name)))


def _remove_unfinished(folder: Path) -> None:
    """Remove what a process that was killed had not yet put in its place."""
    begun = [path for path in list_folder(folder) if path.name.startswith((RECORDS, MANIFEST))]
    for path in (*begun, *list_folder(folder / LOGITS)):
        if path.name.endswith(PART):
            with one_line_errors("remove", path):
                path.unlink(missing_ok=True)
