"""Figures: one style, one colour a loss, read from records and logits."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from experiments.cells import Cell
from experiments.protocol import LABELS, noise_of
from experiments.records import Store
from pgeom.evaluation import metrics

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
}
FAMILIES = {
    "Likelihood": ("label_smoothing", "focal", "poly1"),
    "Noise-robust": ("mae", "gce", "sce", "apl", "btl"),
    "Proper scores": ("brier", "capm", "hpg", "apms"),
}


def noise_accuracy(frame: pd.DataFrame, dataset: str, path: Path) -> list[Path]:
    """Test accuracy against the rate of symmetric label noise, a panel a family, CE in each."""
    rated = frame[frame["regime"].isin([r for r in frame["regime"].unique() if _symmetric(r)])]
    present = set(rated["loss"])
    families = {name: [m for m in members if m in present] for name, members in FAMILIES.items()}
    families = {name: members for name, members in families.items() if members} or {"": []}
    with plt.rc_context(STYLE):
        size = (1 + 2.2 * len(families), 2.9)
        figure, axes = plt.subplots(1, len(families), figsize=size, sharey=True, squeeze=False)
        for axis, (family, members) in zip(axes[0], families.items(), strict=True):
            shown = [loss for loss in ("ce", *members) if loss in present]
            for place, loss in enumerate(shown):
                _accuracy_line(axis, rated[rated["loss"] == loss], loss, place - len(shown) / 2)
            axis.set_title(family)
            axis.set_xlabel("symmetric label noise (%)")
            _legend_below(axis)
        axes[0][0].set_ylabel("test accuracy (higher is better)")
        seeds = rated["seed"].nunique()
        figure.suptitle(f"{dataset}: mean ± sample sd over {seeds} seeds", y=1.02, fontsize=10)
        return _save(figure, path)


def reliability(store: Store, cells: list[Cell], losses, path: Path) -> list[Path]:
    """Accuracy against confidence on the test split, pooled over the seeds of one regime."""
    families = {
        name: [loss for loss in ("ce", *members) if loss in losses]
        for name, members in FAMILIES.items()
    }
    families = {name: shown for name, shown in families.items() if shown}
    with plt.rc_context(STYLE):
        size = (1 + 2.2 * len(families), 4.1)
        layout = {"height_ratios": [3, 1], "hspace": 0.12}
        figure, axes = plt.subplots(
            2,
            len(families),
            figsize=size,
            sharex=True,
            sharey="row",
            squeeze=False,
            gridspec_kw=layout,
        )
        for column, (family, shown) in enumerate(families.items()):
            top, bottom = axes[:, column]
            top.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=1)
            for loss in shown:
                _reliability_curve(top, bottom, store, cells, loss)
            top.set_title(family)
            bottom.set_xlabel("top-class confidence")
            _legend_below(bottom, *top.get_legend_handles_labels())
        axes[0, 0].set_ylabel("accuracy in the bin")
        axes[1, 0].set_ylabel("share of\nexamples")
        title = f"{cells[0].dataset}, {cells[0].regime}: {len(cells)} test sets pooled, 15 bins"
        figure.suptitle(title, y=0.98, fontsize=10)
        return _save(figure, path)


def _legend_below(axis, *handles_and_labels) -> None:
    """Outside the axes, where it hides no point."""
    height = axis.get_window_extent().height / axis.figure.dpi
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.5 / height)}
    axis.legend(*handles_and_labels, **place, ncols=2, handlelength=1.6, columnspacing=1.2)


def _symmetric(regime: str) -> bool:
    return noise_of(regime)[0] in ("clean", "symmetric")


def _accuracy_line(axis, runs: pd.DataFrame, loss: str, offset: float) -> None:
    rates = runs["regime"].map(lambda regime: 100 * noise_of(regime)[1]).astype(float)
    groups = runs["accuracy"].astype(float).groupby(rates)
    mean, sd = groups.mean(), groups.std(ddof=1).fillna(0)
    colour, marker = LOOKS[loss]
    axis.errorbar(
        mean.index + 0.5 * offset,  # side by side, so that no error bar hides another
        mean,
        yerr=sd,
        color=colour,
        marker=marker,
        markersize=4,
        linewidth=1.2,
        elinewidth=0.8,
        capsize=2,
        label=LABELS[loss],
        zorder=3 if loss == "ce" else 2,
    )
    axis.set_xticks(sorted(set(rates)))


def _reliability_curve(top, bottom, store: Store, cells: list[Cell], loss: str) -> None:
    arrays = [store.logits(cell) for cell in cells]
    logits = np.concatenate([one[loss] for one in arrays])
    labels = np.concatenate([one["labels"] for one in arrays])
    if not np.all(np.isfinite(logits)):
        return
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    bins = metrics.reliability(shifted / shifted.sum(axis=1, keepdims=True), labels)
    confidence, accuracy, share = (np.asarray(value) for value in bins)
    colour, marker = LOOKS[loss]
    full = share >= 10 / len(labels)  # a bin of a few examples is noise
    line = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.2}
    top.plot(confidence[full], accuracy[full], label=LABELS[loss], **line)
    edges = np.linspace(0, 1, len(share) + 1)
    bottom.stairs(share, edges, color=colour, linewidth=1.2)


def _save(figure, path: Path) -> list[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    written = [path.with_name(path.name + suffix) for suffix in (".png", ".pdf")]
    for target in written:
        figure.savefig(target)
    plt.close(figure)
    return written
