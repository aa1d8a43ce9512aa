"""Figures of the long tail, the ablations and the learning rates."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from experiments.cells import load
from experiments.figures.style import figure_of, losses_down, save, seed_points

COLOURS = ("#0072B2", "#D55E00", "#009E73")
MARKERS = ("o", "s", "^")


def longtail(frames: dict[str, pd.DataFrame], path: Path) -> list[Path]:
    """Balanced accuracy of every loss, a point a seed, by the way to stop if there are several."""
    first = next(iter(frames.values()))
    losses = list(first["loss"].cat.categories)
    with figure_of(1, 1, (5.6, 0.9 + 0.24 * len(losses))) as (figure, axes):
        axis = axes[0][0]
        if len(frames) == 1:
            seed_points(axis, first, losses, "balanced_accuracy")
        else:
            for number, (name, frame) in enumerate(frames.items()):
                offset = 0.3 * (number - (len(frames) - 1) / 2)
                look = {"colour": COLOURS[number], "marker": MARKERS[number], "label": name}
                seed_points(axis, frame, losses, "balanced_accuracy", offset, **look)
            axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.04), ncols=2)
        losses_down(axis, losses)
        chance = 1 / load(first["dataset"][0]).num_classes
        axis.axvline(chance, color="0.5", linestyle="--", linewidth=1)
        above = {"transform": axis.get_xaxis_transform(), "ha": "center", "va": "bottom"}
        axis.text(chance, 1.0, "chance", fontsize=7, color="0.4", **above)
        axis.set_xlim(left=0)
        axis.set_xlabel("balanced accuracy (higher is better)")
        seeds = first["seed"].nunique()
        figure.text(0.9, 0.89, f"{seeds} seeds and their means", fontsize=7, ha="right")
        return save(figure, path)


def ablations(frame: pd.DataFrame, families: dict[str, tuple], path: Path) -> list[Path]:
    """Accuracy of the variants of each candidate, a line a cell, mean ± sample sd."""
    places = list(dict.fromkeys(frame["place"]))
    with figure_of(1, len(families), (9, 3), sharey=True) as (figure, axes):
        for axis, (family, members) in zip(axes[0], families.items(), strict=True):
            for number, place in enumerate(places):
                runs = frame[frame["place"] == place]
                groups = [runs[runs["loss"] == name]["accuracy"].astype(float) for name in members]
                axis.errorbar(
                    np.arange(len(members)) + 0.12 * (number - 1),
                    [values.mean() for values in groups],
                    [values.std(ddof=1) if len(values) > 1 else 0 for values in groups],
                    color=COLOURS[number],
                    marker=MARKERS[number],
                    markersize=4,
                    linewidth=1,
                    capsize=2,
                    label=place,
                )
            axis.set_title(family)
            ticks = [_variant(name) for name in members]
            turned = {"rotation": 30, "ha": "right"} if len(max(ticks, key=len)) > 4 else {}
            axis.set_xticks(range(len(members)), ticks, **turned)
        axes[0][0].set_ylabel("test accuracy (higher is better)")
        axes[0][-1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
        return save(figure, path)


def lr_sensitivity(counts: pd.DataFrame, path: Path) -> list[Path]:
    """How often each learning rate was selected, a bar a loss."""
    with figure_of(1, 1, (6, 0.9 + 0.24 * len(counts))) as (figure, axes):
        axis = axes[0][0]
        left = np.zeros(len(counts))
        for rate, colour in zip(counts.columns, COLOURS, strict=True):
            axis.barh(range(len(counts)), counts[rate], left=left, color=colour, label=f"{rate:g}")
            left += counts[rate].to_numpy()
        losses_down(axis, list(counts.index))
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set_xlabel("cells in which validation NLL selects the learning rate")
        axis.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), title="learning rate")
        return save(figure, path)


def _variant(name: str) -> str:
    """`capm-no-graph` is "no graph", and `capm` alone is "full"."""
    return name.partition("-")[2].replace("-", " ") or "full"
