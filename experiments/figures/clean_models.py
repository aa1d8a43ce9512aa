"""Figures of models trained on clean data: calibration, corrupted and attacked inputs."""

from pathlib import Path

import numpy as np
import pandas as pd

from experiments.figures.layout import labels_down, legend_below, seed_points
from experiments.figures.legend import Entry, Legend, by_family, present
from pgeom.frontend.figure_style import BLUE, RED, figure, save


def calibration(frame: pd.DataFrame, entries: Legend, path: Path) -> list[Path]:
    """Raw and temperature-scaled ECE and NLL of every loss, one point per seed."""
    losses = present(entries, frame)
    panels = {"ECE": ("ece", "calibrated_ece"), "NLL": ("nll", "calibrated_nll")}
    with figure(1, 2, (7.2, 0.9 + 0.24 * len(losses)), sharey=True) as (drawing, axes):
        for axis, (name, fields) in zip(axes[0], panels.items(), strict=True):
            for field, colour, offset in zip(fields, (RED, BLUE), (-0.15, 0.15), strict=True):
                label = "temperature-scaled" if field.startswith("cal") else "raw"
                seed_points(axis, frame, losses, field, offset, colour=colour, label=label)
            axis.set_xlabel(f"test {name} (lower is better)")
            axis.set_xlim(left=0)
        labels_down(axes[0][0], [entry.label for entry in losses])
        axes[0][1].legend(loc="lower right")
        seeds, name = frame["seed"].nunique(), frame["dataset"].iloc[0]
        drawing.suptitle(f"{name}, clean: {seeds} seeds and their means", y=1.0, fontsize=10)
        return save(drawing, path)


def natural_corruption(
    frame: pd.DataFrame, entries: Legend, columns: dict[str, str], path: Path
) -> list[Path]:
    """Accuracy under each random corruption, one panel per family."""
    ticks = [label.removesuffix(" ↑") for label in columns.values()]
    return _panels(frame, entries, list(columns), ticks, "input corruption", path)


def attacks(frame: pd.DataFrame, entries: Legend, path: Path) -> list[Path]:
    """Accuracy against the radius of FGSM and of projected gradient attacks."""
    radii = {"FGSM": (0, 0.05, 0.1, 0.2), "PGD": (0, 0.1, 0.2)}
    losses = present(entries, frame)
    with figure(1, 2, (8.4, 3.4), sharey=True) as (drawing, axes):
        for axis, (name, levels) in zip(axes[0], radii.items(), strict=True):
            for place, entry in enumerate(losses):
                fields = ["accuracy", *(f"{name.lower()}_{level:g}" for level in levels[1:])]
                offset = 0.06 * (place - (len(losses) - 1) / 2)
                _line(axis, frame, entry, fields, np.arange(len(levels)) + offset)
            axis.set_xlabel(f"{name} radius ε, on pixels in [0, 1]")
            axis.set_xticks(range(len(levels)), [f"{level:g}" for level in levels])
        # attacked accuracies are small: logarithmic down to one in a hundred, linear to zero
        axes[0][0].set_yscale("symlog", linthresh=0.01, linscale=0.6)
        axes[0][0].set_ylim(0, 1.2)
        shown = (0, 0.01, 0.03, 0.1, 0.3, 1)
        axes[0][0].set_yticks(shown, [f"{value:g}" for value in shown])
        axes[0][0].minorticks_off()
        axes[0][0].set_ylabel("test accuracy (higher is better)")
        axes[0][1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
        seeds, name = frame["seed"].nunique(), frame["dataset"].iloc[0]
        title = f"{name}, clean-trained models: mean ± sample sd over {seeds} seeds"
        drawing.suptitle(title, y=1.0, fontsize=10)
        return save(drawing, path)


def _panels(frame, entries: Legend, fields, ticks, what: str, path: Path) -> list[Path]:
    families = by_family(entries, frame["loss"])
    size = (1 + 2.2 * len(families), 2.9)
    with figure(1, len(families), size, sharey=True) as (drawing, axes):
        for axis, (family, shown) in zip(axes[0], families.items(), strict=True):
            for place, entry in enumerate(shown):
                offset = 0.11 * (place - (len(shown) - 1) / 2)
                _line(axis, frame, entry, fields, np.arange(len(fields)) + offset)
            axis.set_title(family)
            axis.set_xticks(range(len(fields)), ticks, rotation=30, ha="right")
            legend_below(axis, gap=0.75)
        axes[0][0].set_ylabel("test accuracy (higher is better)")
        seeds, name = frame["seed"].nunique(), frame["dataset"].iloc[0]
        title = f"{name}, clean-trained models under {what}: mean ± sample sd over {seeds} seeds"
        drawing.suptitle(title, y=1.02, fontsize=10)
        return save(drawing, path)


def _line(axis, frame, entry: Entry, fields, x) -> None:
    """Mean ± sample sd of some fields, without a line: they have no order that it could follow."""
    values = frame[frame["loss"] == entry.name][fields].astype(float)
    bars = {"elinewidth": 0.7, "capsize": 1.5, "linestyle": ""}
    axis.errorbar(x, values.mean(), values.std(ddof=1).fillna(0), **entry.style, **bars)
