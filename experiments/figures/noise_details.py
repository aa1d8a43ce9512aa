"""Figures of what label noise does beyond accuracy: NLL, confidence, confusions."""

import math
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.engine.results import TestLogits
from experiments.figures.layout import legend_beside
from experiments.figures.legend import Entry, Legend, present
from experiments.figures.noise import probabilities, rate_line, symmetric_runs
from experiments.shell.figure_style import figure, save
from pgeom.evaluation import metrics
from pgeom.messages import count

BASELINES = ("ce", "gce", "brier")  # shown beside the candidates


def noise_nll_confidence(
    frame: pd.DataFrame, test: TestLogits, entries: Legend, path: Path
) -> list[Path]:
    """NLL against the rate of symmetric noise, and densities of top-class confidence.

    Args:
      frame: the runs of one dataset.
      test: its logits in the noisiest regime, for the densities.
      entries: of its losses.
      path: of the figure, without suffix.
    """
    rated, shown = symmetric_runs(frame), present(entries, frame)
    seeds = len(test.labels)
    with figure(1, 2, (9.2, 3.4), gridspec_kw={"wspace": 0.75}) as (drawing, axes):
        left, right = axes[0]
        for place, entry in enumerate(shown):
            offset = 0.3 * (place - len(shown) / 2)
            rate_line(left, rated, "nll", entry, offset, linewidth=1.1, capsize=1.5)
        left.set_xlabel("symmetric label noise (%)")
        left.set_ylabel("test NLL in nats (lower is better)")
        left.set_title(f"{test.dataset}: mean ± sample sd over {count(seeds, 'seed')}")
        legend_beside(left)
        for entry in highlights(entries):
            _density(right, probabilities(test.logits[entry.name]).max(axis=-1), entry)
        right.set_xlabel("top-class confidence")
        right.set_ylabel("density, logarithmic")
        right.set_yscale("log")  # one loss is near 1 almost always, the others hardly ever
        peak = max(np.max(line.get_ydata()) for line in right.get_lines())
        right.set_ylim(0.02, 2 * peak)
        right.set_title(f"{test.regime}: seeds pooled, and their range")
        legend_beside(right)
        return save(drawing, path)


def noise_confusions(test: TestLogits, entries: Legend, path: Path) -> list[Path]:
    """Row-normalised confusion matrices, means over seeds."""
    shown = [entry for entry in highlights(entries) if entry.name != "brier"]
    logits = np.stack([test.logits[entry.name] for entry in shown])
    matrices = np.asarray(metrics.confusion_matrix(probabilities(logits), test.labels[None]))
    size = (1 + 2.1 * len(shown), 2.6)
    with figure(1, len(shown), size, sharey=True, layout="constrained") as (drawing, axes):
        for axis, entry, mean in zip(axes[0], shown, matrices.mean(axis=1), strict=True):
            # the square root: confusions of a few percent would all look like none
            image = axis.pcolormesh(np.sqrt(mean), cmap="cividis", vmin=0, vmax=1)
            axis.set_aspect("equal")
            axis.invert_yaxis()
            axis.set_title(f"{entry.label}: {100 * np.trace(mean) / len(mean):.1f}% on diagonal")
            axis.set_xlabel("predicted class")
            places = np.arange(len(mean))
            axis.set_xticks(places + 0.5, places)
            axis.set_yticks(places + 0.5, places)
            axis.grid(False)
        axes[0][0].set_ylabel("true class")
        bar = drawing.colorbar(image, ax=axes[0], fraction=0.02)
        ticks = [0, 0.01, 0.05, 0.2, 0.5, 1]
        bar.set_ticks(
            [math.sqrt(tick) for tick in ticks], labels=[f"{100 * tick:g}" for tick in ticks]
        )
        bar.set_label("% of the true class")
        title = f"{test.dataset}, {test.regime}: means over {count(len(test.labels), 'seed')}"
        drawing.suptitle(title, fontsize=10)
        return save(drawing, path)


def highlights(entries: Legend) -> list[Entry]:
    """The losses of figures with room for a few: some baselines, and the candidates."""
    return [one for one in entries.values() if one.studied or one.name in BASELINES]


def _density(axis, confidences: np.ndarray, entry: Entry) -> None:
    """The density of all seeds `[S, n]` together, and in a band the range over single ones."""
    grid = np.linspace(0, 1, 201)
    curves = [kernel_density(values, grid) for values in confidences]
    pooled = kernel_density(confidences.ravel(), grid)
    axis.plot(grid, pooled, color=entry.colour, linewidth=1.4, label=entry.label)
    band = {"color": entry.colour, "alpha": 0.15, "linewidth": 0}
    axis.fill_between(grid, np.min(curves, 0), np.max(curves, 0), **band)


def kernel_density(values: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """A Gaussian kernel estimate on [0, 1], reflected at both ends so that no mass is lost.

    >>> grid = np.linspace(0, 1, 1001)
    >>> round(float(np.mean(kernel_density(np.array([0.01, 0.4, 0.99]), grid))), 2)
    1.0
    """
    spread = min(values.std(), np.subtract(*np.percentile(values, [75, 25])) / 1.34)
    width = max(0.9 * spread * len(values) ** -0.2, 0.01)  # Silverman's rule
    mirrored = np.concatenate([values, -values, 2 - values])
    kernels = np.exp(-0.5 * ((grid[:, None] - mirrored) / width) ** 2)
    return kernels.sum(axis=1) / (len(values) * width * np.sqrt(2 * np.pi))
