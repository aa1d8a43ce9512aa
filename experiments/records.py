"""Records: one JSON line a run, beside a manifest; test logits in one .npz a cell.

Lines are only ever appended, a cell at a time; what an interruption tore off is cut away by the
next call. Other files are replaced as a whole. The logits of a cell are written before its lines:
a line means that all of its run is there.
"""

import hashlib
import json
import os
import platform
from functools import cached_property
from importlib import metadata
from pathlib import Path

import numpy as np

from experiments.cells import Cell

LIBRARIES = ("jax", "jaxlib", "flax", "optax", "numpy", "scikit-learn")


class Store:
    """The folder of one experiment under one configuration."""

    def __init__(self, folder: Path, configuration: dict):
        self.folder = folder
        self.hash = configuration_hash(configuration)
        self._configuration = configuration
        self._path = folder / "records.jsonl"

    def runs(self) -> list[dict]:
        """The records of this configuration."""
        return [line for line in _read(self._path) if line["configuration"] == self.hash]

    def missing(self, cells: list[Cell], losses: tuple[str, ...]) -> list[Cell]:
        """The cells in which a run with one of the losses has no record yet."""
        known = self._known
        return [cell for cell in cells if any((*cell, loss) not in known for loss in losses)]

    def add(self, cell: Cell, runs: list[dict], arrays: dict[str, np.ndarray]) -> None:
        """Write a finished cell: its logits, then its lines."""
        fresh = [
            {**run, "configuration": self.hash} for run in runs if _key(run) not in self._known
        ]
        path = self.logits_path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = dict(np.load(path)) if path.exists() else {}
        _replace(path, lambda file: np.savez(file, **{**arrays, **kept}))
        self._write_manifest()
        _append(self._path, "".join(json.dumps(line) + "\n" for line in fresh))
        self._known.update(map(_key, fresh))

    @cached_property
    def _known(self) -> set[tuple]:
        """The runs that have a record: read once, or a large job would read ever more."""
        return set(map(_key, self.runs()))

    def logits(self, cell: Cell) -> dict[str, np.ndarray]:
        """Test logits `[n, K]` by loss, with the test labels as `labels`."""
        with np.load(self.logits_path(cell)) as arrays:
            return dict(arrays)

    def logits_path(self, cell: Cell) -> Path:
        return self.folder / "logits" / self.hash / f"{cell.dataset}_{cell.regime}_{cell.seed}.npz"

    def _write_manifest(self) -> None:
        path = self.folder / "manifest.json"
        manifest = json.loads(path.read_text()) if path.exists() else {}
        manifest[self.hash] = {
            "configuration": self._configuration,
            "libraries": {
                "python": platform.python_version(),
                **{name: metadata.version(name) for name in LIBRARIES},
            },
        }
        text = json.dumps(manifest, indent=2) + "\n"
        _replace(path, lambda file: file.write(text.encode()))


def configuration_hash(configuration: dict) -> str:
    """Twelve hexadecimal digits that change with any value of the configuration."""
    return hashlib.sha256(json.dumps(configuration, sort_keys=True).encode()).hexdigest()[:12]


def short(value) -> float | None:
    """A float32 as the shortest decimal that reads back as it; None where it is not finite."""
    return float(str(np.float32(value))) if np.isfinite(value) else None


def _read(path: Path) -> list[dict]:
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


def _key(line: dict) -> tuple:
    return (line["dataset"], line["regime"], line["seed"], line["loss"])


def _replace(path: Path, write) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
