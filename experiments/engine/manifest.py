"""The manifest of a folder: what the hashes in its records stand for, with a checksum.

>>> decode_manifest(encode_manifest({"loss": {"3f2a": {"name": "ce"}}}))
{'loss': {'3f2a': {'name': 'ce'}}}
"""

import json
from collections.abc import Mapping
from typing import Any

from experiments.engine.fingerprint import digest

Parts = dict[str, dict[str, Any]]
"""Descriptions by part, such as "loss", and by hash."""


def encode_manifest(parts: Mapping[str, Mapping[str, Any]]) -> bytes:
    """The text of a manifest, in which the order of the descriptions cannot be seen."""
    plain = json.dumps(parts, indent=2, default=repr, sort_keys=True)
    sealed = {**json.loads(plain), "checksum": digest(plain)[:16]}
    return json.dumps(sealed, indent=2).encode() + b"\n"


def decode_manifest(data: bytes) -> Parts:
    """The descriptions in a manifest.

    Raises:
      ValueError: if it is not exactly as it was written.
    """
    parts = json.loads(data)
    if not isinstance(parts, dict):
        raise ValueError("it is no manifest")
    parts.pop("checksum", None)
    if encode_manifest(parts) != data:
        raise ValueError("it does not match its checksum")
    return parts
