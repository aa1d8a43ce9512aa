"""Records: one JSON line per run, beside a manifest; test logits in one .npz per member.

Lines are only ever appended, a member at a time; what an interruption tore off is cut away by the
next call. Other files are replaced as a whole. The logits of a member are written before its
lines: a line means that all of its run is there.
"""

import json
import math
import os
import platform
from collections.abc import Callable
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO, SupportsFloat

import numpy as np

LIBRARIES = ("pgeom", "jax", "jaxlib", "flax", "optax", "numpy", "scikit-learn")

Record = dict[str, Any]
"""The fields of one run, as JSON has them."""


class Store:
    """The records of a folder, by the identities of their runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "records.jsonl"

    @cached_property
    def records(self) -> dict[str, Record]:
        """Every record of the folder: read once, or a large job would read ever more."""
        return {record["identity"]: record for record in _read(self._path)}

    def add(self, member: str, records: list[Record], arrays: dict[str, np.ndarray]) -> None:
        """Write finished runs of a member: their logits, then their lines.

        Args:
          member: the name of its logits file.
          records: with an `identity` each, none of which is recorded yet.
          arrays: logits by identity, and the test `labels`.
        """
        path = self._logits_path(member)
        kept = self.logits(member) if path.exists() else {}
        # Any: as keywords they would be taken for options of `savez`, too
        everything: dict[str, Any] = {**kept, **arrays}
        _replace(path, lambda file: np.savez(file, **everything))
        lines: list[Record] = [{**record, "versions": versions()} for record in records]
        _append(self._path, "".join(json.dumps(line) + "\n" for line in lines))
        self.records.update({line["identity"]: line for line in lines})

    def logits(self, member: str) -> dict[str, np.ndarray]:
        """Test logits `[n, K]` by identity, with the test labels as `labels`."""
        with np.load(self._logits_path(member)) as arrays:
            return dict(arrays)

    def describe(self, parts: dict[str, dict[str, Any]]) -> None:
        """Add to the manifest what the hashes in the records stand for."""
        path = self.folder / "manifest.json"
        manifest = json.loads(path.read_text()) if path.exists() else {}
        for part, described in parts.items():
            manifest[part] = {**manifest.get(part, {}), **described}
        text = json.dumps(manifest, indent=2, default=repr) + "\n"
        _replace(path, lambda file: file.write(text.encode()))

    def _logits_path(self, member: str) -> Path:
        return self.folder / "logits" / f"{member}.npz"


@cache
def versions() -> dict[str, str]:
    """What makes a record now: Python, this project and the libraries under it."""
    return {"python": platform.python_version()} | {
        name: metadata.version(name) for name in LIBRARIES
    }


def json_float(value: SupportsFloat) -> float | None:
    """A float32 as the shortest decimal that reads back as it; None where it is not finite."""
    return float(str(np.float32(value))) if math.isfinite(value) else None


def _read(path: Path) -> list[Record]:
    """The whole lines of a file; what follows the last line break was torn off."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def _append(path: Path, text: str) -> None:
    """Add whole lines behind the last whole line."""
    path.touch()
    with open(path, "r+b") as file:
        end = file.read().rfind(b"\n") + 1
        file.seek(end)
        file.truncate()
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def _replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
