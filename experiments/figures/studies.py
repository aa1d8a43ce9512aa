"""Figures of the long tail, the ablations and the learning rates."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from experiments.figures.layout import labels_down, legend_beside, mean_and_sd, seed_points
from experiments.figures.legend import Legend, present
from pgeom.frontend.figure_style import BLUE, GREEN, RED, figure, save
from pgeom.losses.spec import LossSpec

COLOURS = (BLUE, RED, GREEN)
MARKERS = ("o", "s", "^")


def longtail(
    frames: dict[str, pd.DataFrame], entries: Legend, chance: float, path: Path
) -> list[Path]:
    """Balanced accuracy of every loss, one point per seed, by study if there are several."""
    first = next(iter(frames.values()))
    losses = present(entries, first)
    with figure(1, 1, (5.6, 0.9 + 0.24 * len(losses))) as (drawing, axes):
        axis = axes[0][0]
        if len(frames) == 1:
            seed_points(axis, first, losses, "balanced_accuracy")
        else:
            for number, (name, frame) in enumerate(frames.items()):
                offset = 0.3 * (number - (len(frames) - 1) / 2)
                look = {"colour": COLOURS[number], "marker": MARKERS[number], "label": name}
                seed_points(axis, frame, losses, "balanced_accuracy", offset, **look)
            axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.04), ncols=2)
        labels_down(axis, [entry.label for entry in losses])
        axis.axvline(chance, color="0.5", linestyle="--", linewidth=1)
        above = {"transform": axis.get_xaxis_transform(), "ha": "center", "va": "bottom"}
        axis.text(chance, 1.0, "chance", fontsize=7, color="0.4", **above)
        axis.set_xlim(left=0)
        axis.set_xlabel("balanced accuracy (higher is better)")
        seeds = first["seed"].nunique()
        drawing.text(0.9, 0.89, f"{seeds} seeds and their means", fontsize=7, ha="right")
        return save(drawing, path)


def ablations(
    frame: pd.DataFrame, families: dict[str, tuple[LossSpec, ...]], path: Path
) -> list[Path]:
    """Accuracy of the variants of each candidate, one line per place, mean ± sample sd."""
    places = list(dict.fromkeys(frame["place"]))
    with figure(1, len(families), (9, 3), sharey=True) as (drawing, axes):
        for axis, (family, variants) in zip(axes[0], families.items(), strict=True):
            for number, place in enumerate(places):
                runs = frame[frame["place"] == place]
                groups = [runs[runs["loss"] == variant.name]["accuracy"] for variant in variants]
                means, deviations = zip(*map(mean_and_sd, groups), strict=True)
                x = np.arange(len(variants)) + 0.12 * (number - 1)
                look = {"color": COLOURS[number], "marker": MARKERS[number], "markersize": 4}
                bars = {"linewidth": 1, "capsize": 2, "label": place}
                axis.errorbar(x, means, deviations, **look, **bars)
            axis.set_title(family)
            # "CAPM, no graph" is "no graph" below CAPM's panel, and CAPM itself is in full
            ticks = [variant.label.partition(", ")[2] or "full" for variant in variants]
            turned = {"rotation": 30, "ha": "right"} if len(max(ticks, key=len)) > 4 else {}
            axis.set_xticks(range(len(variants)), ticks, **turned)
        axes[0][0].set_ylabel("test accuracy (higher is better)")
        legend_beside(axes[0][-1])
        return save(drawing, path)


def lr_sensitivity(counts: pd.DataFrame, path: Path) -> list[Path]:
    """How often each learning rate was selected, one bar per loss."""
    with figure(1, 1, (6, 0.9 + 0.24 * len(counts))) as (drawing, axes):
        axis = axes[0][0]
        left = np.zeros(len(counts))
        for rate, colour in zip(counts.columns, COLOURS, strict=True):
            axis.barh(range(len(counts)), counts[rate], left=left, color=colour, label=f"{rate:g}")
            left += counts[rate].to_numpy()
        labels_down(axis, list(counts.index))
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set_xlabel("cells in which validation NLL selects the learning rate")
        legend_beside(axis, title="learning rate")
        return save(drawing, path)
