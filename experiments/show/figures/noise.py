"""Figures of label noise: accuracy, NLL and confidence, confusions, and reliability diagrams."""

import math
from pathlib import Path

import jax
import numpy as np
import pandas as pd

from experiments.engine.results import TestLogits
from experiments.show.figures.legend import (
    Entry,
    Legend,
    bars,
    by_family,
    legend_below,
    legend_beside,
    present,
)
from experiments.show.metrics import headline
from experiments.show.style import figure, save
from pgeom.data.regimes import CLEAN, Regime
from pgeom.evaluation import metrics
from pgeom.evaluation.calibration import ReliabilityCurve, reliability_curve
from pgeom.messages import count


def noise_accuracy(frame: pd.DataFrame, entries: Legend, path: Path) -> list[Path]:
    """Test accuracy against the rate of symmetric label noise, one panel per family, CE in each.

    Where classes are uneven it is balanced accuracy. Nothing is drawn where every
    regime has noise of another kind.
    """
    rated, metric = symmetric_runs(frame), headline(frame)
    families = by_family(entries, rated["loss"])
    if not families:
        return []
    size = (1 + 2.2 * len(families), 2.9)
    with figure(1, len(families), size, sharey=True) as (drawing, axes):
        for axis, (family, shown) in zip(axes[0], families.items(), strict=True):
            for place, entry in enumerate(shown):
                offset = 0.5 * (place - len(shown) / 2)
                rate_line(axis, rated, metric.name, entry, offset, linewidth=1.2, capsize=2)
            axis.set_title(family)
            axis.set_xlabel("symmetric label noise (%)")
            legend_below(axis)
        axes[0][0].set_ylabel(f"test {metric.words} (higher is better)")
        seeds, dataset = rated["seed"].nunique(), rated["dataset"].iloc[0]
        drawing.suptitle(
            f"{dataset}: mean ± sample sd over {count(seeds, 'seed')}", y=1.02, fontsize=10
        )
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
    look = {"elinewidth": 0.8, "zorder": 3 if entry.name == "ce" else 2, **line}
    ends = bars(mean, sd, top=1.0 if metric.endswith("accuracy") else np.inf)
    axis.errorbar(mean.index + offset, mean, yerr=ends, **entry.style, **look)
    axis.set_xticks(sorted(set(runs["rate"])))


def probabilities(logits: np.ndarray) -> np.ndarray:
    """The softmax of logits `[..., K]`, on the host."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


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


BINS = 20  # of the counts
RESAMPLES = 100  # of a band
MOST = 4000  # examples that a curve is fitted to


def reliability(test: TestLogits, entries: Legend, path: Path) -> list[Path]:
    """Accuracy against confidence on the test split, pooled over the seeds of one regime.

    The curves are isotonic regressions. A band holds the curve of a calibrated forecast of the same
    confidences in 95% of draws, at each confidence.
    """
    families = by_family(entries)
    curves = _curves(test)
    size = (1 + 2.2 * len(families), 4.1)
    heights = {"height_ratios": [3, 1], "hspace": 0.12}
    made = figure(2, len(families), size, sharex=True, sharey="row", gridspec_kw=heights)
    with made as (drawing, axes):
        for column, (family, shown) in enumerate(families.items()):
            top, bottom = axes[:, column]
            top.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=1)
            for entry in shown:
                _draw(top, bottom, entry, curves[entry.name])
            top.set_title(family)
            bottom.set_xlabel("top-class confidence")
            legend_below(bottom, *top.get_legend_handles_labels())
        axes[0, 0].set_ylabel("accuracy, recalibrated")
        axes[1, 0].set_ylabel("examples")
        pooled = f"{len(test.labels)} test sets pooled, 95% consistency bands"
        drawing.suptitle(f"{test.dataset}, {test.regime}: {pooled}", y=0.98, fontsize=10)
        return save(drawing, path)


def _curves(test: TestLogits) -> dict[str, ReliabilityCurve]:
    """By loss, the curve of the pooled test sets, of every so many examples if there are many."""
    names, labels = list(test.logits), test.labels.ravel()
    every = slice(None, None, -(-len(labels) // MOST))
    pooled = np.stack([test.logits[name].reshape(len(labels), -1)[every] for name in names])
    repeated = np.broadcast_to(labels[every], pooled.shape[:2])
    fit = jax.jit(lambda p, y: reliability_curve(p, y, resamples=RESAMPLES))
    parts = zip(*map(np.asarray, fit(probabilities(pooled), repeated)), strict=True)
    return dict(zip(names, (ReliabilityCurve(*one) for one in parts), strict=True))


def _draw(top, bottom, entry: Entry, curve: ReliabilityCurve) -> None:
    if not np.all(np.isfinite(curve.confidence)):  # a run of the loss diverged
        return
    look = {key: value for key, value in entry.style.items() if key != "marker"}
    few = max(1, len(curve.confidence) // 8)
    top.plot(
        curve.confidence,
        curve.recalibrated,
        linewidth=1.2,
        marker=entry.marker,
        markevery=few,
        **look,
    )
    band = {"color": entry.colour, "alpha": 0.12, "linewidth": 0}
    top.fill_between(curve.confidence, curve.low, curve.high, **band)
    counts, edges = np.histogram(curve.confidence, bins=BINS, range=(0, 1))
    bottom.stairs(counts, edges, color=entry.colour, linewidth=1.2)
