"""What may happen to the files of a folder of records while nobody looks."""

import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path

Damage = Callable[[Path, random.Random], object]


def _line(change: Callable[[bytes, random.Random], bytes]) -> Damage:
    """A change of one line of the records, at random."""

    def damage(folder: Path, rng: random.Random) -> None:
        path = folder / "records.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        place = rng.randrange(len(lines))
        lines[place] = change(lines[place], rng)
        path.write_bytes(b"".join(lines))

    return damage


def _logits(change: Callable[[Path], object]) -> Damage:
    """A change of one of the files of logits, at random."""
    return lambda folder, rng: change(rng.choice(sorted(folder.glob("logits/*.npz"))))


def _change_digit(line: bytes, rng: random.Random) -> bytes:
    place = rng.choice([k for k, byte in enumerate(line) if chr(byte) in "0123456789"])
    other = rng.choice([d for d in b"0123456789" if d != line[place]])
    return line[:place] + bytes([other]) + line[place + 1 :]


def _lose_key(line: bytes, rng: random.Random) -> bytes:
    fields = json.loads(line)
    del fields[rng.choice(sorted(fields))]
    return json.dumps(fields).encode() + b"\n"


def _tear(line: bytes, rng: random.Random) -> bytes:
    return line[: rng.randrange(1, len(line) - 1)]


def _flip_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0x55
    path.write_bytes(bytes(data))


def _swap(folder: Path, rng: random.Random) -> None:
    one, two = rng.sample(sorted(folder.glob("logits/*.npz")), 2)
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


DAMAGES: dict[str, Damage] = {
    "a changed digit": _line(_change_digit),
    "a lost key": _line(_lose_key),
    "NaN": _line(lambda line, rng: line.replace(b'"nll": ', b'"nll": NaN, "was": ')),
    "a torn line": _line(_tear),
    "a blank line": _line(lambda line, rng: b"\n" + line),
    "not UTF-8": _line(lambda line, rng: line.replace(b'"loss"', b'"l\xffss"')),
    "U+2028": _line(lambda line, rng: line.replace(b", ", ",\u2028".encode(), 1)),
    "a line twice": _line(lambda line, rng: line + line),
    "truncated logits": _logits(lambda path: path.write_bytes(path.read_bytes()[:-50])),
    "emptied logits": _logits(lambda path: path.write_bytes(b"")),
    "a flipped byte": _logits(_flip_byte),
    "deleted logits": _logits(Path.unlink),
    "a pickle": _logits(lambda path: path.write_bytes(pickle.dumps({"a": 1}))),
    "swapped logits": _swap,
    "a changed manifest": lambda folder, rng: _flip_byte(folder / "manifest.json"),
    "no manifest": lambda folder, rng: (folder / "manifest.json").unlink(),
}
