"""Figures of the tail classes, calibration, input gradients and optimisation."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator

from experiments.cells import Cell
from experiments.figures.style import (
    LOOKS,
    figure_of,
    legend_beside,
    losses_down,
    present,
    save,
    seed_points,
)
from experiments.protocol import LABELS
from experiments.records import Store

REPRESENTATIVE = (
    *("ce", "capm", "hpg", "apms"),
    *("cb_ce", "balanced_softmax", "logit_adjustment", "ldam"),
)
TAIL = 3  # the rarest classes, 7–9 of ten


def longtail_details(store: Store, cells: list[Cell], losses, path: Path) -> list[Path]:
    """Accuracy of each class, and of the three rarest."""
    recalls = class_recalls(store, cells, losses)
    classes = [name for name in recalls if name not in ("loss", "seed")]
    size = (9.6, 0.9 + 0.22 * max(len(losses), 9))
    with figure_of(1, 2, size, gridspec_kw={"wspace": 0.95}) as (figure, axes):
        left, right = axes[0]
        shown = present(recalls, REPRESENTATIVE)
        for place, loss in enumerate(shown):
            runs = recalls[recalls["loss"] == loss][classes]
            colour, marker = LOOKS[loss]
            x = np.arange(len(classes)) + 0.06 * (place - (len(shown) - 1) / 2)
            look = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1}
            deviation = runs.std(ddof=1).fillna(0)
            left.errorbar(x, runs.mean(), deviation, elinewidth=0.6, label=LABELS[loss], **look)
        left.set_xticks(range(len(classes)))
        left.set_xlabel("class (larger is rarer in training)")
        left.set_ylabel("accuracy in the class (higher is better)")
        left.set_title(f"mean ± sample sd over {len(cells)} seeds")
        legend_beside(left)
        tail = recalls.assign(tail=recalls[classes[-TAIL:]].mean(axis=1))
        seed_points(right, tail, losses, "tail")
        losses_down(right, losses)
        rare = f"{classes[-TAIL]}–{classes[-1]}"
        right.set_xlabel(f"mean accuracy in classes {rare}\n(higher is better)")
        right.set_title(f"{len(cells)} seeds and their means")
        return save(figure, path)


def class_recalls(store: Store, cells: list[Cell], losses) -> pd.DataFrame:
    """The share of each class that is recognised, a row a run."""
    rows = []
    for cell in cells:
        arrays = store.logits(cell)
        labels = arrays["labels"]
        for loss in losses:
            hits = arrays[loss].argmax(axis=1) == labels
            recalls = {int(name): hits[labels == name].mean() for name in np.unique(labels)}
            rows.append({"loss": loss, "seed": cell.seed, **recalls})
    return pd.DataFrame(rows)


def calibration_gradients(frame: pd.DataFrame, probed: pd.DataFrame, path: Path) -> list[Path]:
    """ECE before and after temperature scaling, and mean norms of input gradients.

    `frame` are runs on clean digits, `probed` those of the robustness experiment.
    """
    losses = present(frame, LABELS)
    fields = {"raw": ("ece", "#D55E00", -0.15), "scaled": ("calibrated_ece", "#0072B2", 0.15)}
    size = (8.4, 0.9 + 0.24 * len(losses))
    with figure_of(1, 2, size, sharey=True) as (figure, axes):
        left, right = axes[0]
        for label, (field, colour, offset) in fields.items():
            seed_points(left, frame, losses, field, offset, colour=colour, label=label)
        left.set_xlabel("test ECE (lower is better)")
        left.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        seed_points(right, probed, present(probed, LABELS), "input_gradient_norm")
        norm = "mean over test examples of ‖∂CE/∂x‖₂"
        right.set_xlabel(f"{norm},\nnats per unit of pixels in [0, 1] (lower is less sensitive)")
        losses_down(left, losses)
        for axis in (left, right):
            axis.set_xlim(left=0)
        seeds = frame["seed"].nunique()
        right.set_title(f"digits, clean: {seeds} seeds and their means")
        return save(figure, path)


def optimization(frame: pd.DataFrame, timed: pd.DataFrame, path: Path) -> list[Path]:
    """Validation NLL over epochs, and seconds to train a run with each loss alone."""
    losses = present(frame, LABELS)
    size = (10.2, max(3.4, 0.9 + 0.24 * len(losses)))
    with figure_of(1, 2, size, gridspec_kw={"wspace": 1.15}) as (figure, axes):
        left, right = axes[0]
        for loss in losses:
            _curve(left, frame[frame["loss"] == loss]["validation_nll"], loss)
        left.set_yscale("log")
        left.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        left.yaxis.set_major_formatter("{x:g}")
        left.yaxis.set_minor_formatter("")
        left.set_xlabel("epoch")
        left.set_ylabel("validation NLL in nats (lower is better)")
        left.set_title("digits, clean: mean and range over seeds")
        legend_beside(left)
        shown = present(timed, LABELS)
        seed_points(right, timed, shown, "seconds")
        losses_down(right, shown)
        right.set_xlim(left=0)
        right.set_xlabel("seconds to train a run (lower is better)")
        right.set_title(f"each loss alone, compile apart: {timed['seed'].nunique()} seeds")
        return save(figure, path)


def _curve(axis, curves: pd.Series, loss: str) -> None:
    """Over the epochs that every seed trained: a mean of fewer would jump where one stops."""
    length = min(len(curve) for curve in curves)
    values = np.array([curve[:length] for curve in curves], float)
    epochs = np.arange(1, length + 1)
    colour, marker = LOOKS[loss]
    look = {"marker": marker, "markersize": 4, "markevery": max(1, length // 6), "linewidth": 1.1}
    axis.plot(epochs, values.mean(axis=0), color=colour, label=LABELS[loss], **look)
    low, high = values.min(axis=0), values.max(axis=0)
    axis.fill_between(epochs, low, high, color=colour, alpha=0.08, linewidth=0)
