"""How each loss of a study is drawn: its label, family, colour and marker, the same everywhere.

>>> from pgeom.losses.catalogue import LOSSES
>>> entries = legend([LOSSES["ce"], LOSSES["hpg"]])
>>> entries["hpg"].label, entries["hpg"].marker
('HPG', '*')
>>> {family: [entry.name for entry in shown] for family, shown in by_family(entries).items()}
{'Generator-based': ['ce', 'hpg']}
"""

from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any, NamedTuple

from experiments.shell.figure_style import LOOKS, SPARE
from experiments.tables.paired_tests import REFERENCE
from pgeom.losses.spec import LossSpec


class Entry(NamedTuple):
    """One loss in a legend."""

    name: str
    label: str
    family: str
    colour: str
    marker: str
    studied: bool

    @property
    def style(self) -> dict[str, Any]:
        """Arguments of a matplotlib line."""
        look = {"color": self.colour, "marker": self.marker, "markersize": 4}
        return {**look, "label": self.label}


Legend = dict[str, Entry]
"""The entries of a study's losses by name, in its order."""


def legend(losses: Sequence[LossSpec]) -> Legend:
    """The entries of these losses; those without a look are given one that is still free."""
    spare = cycle(SPARE)
    entries = {}
    for loss in losses:
        look = LOOKS.get(loss.name) or next(spare)
        entries[loss.name] = Entry(loss.name, loss.label, loss.family, *look, loss.studied)
    return entries


def by_family(entries: Legend, losses: Iterable[str] | None = None) -> dict[str, list[Entry]]:
    """The families of which there is a loss, each behind cross-entropy, or else that alone.

    Those of the candidates come last, as in the paper's figures.

    Args:
      entries: of a study.
      losses: names to restrict them to.
    """
    shown = [entry for entry in entries.values() if losses is None or entry.name in set(losses)]
    reference = [entry for entry in shown if entry.name == REFERENCE]
    families: dict[str, list[Entry]] = {}
    for entry in shown:
        if entry not in reference:
            families.setdefault(entry.family, [*reference]).append(entry)
    studied = {entry.family for entry in shown if entry.studied}
    ordered = sorted(families.items(), key=lambda item: item[0] in studied)
    return dict(ordered) or {entry.family: [entry] for entry in reference}


def present(entries: Legend, frame) -> list[Entry]:
    """The entries of which the frame has runs."""
    recorded = set(frame["loss"])
    return [entry for entry in entries.values() if entry.name in recorded]
