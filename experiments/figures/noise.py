"""Figures of the label-noise experiment."""

from pathlib import Path

import jax
import numpy as np
import pandas as pd

from experiments.engine.results import TestLogits
from experiments.figures.layout import legend_below
from experiments.figures.legend import Entry, Legend, by_family
from pgeom.data.regimes import CLEAN, Regime
from pgeom.evaluation import metrics
from pgeom.evaluation.metrics import Reliability
from pgeom.frontend.figure_style import figure, save


def noise_accuracy(frame: pd.DataFrame, entries: Legend, path: Path) -> list[Path]:
    """Test accuracy against the rate of symmetric label noise, one panel per family, CE in each.

    Nothing is drawn where every regime has noise of another kind.
    """
    rated = symmetric_runs(frame)
    families = by_family(entries, rated["loss"])
    if not families:
        return []
    size = (1 + 2.2 * len(families), 2.9)
    with figure(1, len(families), size, sharey=True) as (drawing, axes):
        for axis, (family, shown) in zip(axes[0], families.items(), strict=True):
            for place, entry in enumerate(shown):
                offset = 0.5 * (place - len(shown) / 2)
                rate_line(axis, rated, "accuracy", entry, offset, linewidth=1.2, capsize=2)
            axis.set_title(family)
            axis.set_xlabel("symmetric label noise (%)")
            legend_below(axis)
        axes[0][0].set_ylabel("test accuracy (higher is better)")
        seeds, dataset = rated["seed"].nunique(), rated["dataset"].iloc[0]
        drawing.suptitle(f"{dataset}: mean ± sample sd over {seeds} seeds", y=1.02, fontsize=10)
        return save(drawing, path)


def reliability(test: TestLogits, entries: Legend, path: Path) -> list[Path]:
    """Accuracy against confidence on the test split, pooled over the seeds of one regime."""
    families = by_family(entries)
    diagrams = _diagrams(test)
    size = (1 + 2.2 * len(families), 4.1)
    heights = {"height_ratios": [3, 1], "hspace": 0.12}
    made = figure(2, len(families), size, sharex=True, sharey="row", gridspec_kw=heights)
    with made as (drawing, axes):
        for column, (family, shown) in enumerate(families.items()):
            top, bottom = axes[:, column]
            top.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=1)
            for entry in shown:
                _reliability_curve(top, bottom, entry, *diagrams[entry.name])
            top.set_title(family)
            bottom.set_xlabel("top-class confidence")
            legend_below(bottom, *top.get_legend_handles_labels())
        axes[0, 0].set_ylabel("accuracy in the bin")
        axes[1, 0].set_ylabel("share of\nexamples")
        pooled = f"{len(test.labels)} test sets pooled, 15 bins"
        drawing.suptitle(f"{test.dataset}, {test.regime}: {pooled}", y=0.98, fontsize=10)
        return save(drawing, path)


def symmetric_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """The runs without label noise or with a symmetric one, with its percentage as `rate`."""
    regimes = {name: Regime.parse(name) for name in frame["regime"].astype(str).unique()}
    kinds = frame["regime"].astype(str).map(lambda name: regimes[name].kind)
    shown = frame[kinds.isin((CLEAN, "symmetric"))]
    rates = shown["regime"].astype(str).map(lambda name: 100 * regimes[name].noise_rate)
    return shown.assign(rate=rates.astype(float))


def rate_line(axis, rated: pd.DataFrame, metric: str, entry: Entry, offset: float, **line) -> None:
    """Mean ± sample sd against the rate, shifted so that no error bar hides another."""
    runs = rated[rated["loss"] == entry.name]
    groups = runs[metric].astype(float).groupby(runs["rate"])
    mean, sd = groups.mean(), groups.std(ddof=1).fillna(0)
    bars = {"elinewidth": 0.8, "zorder": 3 if entry.name == "ce" else 2, **line}
    axis.errorbar(mean.index + offset, mean, yerr=sd, **entry.style, **bars)
    axis.set_xticks(sorted(set(runs["rate"])))


def _diagrams(test: TestLogits) -> dict[str, tuple[Reliability, int]]:
    """By loss, the reliability diagram of the pooled test sets, and how many examples."""
    names, labels = list(test.logits), test.labels.ravel()
    pooled = np.stack([test.logits[name].reshape(len(labels), -1) for name in names])
    repeated = np.broadcast_to(labels, pooled.shape[:2])
    bins = jax.jit(metrics.reliability)(probabilities(pooled), repeated)
    diagrams = [Reliability(*parts) for parts in zip(*map(np.asarray, bins), strict=True)]
    return {name: (one, len(labels)) for name, one in zip(names, diagrams, strict=True)}


def probabilities(logits: np.ndarray) -> np.ndarray:
    """The softmax of logits `[..., K]`, on the host."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def _reliability_curve(top, bottom, entry: Entry, diagram: Reliability, examples: int) -> None:
    if not np.all(np.isfinite(diagram.confidence)):  # a run of the loss diverged
        return
    full = diagram.share >= 10 / examples  # a bin of a few examples is noise
    top.plot(diagram.confidence[full], diagram.accuracy[full], linewidth=1.2, **entry.style)
    edges = np.linspace(0, 1, len(diagram.share) + 1)
    bottom.stairs(diagram.share, edges, color=entry.colour, linewidth=1.2)
