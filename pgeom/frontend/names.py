"""Names that a user types: checked against the known ones, with a hint at the nearest.

>>> choose_all("loss", ("hpg", "ce"), ("ce", "gce", "hpg"))
('ce', 'hpg')
>>> nearest("HGP", ("ce", "gce", "hpg"))
'hpg'
"""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from pgeom.frontend.errors import UsageError

SIMILAR = 0.3  # below this share of common letters a hint would only confuse
NONE: Mapping[str, str] = MappingProxyType({})


def choose(
    kind: str, value: str, known: Collection[str], synonyms: Mapping[str, str] = NONE
) -> str:
    """`value` if it is known.

    Args:
      kind: what is named, as in "loss", for the message.
      value: the name that the user typed.
      known: all valid names.
      synonyms: names that a user may expect, with the known ones that are meant by them.

    Raises:
      UsageError: otherwise, naming the nearest known name.
    """
    if value in known:
        return value
    near = nearest(value, known, synonyms)
    hint = f"did you mean {near!r}? " if near is not None else ""
    raise UsageError(f"unknown {kind} {value!r}; {hint}known: {', '.join(known)}")


def choose_all(
    kind: str, values: Iterable[str], known: Collection[str], synonyms: Mapping[str, str] = NONE
) -> tuple[str, ...]:
    """`values` without repetitions, in the order of the known ones; all those if there are none.

    Raises:
      UsageError: for the first value that is not known, as in `choose`.
    """
    wanted = set()
    for value in values:
        several = re.search("[,;]", value) or any(word in known for word in value.split())
        if value not in known and several and (hint := separated(value)) is not None:
            raise UsageError(f"unknown {kind} {value!r}; {hint}")
        wanted.add(choose(kind, value, known, synonyms))
    return tuple(name for name in known if not wanted or name in wanted)


def separated(value: str) -> str | None:
    """A hint for what was typed as one word although it looks like several; None for one word.

    >>> separated("ce,gce")
    'separate by spaces: ce gce'
    """
    words = [word for word in re.split(r"[\s,;]+", value) if word]
    return f"separate by spaces: {' '.join(words)}" if [value] != words and words else None


def nearest(name: str, known: Iterable[str], synonyms: Mapping[str, str] = NONE) -> str | None:
    """The known name most similar to `name`, in capitals or not; None if none is similar.

    Nor is there one where it is clear what `name` means, and that is not among the known ones.
    """
    known = list(known)
    meanings = {_letters(meant): meant for meant in synonyms.values()}
    meanings |= {_letters(other): meant for other, meant in synonyms.items()}
    clear = meanings.get(_letters(name))
    if clear is not None and clear not in known:
        return None
    by_letters = {_letters(other): meant for other, meant in synonyms.items() if meant in known}
    by_letters |= {_letters(candidate): candidate for candidate in known}
    matches = difflib.get_close_matches(_letters(name), by_letters, n=1, cutoff=SIMILAR)
    return by_letters[matches[0]] if matches else None


def _letters(name: str) -> str:
    """The name in small letters, and without what may be written between words."""
    return re.sub(r"[\s_-]+", "", name.lower()) or name
