"""Names that a user types: checked against the known ones, with a hint at the nearest.

>>> choose_all("loss", ("hpg", "ce"), ("ce", "gce", "hpg"))
('ce', 'hpg')
>>> nearest("HGP", ("ce", "gce", "hpg"))
'hpg'
"""

import difflib
from collections.abc import Collection, Iterable

from pgeom.frontend.errors import UsageError

SIMILAR = 0.3  # below this share of common letters a hint would only confuse


def choose(kind: str, value: str, known: Collection[str]) -> str:
    """`value` if it is known.

    Args:
      kind: what is named, as in "loss", for the message.
      value: the name that the user typed.
      known: all valid names.

    Raises:
      UsageError: otherwise, naming the nearest known name.
    """
    if value in known:
        return value
    near = nearest(value, known)
    hint = f"did you mean {near!r}? " if near is not None else ""
    raise UsageError(f"unknown {kind} {value!r}; {hint}known: {', '.join(known)}")


def choose_all(kind: str, values: Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """`values` without repetitions, in the order of the known ones; all those if there are none.

    Raises:
      UsageError: for the first value that is not known, as in `choose`.
    """
    wanted = {choose(kind, value, known) for value in values}
    return tuple(name for name in known if not wanted or name in wanted)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most similar to `name`, in capitals or not; None if none is similar."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=SIMILAR)
    return by_lower[matches[0]] if matches else None
