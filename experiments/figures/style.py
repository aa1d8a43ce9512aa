"""One style for every figure: fonts, colours, one look a loss, and how a figure is saved."""

from contextlib import contextmanager
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from experiments.protocol import LABELS

STYLE = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.9",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
}

# Okabe and Ito's colours within each family, with a marker of its own: told apart without colour.
LOOKS = {
    "ce": ("#000000", "o"),
    "label_smoothing": ("#0072B2", "s"),
    "focal": ("#56B4E9", "^"),
    "poly1": ("#CC79A7", "D"),
    "mae": ("#E69F00", "v"),
    "gce": ("#009E73", "P"),
    "sce": ("#D55E00", "X"),
    "apl": ("#999933", "<"),
    "btl": ("#882255", ">"),
    "brier": ("#44AA99", "h"),
    "capm": ("#332288", "p"),
    "hpg": ("#AA4499", "*"),
    "apms": ("#DDAA33", "d"),
    "cb_ce": ("#117733", "s"),
    "balanced_softmax": ("#88CCEE", "^"),
    "logit_adjustment": ("#CC6677", "v"),
    "ldam": ("#661100", "D"),
}
FAMILIES = {
    "Likelihood": ("label_smoothing", "focal", "poly1"),
    "Noise-robust": ("mae", "gce", "sce", "apl", "btl"),
    "Proper scores": ("brier", "capm", "hpg", "apms"),
}


def shown_families(losses: set[str]) -> dict[str, list[str]]:
    """The families of which there is a loss, each with CE in front, or else CE alone."""
    shown = {name: [m for m in members if m in losses] for name, members in FAMILIES.items()}
    reference = ["ce"] if "ce" in losses else []
    families = {name: reference + members for name, members in shown.items() if members}
    return families or ({"Likelihood": reference} if reference else {})


@contextmanager
def figure_of(rows: int, columns: int, size: tuple[float, float], **layout):
    """A figure and its axes `[rows][columns]`, in the house style, closed at the end."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, **layout)
        try:
            yield figure, axes
        finally:
            plt.close(figure)


def legend_below(axis, *handles_and_labels, gap: float = 0.5) -> None:
    """Outside the axes, so many inches below, where it hides no point."""
    height = axis.get_window_extent().height / axis.figure.dpi
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -gap / height)}
    axis.legend(*handles_and_labels, **place, ncols=2, handlelength=1.6, columnspacing=1.2)


def legend_beside(axis, **more) -> None:
    """Outside the axes, to the right."""
    axis.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), **more)


def losses_down(axis, losses) -> None:
    """The names of the losses down the axis, the first on top."""
    axis.set_yticks(range(len(losses)), [LABELS[loss] for loss in losses])
    axis.set_ylim(len(losses) - 0.4, -0.6)


def seed_points(
    axis, frame, losses, field, offset=0.0, *, colour=None, marker="D", label=None
) -> None:
    """The seeds of every loss as light points and their mean as a full one, a row a loss.

    Each loss has its own look where no colour is given.
    """
    for place, loss in enumerate(losses):
        values = frame[frame["loss"] == loss][field].astype(float)
        own, shape = (colour, marker) if colour else LOOKS[loss]
        heights = np.full(len(values), place + offset)
        axis.plot(values, heights, ".", color=own, alpha=0.35, markersize=4)
        named = label if place == 0 else None
        axis.plot(values.mean(), place + offset, shape, color=own, markersize=5, label=named)


def present(frame, names) -> list[str]:
    """Those of the named losses that the records have, in that order."""
    there = set(frame["loss"])
    return [name for name in names if name in there]


def save(figure, path: Path) -> list[Path]:
    """Write a figure as PNG and PDF, cut to what is drawn."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = [path.with_name(path.name + suffix) for suffix in (".png", ".pdf")]
    # measured once for both: it takes as long as to draw
    figure.draw_without_rendering()
    drawn = figure.get_tightbbox().padded(plt.rcParams["savefig.pad_inches"])
    figure.set_layout_engine("none")
    for target in written:
        figure.savefig(target, bbox_inches=drawn)
    return written
