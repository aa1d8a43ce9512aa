"""Figures of calibration and of perturbed inputs."""

from pathlib import Path

import numpy as np
import pandas as pd

from experiments.figures.style import (
    LOOKS,
    figure_of,
    legend_below,
    losses_down,
    save,
    seed_points,
    shown_families,
)
from experiments.protocol import LABELS


def calibration(frame: pd.DataFrame, path: Path) -> list[Path]:
    """Raw and temperature-scaled ECE and NLL of every loss, a point a seed."""
    losses = list(frame["loss"].cat.categories)
    panels = {"ECE": ("ece", "calibrated_ece"), "NLL": ("nll", "calibrated_nll")}
    with figure_of(1, 2, (7.2, 0.9 + 0.24 * len(losses)), sharey=True) as (figure, axes):
        for axis, (name, fields) in zip(axes[0], panels.items(), strict=True):
            for field, colour, offset in zip(
                fields, ("#D55E00", "#0072B2"), (-0.15, 0.15), strict=True
            ):
                label = "temperature-scaled" if field.startswith("cal") else "raw"
                seed_points(axis, frame, losses, field, offset, colour=colour, label=label)
            axis.set_xlabel(f"test {name} (lower is better)")
            axis.set_xlim(left=0)
        losses_down(axes[0][0], losses)
        axes[0][1].legend(loc="lower right")
        seeds = frame["seed"].nunique()
        figure.suptitle(f"digits, clean: {seeds} seeds and their means", y=1.0, fontsize=10)
        return save(figure, path)


def natural_corruption(frame: pd.DataFrame, columns: dict[str, str], path: Path) -> list[Path]:
    """Accuracy under each random corruption, a panel a family."""
    ticks = [label.removesuffix(" ↑") for label in columns.values()]
    return _panels(frame, list(columns), ticks, "input corruption", path)


def attacks(frame: pd.DataFrame, path: Path) -> list[Path]:
    """Accuracy against the radius of FGSM and of projected gradient attacks."""
    radii = {"FGSM": (0, 0.05, 0.1, 0.2), "PGD": (0, 0.1, 0.2)}
    losses = list(frame["loss"].cat.categories)
    with figure_of(1, 2, (8.4, 3.4), sharey=True) as (figure, axes):
        for axis, (name, levels) in zip(axes[0], radii.items(), strict=True):
            for place, loss in enumerate(losses):
                fields = ["accuracy", *(f"{name.lower()}_{level:g}" for level in levels[1:])]
                offset = 0.06 * (place - (len(losses) - 1) / 2)
                _line(axis, frame, loss, fields, np.arange(len(levels)) + offset, linestyle="")
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
        seeds = frame["seed"].nunique()
        title = f"digits, clean-trained models: mean ± sample sd over {seeds} seeds"
        figure.suptitle(title, y=1.0, fontsize=10)
        return save(figure, path)


def _panels(frame, fields, ticks, what: str, path: Path) -> list[Path]:
    families = shown_families(set(frame["loss"]))
    size = (1 + 2.2 * len(families), 2.9)
    with figure_of(1, len(families), size, sharey=True) as (figure, axes):
        for axis, (family, shown) in zip(axes[0], families.items(), strict=True):
            for place, loss in enumerate(shown):
                offset = 0.11 * (place - (len(shown) - 1) / 2)
                # kinds of corruption have no order that a line could follow
                _line(axis, frame, loss, fields, np.arange(len(fields)) + offset, linestyle="")
            axis.set_title(family)
            axis.set_xticks(range(len(fields)), ticks, rotation=30, ha="right")
            legend_below(axis, gap=0.75)
        axes[0][0].set_ylabel("test accuracy (higher is better)")
        seeds = frame["seed"].nunique()
        title = f"digits, clean-trained models under {what}: mean ± sample sd over {seeds} seeds"
        figure.suptitle(title, y=1.02, fontsize=10)
        return save(figure, path)


def _line(axis, frame, loss, fields, x, linestyle="-") -> None:
    values = frame[frame["loss"] == loss][fields].astype(float)
    colour, marker = LOOKS[loss]
    look = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.1}
    bars = {"elinewidth": 0.7, "capsize": 1.5, "linestyle": linestyle}
    axis.errorbar(
        x, values.mean(), values.std(ddof=1).fillna(0), label=LABELS[loss], **look, **bars
    )
