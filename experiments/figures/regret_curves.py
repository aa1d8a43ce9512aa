"""Figures of regrets where the posterior is known: losses by scores, and against sample size."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.ticker import FuncFormatter, NullLocator

from experiments.figures.layout import legend_below
from experiments.figures.legend import Legend, by_family, present
from experiments.shell.figure_style import figure, save
from experiments.tables.regrets import CLEAN, RAW, SCORES

SMALLEST = 1e-4  # regret that a colour or a line still shows
PLAIN = FuncFormatter(lambda value, _: f"{value:g}")


def regret_heatmaps(frame: pd.DataFrame, entries: Legend, path: Path) -> list[Path]:
    """Mean regret of the largest sample: losses down, scores across, one panel per case.

    A case is a regime, the posterior that is compared with, and whether forecasts are as trained.
    """
    largest = frame[frame["size"] == frame["size"].max()]
    names = list(SCORES)
    cases = [*largest.groupby(["regime", "posterior", "forecast"], sort=False)]
    losses = present(entries, largest)
    size = (1.2 + 2.1 * len(cases), max(2.6, 1.4 + 0.24 * len(losses)))
    with figure(1, len(cases), size, sharey=True, layout="constrained") as (drawing, axes):
        for axis, ((regime, posterior, forecast), part) in zip(axes[0], cases, strict=True):
            means = part.groupby("loss", sort=False)[names].mean()
            values = means.loc[[entry.name for entry in losses]].to_numpy()
            shown = np.maximum(values, SMALLEST)
            image = axis.imshow(shown, cmap="viridis_r", norm=LogNorm(SMALLEST, 1), aspect="auto")
            axis.set_title(f"{regime}\nagainst {posterior} labels\n{forecast}", fontsize=8)
            axis.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=7)
            axis.grid(False)
            _write(axis, image, values)
        axes[0][0].set_yticks(range(len(losses)), [entry.label for entry in losses])
        words = {"label": "mean regret (lower is better)", "format": PLAIN}
        drawing.colorbar(image, ax=axes[0], shrink=0.8, **words)
        return save(drawing, path)


def _write(axis, image, values: np.ndarray) -> None:
    for row, column in np.ndindex(values.shape):
        value = values[row, column]
        dark = sum(image.cmap(image.norm(max(value, SMALLEST)))[:3]) < 1.5
        text = f"{value:.1f}" if value >= 1 else f"{value:.{2 + 2 * (value < 0.1)}f}".lstrip("0")
        look = {"ha": "center", "va": "center", "fontsize": 5}
        look["color"] = "white" if dark else "black"
        axis.text(column, row, text, **look).set_in_layout(False)


def regret_curves(frame: pd.DataFrame, entries: Legend, path: Path) -> list[Path]:
    """Log regret against the number of examples, one row per regime, one panel per family."""
    chosen = frame[(frame["posterior"] == CLEAN) & (frame["forecast"] == RAW)]
    families, regimes = by_family(entries, chosen["loss"]), list(dict.fromkeys(chosen["regime"]))
    size = (1 + 2.2 * len(families), 0.8 + 2.3 * len(regimes))
    made = figure(len(regimes), len(families), size, sharex=True, sharey=True)
    with made as (drawing, axes):
        for row, regime in zip(axes, regimes, strict=True):
            part = chosen[chosen["regime"] == regime]
            for axis, (family, shown) in zip(row, families.items(), strict=True):
                for entry in shown:
                    values = part[part["loss"] == entry.name].groupby("size")["log"]
                    axis.plot(values.mean().clip(lower=SMALLEST), linewidth=1.2, **entry.style)
                axis.set(xscale="log", yscale="log", title=f"{family}, {regime}")
                axis.set_xticks(sorted(set(part["size"])))
                axis.xaxis.set_major_formatter(PLAIN)
                axis.xaxis.set_minor_locator(NullLocator())
                axis.yaxis.set_major_formatter(PLAIN)
            row[0].set_ylabel("log regret in nats")
        for axis in axes[-1]:
            axis.set_xlabel("examples, 60% for training")
            legend_below(axis)
        return save(drawing, path)
