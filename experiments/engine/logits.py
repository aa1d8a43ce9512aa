"""Test logits: one .npz file per member, with the logits of each run and the test labels.

Each record has the checksum of its own logits and labels, not of the file, which is written again
when further losses of the member are trained.
"""

from collections.abc import Collection, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from experiments.engine.disk import read_bytes, replace_file
from experiments.engine.fingerprint import digest

LABELS = "labels"
Arrays = dict[str, np.ndarray]
"""Logits `[n, K]` by the identity of their run, and the test labels `[n]` as `labels`."""
Run = tuple[str, str]
"""The identity of a run, and the checksum of its logits."""


def checksum(logits: np.ndarray, labels: np.ndarray) -> str:
    """A hash of a run's logits and of the labels that they are scored with."""
    return digest(logits, labels)[:16]


def write_logits(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Replace a file of logits; in the order of names, so that no history can be seen in it."""
    # Any: as keywords they would be taken for options of `savez`, too
    ordered: dict[str, Any] = dict(sorted(arrays.items()))
    replace_file(path, lambda file: np.savez(file, **ordered))


def read_logits(path: Path | None, runs: Collection[Run]) -> tuple[Arrays, dict[Run, str]]:
    """The logits of some runs with their labels, and for each run without any what is wrong.

    Args:
      path: of the file; None if there is none.
      runs: the identity of each with the checksum of its logits.
    """
    content = None if path is None else read_bytes(path)  # apart: a refusal is no damage
    if content is None:
        return {}, dict.fromkeys(runs, "is missing")
    arrays: Arrays = {}
    flaws: dict[Run, str] = {}
    try:
        with np.load(BytesIO(content), allow_pickle=False) as stored:
            labels = stored[LABELS]
            for run in runs:
                try:
                    arrays[run[0]] = _read_one(stored, labels, *run)
                except Exception as error:
                    flaws[run] = _reason(error)
    except Exception as error:
        return {}, dict.fromkeys(runs, _reason(error))
    return (arrays | {LABELS: labels} if arrays else {}), flaws


class Damage(ValueError):
    """What is wrong with the logits of a run."""


def _read_one(
    stored: Mapping[str, np.ndarray], labels: np.ndarray, identity: str, expected: str
) -> np.ndarray:
    if identity not in stored:
        raise Damage("has no logits of this run")
    logits = stored[identity]
    if checksum(logits, labels) != expected:
        raise Damage("does not match the checksum of this run's logits")
    return logits


def _reason(error: Exception) -> str:
    """A damaged file can make NumPy raise almost anything."""
    return str(error) if isinstance(error, Damage) else f"cannot be read: {type(error).__name__}"
