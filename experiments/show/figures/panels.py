"""What panels are drawn with: the look of each loss, legends, and the forms that figures share.

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
import pandas as pd
from matplotlib.ticker import FuncFormatter

from experiments.show.style import LOOKS, SPARE
from pgeom.losses.spec import LossSpec
from pgeom.messages import count

REFERENCE = "ce"
PLAIN = FuncFormatter(lambda value, _: f"{value:g}")


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


def present(entries: Legend, frame: pd.DataFrame) -> list[Entry]:
    """The entries of which the frame has runs."""
    recorded = set(frame["loss"])
    return [entry for entry in entries.values() if entry.name in recorded]


def seeds(frame: pd.DataFrame) -> str:
    """How many seeds there are, in words."""
    return count(frame["seed"].nunique(), "seed")


def title(drawing, text: str) -> None:
    """A title above all panels."""
    drawing.suptitle(text, y=1.02, fontsize=10)


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


def height(rows: float) -> float:
    """Inches of a panel with so many labels down it."""
    return 0.9 + 0.24 * rows


class Series(NamedTuple):
    """Some runs and the field of them that is shown; without a colour each loss has its own."""

    frame: pd.DataFrame
    field: str
    label: str | None = None
    colour: str | None = None
    marker: str = "D"


def dots(axis, entries: Sequence[Entry], series: Sequence[Series], label: str) -> None:
    """The seeds of every loss as light points and their mean as a full one, one row per loss."""
    for number, (frame, field, name, colour, marker) in enumerate(series):
        offset = 0.28 * (number - (len(series) - 1) / 2)
        for row, entry in enumerate(entries):
            values = frame[frame["loss"] == entry.name][field].astype(float)
            own, shape = (colour, marker) if colour else (entry.colour, entry.marker)
            places = np.full(len(values), row + offset)
            axis.plot(values, places, ".", color=own, alpha=0.35, markersize=4)
            named = name if row == 0 else None
            axis.plot(values.mean(), row + offset, shape, color=own, markersize=5, label=named)
    labels_down(axis, [entry.label for entry in entries])
    right = axis.get_xlim()[1]
    axis.set_xlim(-0.02 * right, 1.04 * right)
    axis.set_xlabel(label)


def points(axis, entry: Entry, x, values: pd.DataFrame, top: float = np.inf, **line) -> None:
    """Mean ± sample sd over seeds of each column, at the places `x`."""
    values = values.astype(float)
    ends = bars(values.mean(), values.std(ddof=1).fillna(0), top)
    look = {"elinewidth": 0.7, "capsize": 1.5, **entry.style, **line}
    axis.errorbar(x, values.mean(), yerr=ends, **look)


def bars(mean, sd, top: float = np.inf) -> np.ndarray:
    """Error bars `[2, n]` of one sd that end where no value can be: at 0, and at `top`.

    >>> bars([0.99, 0.5], [0.03, 0.1], top=1.0).round(2).tolist()
    [[0.03, 0.1], [0.01, 0.1]]
    """
    mean, sd = (np.atleast_1d(np.asarray(one, float)) for one in (mean, sd))
    room = np.stack([mean, top - mean])  # below and above
    return np.minimum(sd, np.maximum(room, 0))


def heat(axis, values: np.ndarray, columns: Sequence[str], texts, *, size=8, **look):
    """Coloured cells `[rows, columns]`, grey where there is no number, with texts in them."""
    edges = {"edgecolors": "white", "linewidth": 0.6}
    image = axis.pcolormesh(np.ma.masked_invalid(values), **edges, **look)
    axis.set_facecolor("0.85")
    axis.grid(False)
    axis.set_ylim(len(values), 0)
    turned = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    axis.set_xticks(np.arange(len(columns)) + 0.5, columns, **turned)
    for row, column in np.argwhere(np.isfinite(values)):
        light = sum(image.cmap(image.norm(values[row, column]))[:3]) > 1.5
        words = {"ha": "center", "va": "center", "color": "black" if light else "white"}
        # out of the layout: to measure hundreds of texts takes longer than to draw them
        text = axis.text(column + 0.5, row + 0.5, texts[row][column], fontsize=size, **words)
        text.set_in_layout(False)
    return image


def rows_down(axis, labels: Sequence[str]) -> None:
    """Labels of the rows of `heat`."""
    axis.set_yticks(np.arange(len(labels)) + 0.5, labels)


def short(text: str) -> str:
    """A number without the zero before its point, and with a minus sign that is one.

    >>> short("-0.25"), short("+1.20"), short("-0.00")
    ('−.25', '+1.20', '.00')
    """
    sign, digits = (text[0], text[1:]) if text[0] in "+-" else ("", text)
    if float(digits) == 0:
        sign = ""
    return sign.replace("-", "−") + (digits[1:] if digits.startswith("0.") else digits)
