"""What messages say: the nearest known name, a number of things, the line of an error.

>>> known_name("loss", "hpg", ("ce", "gce", "hpg"))
'hpg'
>>> nearest("HGP", ("ce", "gce", "hpg"))
'hpg'
>>> count(1, "run"), count(3, "run")
('1 run', '3 runs')
"""

import difflib
import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

SIMILAR = 0.3  # below this share of common letters a hint would only confuse
NONE: Mapping[str, str] = MappingProxyType({})


def known_name(
    kind: str, value: str, known: Collection[str], synonyms: Mapping[str, str] = NONE
) -> str:
    """`value` if it is known.

    Args:
      kind: what is named, as in "loss", for the message.
      value: the name that the user typed.
      known: all valid names.
      synonyms: names that a user may expect, with the known ones that are meant by them.

    Raises:
      ValueError: otherwise, with the nearest known name.
    """
    if value in known:
        return value
    near = nearest(value, known, synonyms)
    hint = f"did you mean {near!r}? " if near is not None else ""
    raise ValueError(f"unknown {kind} {value!r}; {hint}known: {', '.join(known)}")


def nearest(name: str, known: Collection[str], synonyms: Mapping[str, str] = NONE) -> str | None:
    """The known name most similar to `name`, in capitals or not; None if none is similar."""
    meanings = {_letters(meant): meant for meant in (*synonyms.values(), *known)}
    meanings = {_letters(word): meant for word, meant in synonyms.items()} | meanings
    matches = difflib.get_close_matches(_letters(name), meanings, n=1, cutoff=SIMILAR)
    return meanings[matches[0]] if matches and meanings[matches[0]] in known else None


def _letters(name: str) -> str:
    """The name in small letters, and without what may be written between words."""
    return re.sub(r"[\s_-]+", "", name.lower()) or name


def separated(value: str) -> str | None:
    """A hint for what was given as one word although it looks like several; None for one word.

    >>> separated("ce,gce")
    'separate by spaces: ce gce'
    """
    words = [word for word in re.split(r"[\s,;]+", value) if word]
    return f"separate by spaces: {' '.join(words)}" if [value] != words and words else None


def count(number: int, noun: str) -> str:
    """A number of things, as in "1 run" or "3 runs"."""
    return f"{number} {noun}{'s' * (number != 1)}"


def describe_error(error: BaseException) -> str:
    """The type of an error and the line of its message that says most."""
    lines = str(error).strip().splitlines() or [""]
    # a callback's error reaches us with the traceback as its message, which ends with the error
    line = lines[-1] if "Traceback" in lines[0] else lines[0]
    return f"{type(error).__name__}: {line}" if line else type(error).__name__
