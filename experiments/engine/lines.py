"""Records as lines of JSON, each of which ends with a checksum of all that stands before it.

>>> text = encode({"identity": "a", "logits_file": "m.npz", "logits_checksum": "1", "nll": 0.25})
>>> (line,) = parse(text)
>>> line.record["nll"], line.flaw
(0.25, '')
>>> [line.flaw for line in parse(text.replace(b"25", b"52") + text + text)]
['does not match its checksum', '', 'repeats line 2']
"""

import hashlib
import json
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

Record = dict[str, Any]
"""The fields of one run, as JSON has them."""

MARK = b', "checksum": "'
TORN = "is torn"  # as the last line may be while another process writes it
REQUIRED = ("identity", "logits_file", "logits_checksum")


class Line(NamedTuple):
    """A line of a file of records.

    Attributes:
      number: from 1.
      text: as it is in the file, with its line break.
      record: what it says; nothing where it is damaged.
      flaw: why it cannot be used, or "".
    """

    number: int
    text: bytes
    record: Record
    flaw: str = ""


def encode(record: Record) -> bytes:
    """The line of a record."""
    body = json.dumps(record).removesuffix("}").encode()
    return body + MARK + _checksum(body) + b'"}\n'


def parse(data: bytes) -> list[Line]:
    """The lines of a file; of several about one run, the first one counts."""
    return mark_repeated(parse_each(data))


@lru_cache(maxsize=2)  # a command reads the same lines to check them, to train and to show them
def parse_each(data: bytes) -> tuple[Line, ...]:
    """The lines of a file, each by itself."""
    *whole, torn = data.split(b"\n")
    texts = [text + b"\n" for text in whole] + [torn] * bool(torn)
    return tuple(_parse_one(number, text) for number, text in enumerate(texts, start=1))


def mark_repeated(lines: Iterable[Line]) -> list[Line]:
    """The lines, with a flaw for each that is about the run of an earlier one."""
    first: dict[str, Line] = {}
    marked = []
    for line in lines:
        earlier = line if line.flaw else first.setdefault(line.record["identity"], line)
        if earlier is not line:
            how = (
                "repeats" if earlier.text == line.text else "is about the run of, and differs from,"
            )
            line = line._replace(record={}, flaw=f"{how} line {earlier.number}")
        marked.append(line)
    return marked


def describe_flaws(lines: Iterable[Line]) -> list[str]:
    """What is wrong with lines, as in "lines 3–5, 9: …", once for each flaw."""
    numbers: dict[str, list[int]] = {}
    for line in lines:
        if line.flaw:
            numbers.setdefault(line.flaw, []).append(line.number)
    return [f"{_count(those)}: {flaw}" for flaw, those in numbers.items()]


def _parse_one(number: int, text: bytes) -> Line:
    body, mark, rest = text.rpartition(MARK)
    record: Any = None
    if not text.endswith(b"\n"):
        flaw = TORN
    elif not text.strip():
        flaw = "is blank"
    elif not mark:
        flaw = "has no checksum"
    elif rest != _checksum(body) + b'"}\n':
        flaw = "does not match its checksum"
    else:
        flaw, record = "", _load(body + b"}")
    sound = isinstance(record, dict) and all(isinstance(record.get(key), str) for key in REQUIRED)
    return Line(number, text, record if sound else {}, flaw or ("" if sound else "is no record"))


def _load(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # with a checksum, yet not written by `encode`
        return None


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:16].encode()


def _count(numbers: list[int]) -> str:
    """Line numbers with their runs shortened, as in "lines 3–5, 9"."""
    runs = []
    for _, group in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in group]
        runs.append(f"{members[0]}–{members[-1]}" if len(members) > 1 else f"{members[0]}")
    return f"line{'s' * (len(numbers) > 1)} {', '.join(runs)}"
