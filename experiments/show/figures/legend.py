"""How losses are drawn: label, family, colour and marker, the same in every figure, and legends.

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

import numpy as np

from experiments.show.style import LOOKS, SPARE
from experiments.show.summary import REFERENCE
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


def legend_below(axis, *handles_and_labels, gap: float = 0.5) -> None:
    """A legend outside the axes, so many inches below, where it hides no point."""
    height = axis.get_window_extent().height / axis.figure.dpi
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -gap / height)}
    axis.legend(*handles_and_labels, **place, ncols=2, handlelength=1.6, columnspacing=1.2)


def legend_beside(axis, **more) -> None:
    """A legend outside the axes, to the right."""
    axis.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), **more)


def labels_down(axis, labels: Sequence[str]) -> None:
    """Labels down the axis, the first on top."""
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.4, -0.6)


def seed_points(
    axis,
    frame,
    entries: Sequence[Entry],
    field: str,
    offset: float = 0.0,
    *,
    colour: str | None = None,
    marker: str = "D",
    label: str | None = None,
) -> None:
    """The seeds of every loss as light points and their mean as a full one, one row per loss.

    Each loss has its own look where no colour is given.
    """
    for place, entry in enumerate(entries):
        values = frame[frame["loss"] == entry.name][field].astype(float)
        own, shape = (colour, marker) if colour else (entry.colour, entry.marker)
        heights = np.full(len(values), place + offset)
        axis.plot(values, heights, ".", color=own, alpha=0.35, markersize=4)
        named = label if place == 0 else None
        axis.plot(values.mean(), place + offset, shape, color=own, markersize=5, label=named)


def bars(mean, sd, top: float = np.inf) -> np.ndarray:
    """Error bars `[2, n]` of one sd that end where no value can be: at 0, and at `top`.

    >>> bars([0.99, 0.5], [0.03, 0.1], top=1.0).round(2).tolist()
    [[0.03, 0.1], [0.01, 0.1]]
    """
    mean, sd = (np.atleast_1d(np.asarray(one, float)) for one in (mean, sd))
    room = np.stack([mean, top - mean])  # below and above
    return np.minimum(sd, np.maximum(room, 0))


def mean_and_sd(values) -> tuple[float, float]:
    """Mean and sample standard deviation, the latter 0 for a single run."""
    values = np.asarray(values, float)
    return values.mean(), values.std(ddof=1) if len(values) > 1 else 0.0
