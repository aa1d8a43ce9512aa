"""Reliability diagrams without bins: CORP curves, consistency bands, and counts below."""

from pathlib import Path

import jax
import numpy as np

from experiments.engine.results import TestLogits
from experiments.figures.layout import legend_below
from experiments.figures.legend import Entry, Legend, by_family
from experiments.figures.noise import probabilities
from experiments.shell.figure_style import figure, save
from pgeom.evaluation.calibration import ReliabilityCurve, reliability_curve

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
