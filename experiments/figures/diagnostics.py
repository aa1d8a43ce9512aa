"""Figures of the tail classes, calibration, input gradients and optimisation."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator

from experiments.engine.results import TestLogits
from experiments.figures.layout import bars, labels_down, legend_beside, seed_points
from experiments.figures.legend import Entry, Legend, present
from experiments.shell.figure_style import BLUE, RED, figure, save
from pgeom.losses.catalogue import PRIOR
from pgeom.messages import count

TAIL = 3  # the rarest classes, 7–9 of ten


def longtail_details(
    test: TestLogits, counts: Sequence[int], entries: Legend, path: Path
) -> list[Path]:
    """Accuracy of each class, and of the three rarest.

    Args:
      test: its logits.
      counts: training examples of each class.
      entries: of its losses.
      path: of the figure, without suffix.
    """
    losses, recalls = list(entries.values()), class_recalls(test)
    classes = [name for name in recalls if name not in ("loss", "seed")]
    seeds, size = len(test.labels), (10.2, 0.9 + 0.22 * max(len(losses), 9))
    ratios = {"wspace": 0.85, "width_ratios": [1.3, 1]}
    with figure(1, 2, size, gridspec_kw=ratios) as (drawing, axes):
        left, right = axes[0]
        shown = [one for one in losses if _is_representative(one)]
        for place, entry in enumerate(shown):
            runs = recalls[recalls["loss"] == entry.name][classes]
            x = np.arange(len(classes)) + 0.06 * (place - (len(shown) - 1) / 2)
            ends = bars(runs.mean(), runs.std(ddof=1).fillna(0), top=1.0)
            left.errorbar(x, runs.mean(), ends, elinewidth=0.6, linewidth=1, **entry.style)
        left.set_xticks(
            range(len(classes)),
            [f"{c}\n{n}" for c, n in zip(classes, counts, strict=True)],
            fontsize=7,
        )
        left.set_xlabel("class, and its number of training examples")
        left.set_ylabel("accuracy in the class (higher is better)")
        left.set_title(f"mean ± sample sd over {count(seeds, 'seed')}")
        legend_beside(left)
        tail = recalls.assign(tail=recalls[classes[-TAIL:]].mean(axis=1))
        seed_points(right, tail, losses, "tail")
        labels_down(right, [entry.label for entry in losses])
        rare = f"{classes[-TAIL]}–{classes[-1]}"
        right.set_xlabel(f"mean accuracy in classes {rare}\n(higher is better)")
        right.set_title(f"{count(seeds, 'seed')} and means")
        return save(drawing, path)


def _is_representative(entry: Entry) -> bool:
    """Cross-entropy, the candidates, and what knows the class counts."""
    return entry.name == "ce" or entry.studied or entry.family == PRIOR


def class_recalls(test: TestLogits) -> pd.DataFrame:
    """The share of each class that is recognised, one row per run."""
    rows = []
    for loss, logits in test.logits.items():
        for seed, (scores, labels) in enumerate(zip(logits, test.labels, strict=True)):
            hits = scores.argmax(axis=1) == labels
            recalls = {int(name): hits[labels == name].mean() for name in np.unique(labels)}
            rows.append({"loss": loss, "seed": seed, **recalls})
    return pd.DataFrame(rows)


def calibration_gradients(
    frame: pd.DataFrame, probed: pd.DataFrame, entries: Legend, path: Path
) -> list[Path]:
    """ECE before and after temperature scaling, and mean norms of input gradients.

    `frame` are runs on clean digits, `probed` those of the robustness experiment.
    """
    losses = present(entries, frame)
    fields = {"raw": ("ece", RED, -0.15), "scaled": ("calibrated_ece", BLUE, 0.15)}
    size = (8.4, 0.9 + 0.24 * len(losses))
    with figure(1, 2, size, sharey=True) as (drawing, axes):
        left, right = axes[0]
        for label, (field, colour, offset) in fields.items():
            seed_points(left, frame, losses, field, offset, colour=colour, label=label)
        left.set_xlabel("test ECE (lower is better)")
        left.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        seed_points(right, probed, present(entries, probed), "input_gradient_norm")
        norm = "mean over test examples of ‖∂CE/∂x‖₂"
        right.set_xlabel(f"{norm},\nnats per unit of pixels in [0, 1] (lower is less sensitive)")
        labels_down(left, [entry.label for entry in losses])
        for axis in (left, right):
            axis.set_xlim(left=0)
        seeds = frame["seed"].nunique()
        right.set_title(f"digits, clean: {count(seeds, 'seed')} and means")
        return save(drawing, path)


def optimization(
    frame: pd.DataFrame, timed: pd.DataFrame, entries: Legend, path: Path
) -> list[Path]:
    """Validation NLL over epochs, and seconds to train a run with each loss alone."""
    losses = present(entries, frame)
    size = (10.2, max(3.4, 0.9 + 0.24 * len(losses)))
    with figure(1, 2, size, gridspec_kw={"wspace": 1.15}) as (drawing, axes):
        left, right = axes[0]
        for entry in losses:
            _curve(left, frame[frame["loss"] == entry.name]["validation_nll"], entry)
        left.set_yscale("log")
        left.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        left.yaxis.set_major_formatter("{x:g}")
        left.yaxis.set_minor_formatter("")
        left.set_xlabel("epoch")
        left.set_ylabel("validation NLL in nats (lower is better)")
        left.set_title("digits, clean: mean and range over seeds")
        legend_beside(left)
        shown = present(entries, timed)
        seed_points(right, timed, shown, "seconds")
        labels_down(right, [entry.label for entry in shown])
        right.set_xlim(left=0)
        right.set_xlabel("seconds to train a run (lower is better)")
        seeds = count(timed["seed"].nunique(), "seed")
        right.set_title(f"each loss alone, compiling apart: {seeds}\n{hardware(timed)}")
        return save(drawing, path)


def hardware(frame: pd.DataFrame) -> str:
    """What the runs were computed on, in words."""
    devices = {
        (one.get("processor", one["machine"]), count(one["count"], f"{one['kind'].upper()} device"))
        for one in frame["device"]
    }
    return " and ".join(sorted(map(", ".join, devices)))


def _curve(axis, curves: pd.Series, entry: Entry) -> None:
    """Over the epochs that every seed trained: a mean of fewer would jump where one stops."""
    length = min(len(curve) for curve in curves)
    values = np.array([curve[:length] for curve in curves], float)
    epochs, every = np.arange(1, length + 1), max(1, length // 6)
    axis.plot(epochs, values.mean(axis=0), markevery=every, linewidth=1.1, **entry.style)
    low, high = values.min(axis=0), values.max(axis=0)
    axis.fill_between(epochs, low, high, color=entry.colour, alpha=0.08, linewidth=0)
