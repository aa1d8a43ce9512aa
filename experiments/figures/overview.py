"""Figures of all cells at once: differences from cross-entropy as heatmaps, and ranks."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.ticker import MaxNLocator

from experiments.figures.layout import bars, labels_down, legend_beside, mean_and_sd
from experiments.figures.legend import Entry, Legend, present
from experiments.shell.figure_style import figure, save
from experiments.tables.paired_tests import REFERENCE
from pgeom.data.regimes import Regime
from pgeom.messages import count

# blue is better than the reference, orange is worse: also to readers who confuse red and green
BETTER = LinearSegmentedColormap.from_list(
    "better", ["#B35806", "#FDD0A2", "white", "#C6DBEF", "#2166AC"]
)
PANELS = {
    "accuracy": ("test accuracy (higher is better)", BETTER),
    "nll": ("test NLL in nats (lower is better)", BETTER.reversed()),
    "ece": ("test ECE (lower is better)", BETTER.reversed()),
}
RANKED = {"accuracy": False, "nll": True, "brier": True, "ece": True}  # is lower better?


def metric_heatmaps(frame: pd.DataFrame, entries: Legend, path: Path) -> list[Path]:
    """Accuracy, NLL and ECE as differences from cross-entropy: losses down, cells across.

    The first row has cross-entropy's own means; grey where a loss was not run. Nothing is drawn
    where there is no cross-entropy.
    """
    losses = present(entries, frame)
    names = [REFERENCE, *(one.name for one in losses if one.name != REFERENCE)]
    if REFERENCE not in entries or len(names) != len(losses):
        return []
    columns = list(dict.fromkeys(cell_names(frame)))
    # no panel is shorter than the words beside its colours
    size = (2 + 0.62 * len(columns), 3 * max(2.6, 1.1 + 0.24 * len(losses)))
    with figure(3, 1, size, sharex=True, layout="constrained") as (drawing, axes):
        for axis, (metric, (label, colours)) in zip(axes[:, 0], PANELS.items(), strict=True):
            means = cell_means(frame, metric).reindex(index=names, columns=columns)
            image = _heatmap(axis, means, colours)
            axis.set_yticks(np.arange(len(names)) + 0.5, ["CE, mean", *_labels(entries, names[1:])])
            bar = drawing.colorbar(
                image, ax=axis, location="right", shrink=0.9, aspect=30, extend="both"
            )
            bar.set_label(f"{label}:\ndifference from CE, blue is better")
        turned = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
        axes[-1, 0].set_xticks(np.arange(len(columns)) + 0.5, columns, **turned)
        drawing.suptitle(f"means over {count(frame['seed'].nunique(), 'seed')}", fontsize=10)
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
        _rank_panel(right, rank_losses(balanced(frame), [one.name for one in losses]), entries)
        return save(drawing, path)


def balanced(frame: pd.DataFrame) -> pd.DataFrame:
    """Without the long tail, where most losses are near chance and their ranks mean little."""
    kinds = {name: Regime.parse(name).kind for name in frame["regime"].astype(str).unique()}
    return frame[frame["regime"].astype(str).map(kinds) != "long-tail"]


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


def _labels(entries: Legend, names: list[str]) -> list[str]:
    return [entries[name].label for name in names]


def _heatmap(axis, means: pd.DataFrame, colours: Colormap):
    """Differences from the first row, which has the numbers themselves."""
    values = means.to_numpy()
    differences = values - values[:1]
    differences[0] = 0
    # a few large differences should not leave the others pale: the scale ends at most of them
    limit = max(np.nanquantile(np.abs(differences[1:]), 0.85), 1e-3) if len(values) > 1 else 1.0
    limits, look = Normalize(-limit, limit), {"edgecolors": "white", "linewidth": 0.6}
    image = axis.pcolormesh(np.ma.masked_invalid(differences), cmap=colours, norm=limits, **look)
    axis.set_facecolor("0.85")
    axis.grid(False)
    axis.invert_yaxis()
    for row, column in np.argwhere(np.isfinite(values)):
        text = f"{values[row, column]:.2f}" if row == 0 else f"{differences[row, column]:+.2f}"
        light = sum(image.cmap(image.norm(differences[row, column]))[:3]) > 1.5
        look = {
            "ha": "center",
            "va": "center",
            "fontsize": 8,
            "color": "black" if light else "white",
        }
        # out of the layout: to measure hundreds of texts takes longer than to draw them
        axis.text(column + 0.5, row + 0.5, short(text), **look).set_in_layout(False)
    return image


def short(text: str) -> str:
    """A number without the zero before its point, and with a minus sign that is one.

    >>> short("-0.25"), short("+1.20"), short("-0.00")
    ('−.25', '+1.20', '.00')
    """
    sign, digits = (text[0], text[1:]) if text[0] in "+-" else ("", text)
    if float(digits) == 0:
        sign = ""
    return sign.replace("-", "−") + (digits[1:] if digits.startswith("0.") else digits)


def _clean_point(axis, runs: pd.DataFrame, entry: Entry) -> None:
    (nll, nll_sd), (accuracy, accuracy_sd) = (mean_and_sd(runs[m]) for m in ("nll", "accuracy"))
    look = {**entry.style, "markersize": 6, "linestyle": "", "elinewidth": 0.5}
    ends = {"xerr": bars(nll, nll_sd), "yerr": bars(accuracy, accuracy_sd, top=1.0)}
    axis.errorbar(nll, accuracy, **ends, **look)


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
    axis.set_title(f"ranks in {ranks.shape[1]} cells × metrics: mean, middle half\nno long tail")
