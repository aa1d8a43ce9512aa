"""Figures of models trained on clean data: calibration, corrupted and attacked inputs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.figures.layout import bars, labels_down, legend_below, legend_beside, seed_points
from experiments.figures.legend import Entry, Legend, by_family, present
from experiments.shell.figure_style import BLUE, RED, figure, save
from pgeom.messages import count

ATTACKS = {
    "FGSM": "FGSM: one step on CE",
    "PGD": "PGD: 20 steps on CE",
    "APGD": "APGD: 100 steps on DLR",
}


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
        drawing.suptitle(f"{name}, clean: {count(seeds, 'seed')} and means", y=1.0, fontsize=10)
        return save(drawing, path)


def natural_corruption(
    frame: pd.DataFrame, entries: Legend, columns: dict[str, str], path: Path
) -> list[Path]:
    """Accuracy under each random corruption, one panel per family."""
    ticks = [label.removesuffix(" ↑") for label in columns.values()]
    return _panels(frame, entries, list(columns), ticks, "input corruption", path)


def attacks(frame: pd.DataFrame, entries: Legend, radii: Sequence[str], path: Path) -> list[Path]:
    """Accuracy against the radius of each attack, on the same axes."""
    losses, levels = present(entries, frame), np.array([0.0, *map(float, radii)])
    with figure(1, len(ATTACKS), (9.6, 3.2), sharex=True, sharey=True) as (drawing, axes):
        for axis, name in zip(axes[0], ATTACKS, strict=True):
            fields = ["accuracy", *(f"{name.lower()}_{radius}" for radius in radii)]
            for place, entry in enumerate(losses):
                offset = 0.0012 * (place - (len(losses) - 1) / 2)
                _points(axis, frame, entry, fields, levels + offset, linewidth=0.8)
            axis.set_title(ATTACKS[name])
            axis.set_xlabel("radius ε, on pixels in [0, 1]")
            axis.set_xticks(levels, [f"{level:g}" for level in levels])
        axes[0][0].set_ylim(-0.02, 1.02)
        axes[0][0].set_ylabel("test accuracy (higher is better)")
        legend_beside(axes[0][-1])
        seeds, name = frame["seed"].nunique(), frame["dataset"].iloc[0]
        title = f"{name}, clean-trained models: mean ± sample sd over {count(seeds, 'seed')}"
        drawing.suptitle(title, y=1.04, fontsize=10)
        return save(drawing, path)


def _panels(frame, entries: Legend, fields, ticks, what: str, path: Path) -> list[Path]:
    families = by_family(entries, frame["loss"])
    size = (1 + 2.2 * len(families), 2.9)
    with figure(1, len(families), size, sharey=True) as (drawing, axes):
        for axis, (family, shown) in zip(axes[0], families.items(), strict=True):
            for place, entry in enumerate(shown):
                offset = 0.11 * (place - (len(shown) - 1) / 2)
                # no line: corruptions have no order that it could follow
                places = np.arange(len(fields)) + offset
                _points(axis, frame, entry, fields, places, linestyle="")
            axis.set_title(family)
            axis.set_xticks(range(len(fields)), ticks, rotation=30, ha="right")
            legend_below(axis, gap=0.75)
        axes[0][0].set_ylabel("test accuracy (higher is better)")
        seeds, name = frame["seed"].nunique(), frame["dataset"].iloc[0]
        over = f"mean ± sample sd over {count(seeds, 'seed')}"
        title = f"{name}, clean-trained models under {what}: {over}"
        drawing.suptitle(title, y=1.02, fontsize=10)
        return save(drawing, path)


def _points(axis, frame, entry: Entry, fields, x, **line) -> None:
    """Mean ± sample sd of some fields."""
    values = frame[frame["loss"] == entry.name][fields].astype(float)
    ends = bars(values.mean(), values.std(ddof=1).fillna(0), top=1.0)
    look = {"elinewidth": 0.7, "capsize": 1.5, **line}
    axis.errorbar(x, values.mean(), ends, **entry.style, **look)
