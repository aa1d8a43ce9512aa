"""One style for every figure: fonts, colours, one look a loss, and how a figure is saved."""

from contextlib import contextmanager
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

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
    "savefig.bbox": "tight",
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


def save(figure, path: Path) -> list[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    written = [path.with_name(path.name + suffix) for suffix in (".png", ".pdf")]
    for target in written:
        figure.savefig(target)
    return written
