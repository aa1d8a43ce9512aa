"""Figures of all cells at once: heatmaps of the means, and ranks."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import MaxNLocator

from experiments.figures.layout import labels_down, legend_beside, mean_and_sd
from experiments.figures.legend import Entry, Legend, present
from pgeom.frontend.figure_style import figure, save

PANELS = {  # the map of each is darkest at its worst end, and the same in grey
    "accuracy": ("test accuracy (higher is better)", "viridis", Normalize),
    "nll": ("test NLL in nats (lower is better)", "viridis_r", LogNorm),
    "ece": ("test ECE (lower is better)", "viridis_r", Normalize),
}
RANKED = {"accuracy": False, "nll": True, "brier": True, "ece": True}  # is lower better?


def metric_heatmaps(frame: pd.DataFrame, entries: Legend, path: Path) -> list[Path]:
    """Mean accuracy, NLL and ECE: losses down, cells across, grey where a loss was not run."""
    losses = present(entries, frame)
    columns = list(dict.fromkeys(cell_names(frame)))
    size = (3 * (1.1 + 0.36 * len(columns)), max(3.2, 1.5 + 0.24 * len(losses)))
    with figure(1, 3, size, sharey=True, layout="constrained") as (drawing, axes):
        for axis, (metric, panel) in zip(axes[0], PANELS.items(), strict=True):
            means = cell_means(frame, metric).reindex(
                index=[entry.name for entry in losses], columns=columns
            )
            _heatmap(drawing, axis, means, *panel)
        axes[0][0].set_yticks(range(len(losses)), [entry.label for entry in losses])
        seeds = frame["seed"].nunique()
        drawing.suptitle(f"means over {seeds} seeds", fontsize=10)
        return save(drawing, path)


def clean_ranks(frame: pd.DataFrame, entries: Legend, path: Path) -> list[Path]:
    """Accuracy against NLL on clean digits; the mean rank of each loss over cells and metrics."""
    clean = frame[(frame["dataset"] == "digits") & (frame["regime"] == "clean")]
    losses = present(entries, clean)
    size = (9.2, max(3.2, 1 + 0.24 * len(losses)))
    with figure(1, 2, size, gridspec_kw={"wspace": 0.95}) as (drawing, axes):
        left, right = axes[0]
        for entry in losses:
            _clean_point(left, clean[clean["loss"] == entry.name], entry)
        left.set_xlabel("test NLL in nats (lower is better)")
        left.set_ylabel("test accuracy (higher is better)")
        left.set_title("digits, clean: mean ± sample sd over seeds")
        legend_beside(left)
        _rank_panel(right, rank_losses(frame, [entry.name for entry in losses]), entries)
        return save(drawing, path)


def cell_names(frame: pd.DataFrame) -> pd.Series:
    """The dataset and regime of each run, in a word."""
    return frame["dataset"].astype(str) + " " + frame["regime"].astype(str)


def cell_means(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Means over seeds: losses down, cells across."""
    values = frame[metric].astype(float)
    means = values.groupby([frame["loss"].astype(str), cell_names(frame)]).mean()
    return means.unstack()


def rank_losses(frame: pd.DataFrame, losses: list[str]) -> pd.DataFrame:
    """Ranks of the losses among each other, one column per cell and metric; 1 is best."""
    parts = []
    for metric, lower in RANKED.items():
        means = cell_means(frame, metric).loc[losses]
        parts.append(means.rank(ascending=lower, na_option="bottom"))
    return pd.concat(parts, axis=1)


def _heatmap(drawing, axis, means: pd.DataFrame, label, colours, norm) -> None:
    values = means.to_numpy()
    image = axis.imshow(values, cmap=colours, norm=norm(), aspect="auto")
    axis.set_facecolor("0.85")
    axis.grid(False)
    axis.set_xticks(range(len(means.columns)), means.columns, rotation=60, ha="right", fontsize=7)
    for row, column in np.argwhere(np.isfinite(values)):
        value = values[row, column]
        light = sum(image.cmap(image.norm(value))[:3]) > 1.5
        text = f"{value:.2f}" if value >= 1 else f"{value:.2f}".lstrip("0")
        colour = "black" if light else "white"
        look = {"ha": "center", "va": "center", "fontsize": 6, "color": colour}
        # out of the layout: to measure hundreds of texts takes longer than to draw them
        axis.text(column, row, text, **look).set_in_layout(False)
    drawing.colorbar(image, ax=axis, location="top", shrink=0.9, label=label)


def _clean_point(axis, runs: pd.DataFrame, entry: Entry) -> None:
    (nll, nll_sd), (accuracy, accuracy_sd) = (mean_and_sd(runs[m]) for m in ("nll", "accuracy"))
    look = {**entry.style, "markersize": 6, "linestyle": "", "elinewidth": 0.5}
    axis.errorbar(nll, accuracy, xerr=nll_sd, yerr=accuracy_sd, **look)


def _rank_panel(axis, ranks: pd.DataFrame, entries: Legend) -> None:
    """Losses by mean rank, the best on top, with the middle half of their ranks."""
    mean = ranks.mean(axis=1).sort_values()
    low, high = (ranks.quantile(q, axis=1) for q in (0.25, 0.75))
    for place, name in enumerate(mean.index):
        colour, marker = entries[name].colour, entries[name].marker
        axis.plot([low[name], high[name]], [place, place], color=colour, linewidth=1.2, alpha=0.6)
        axis.plot(mean[name], place, marker, color=colour, markersize=6)
    labels_down(axis, [entries[name].label for name in mean.index])
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlabel("mean rank (lower is better)")
    axis.set_title(f"ranks in {ranks.shape[1]} cells × metrics: mean, middle half")
