"""What several figures share: legends outside the axes, losses down an axis, points per seed."""

from collections.abc import Sequence

import numpy as np

from experiments.figures.legend import Entry


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
