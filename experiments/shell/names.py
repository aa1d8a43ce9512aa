"""Names that a user types, several at a time.

>>> choose_all("loss", ("hpg", "ce"), ("ce", "gce", "hpg"))
('ce', 'hpg')
"""

import re
from collections.abc import Collection, Iterable, Mapping

from experiments.shell.errors import UsageError, refusals
from pgeom.messages import NONE, known_name, separated


def choose_all(
    kind: str, values: Iterable[str], known: Collection[str], synonyms: Mapping[str, str] = NONE
) -> tuple[str, ...]:
    """`values` without repetitions, in the order of the known ones; all those if there are none.

    Raises:
      UsageError: for the first value that is not known, with the nearest that is.
    """
    wanted = set()
    for value in values:
        several = re.search("[,;]", value) or any(word in known for word in value.split())
        if value not in known and several and (hint := separated(value)) is not None:
            raise UsageError(f"unknown {kind} {value!r}; {hint}")
        with refusals():
            wanted.add(known_name(kind, value, known, synonyms))
    return tuple(name for name in known if not wanted or name in wanted)
