"""Records: one JSON line per run, beside a manifest; test logits in one .npz per member.

Lines are only ever appended, a member at a time, and other files are replaced as a whole. The
logits of a member are written before its lines: a line means that all of its run is there. Lines,
logits and manifest have checksums. A store takes what is sound; `damage.py` sets the rest aside.
"""

import math
import platform
from collections import defaultdict
from collections.abc import Mapping
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, SupportsFloat

import numpy as np

from experiments.engine.disk import append, read_bytes, replace_file
from experiments.engine.lines import Line, Record, encode, parse
from experiments.engine.logits import LABELS, Arrays, checksum, read_logits, write_logits
from experiments.engine.manifest import Parts, decode_manifest, encode_manifest
from experiments.shell.errors import UsageError

RECORDS, MANIFEST, LOGITS = "records.jsonl", "manifest.json", "logits"
LIBRARIES = ("pgeom", "jax", "jaxlib", "flax", "optax", "numpy", "scikit-learn")


class Store:
    """The records of a folder, by the identities of their runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / RECORDS

    @cached_property
    def lines(self) -> list[Line]:
        """Every line of the folder: read once, or a large job would read ever more."""
        return parse(read_bytes(self._path) or b"")

    @cached_property
    def records(self) -> dict[str, Record]:
        """Every sound record of the folder."""
        return {line.record["identity"]: line.record for line in self.lines if not line.flaw}

    def add(self, member: str, records: list[Record], arrays: Arrays) -> None:
        """Write finished runs of a member: their logits, then their lines.

        Args:
          member: the name of its logits file.
          records: with an `identity` each, none of which is recorded yet.
          arrays: logits by identity, and the test `labels`.
        """
        write_logits(self.folder / LOGITS / member, {**self.logits(member), **arrays})
        lines: list[Record] = [
            {
                **record,
                "logits_file": member,
                "logits_checksum": checksum(arrays[record["identity"]], arrays[LABELS]),
                "versions": versions(),
            }
            for record in records
        ]
        append(self._path, b"".join(map(encode, lines)))
        for line in lines:
            self.records[line["identity"]] = line
            self._checksums[member][line["identity"]] = line["logits_checksum"]

    def logits(self, member: str) -> Arrays:
        """Test logits `[n, K]` by identity, with the test labels as `labels`.

        Raises:
          UsageError: if the logits of a recorded run are damaged or cannot be read.
        """
        if member not in self._checksums:
            return {}
        path = self.folder / LOGITS / member
        arrays, flaws = read_logits(path, self._checksums[member].items())
        for (identity, _), flaw in flaws.items():
            raise UsageError(f"{path} {flaw} ({identity}): rerun the command that trained it")
        return arrays

    @cached_property
    def _checksums(self) -> defaultdict[str, dict[str, str]]:
        """Those of the logits in each file, by identity."""
        files: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for identity, record in self.records.items():
            files[record["logits_file"]][identity] = record["logits_checksum"]
        return files

    @property
    def manifest(self) -> Parts:
        """What the hashes in the records stand for.

        Raises:
          UsageError: if it is damaged or cannot be read.
        """
        path = self.folder / MANIFEST
        data = read_bytes(path)  # apart: what the disk refuses is no damage
        if data is None:
            return {}
        try:
            return decode_manifest(data)
        except (ValueError, RecursionError):
            raise UsageError(f"{path} is damaged: rerun the command that made it") from None

    def describe(self, parts: Mapping[str, Mapping[str, Any]]) -> None:
        """Add to the manifest what the hashes in the records stand for."""
        path, known = self.folder / MANIFEST, self.manifest
        merged = known | {part: {**known.get(part, {}), **new} for part, new in parts.items()}
        data = encode_manifest(merged)
        if data != read_bytes(path):
            replace_file(path, lambda file: file.write(data))


@cache
def versions() -> dict[str, str]:
    """What makes a record now: Python, this project and the libraries under it."""
    return {"python": platform.python_version()} | {
        name: metadata.version(name) for name in LIBRARIES
    }


def json_float(value: SupportsFloat) -> float | None:
    """A float32 as the shortest decimal that reads back as it; None where it is not finite."""
    return float(str(np.float32(value))) if math.isfinite(value) else None
