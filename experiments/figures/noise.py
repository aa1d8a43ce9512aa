"""Figures of the label-noise experiment."""

from pathlib import Path

import jax
import numpy as np
import pandas as pd

from experiments.cells import Cell
from experiments.figures.style import LOOKS, figure_of, legend_below, save, shown_families
from experiments.protocol import LABELS
from experiments.records import Store
from pgeom.data.regimes import noise_of
from pgeom.evaluation import metrics
from pgeom.evaluation.metrics import Reliability


def noise_accuracy(frame: pd.DataFrame, dataset: str, path: Path) -> list[Path]:
    """Test accuracy against the rate of symmetric label noise, a panel a family, CE in each.

    Nothing is drawn where no regime has symmetric noise or none at all.
    """
    rated = frame[frame["regime"].map(_symmetric).astype(bool)]
    families = shown_families(set(rated["loss"]))
    if not families:
        return []
    size = (1 + 2.2 * len(families), 2.9)
    with figure_of(1, len(families), size, sharey=True) as (figure, axes):
        for axis, (family, shown) in zip(axes[0], families.items(), strict=True):
            for place, loss in enumerate(shown):
                _accuracy_line(axis, rated[rated["loss"] == loss], loss, place - len(shown) / 2)
            axis.set_title(family)
            axis.set_xlabel("symmetric label noise (%)")
            legend_below(axis)
        axes[0][0].set_ylabel("test accuracy (higher is better)")
        seeds = rated["seed"].nunique()
        figure.suptitle(f"{dataset}: mean ± sample sd over {seeds} seeds", y=1.02, fontsize=10)
        return save(figure, path)


def reliability(store: Store, cells: list[Cell], losses, path: Path) -> list[Path]:
    """Accuracy against confidence on the test split, pooled over the seeds of one regime."""
    families = shown_families(set(losses))
    diagrams = _diagrams(store, cells, losses)
    size = (1 + 2.2 * len(families), 4.1)
    layout = {"gridspec_kw": {"height_ratios": [3, 1], "hspace": 0.12}}
    layout |= {"sharex": True, "sharey": "row"}
    with figure_of(2, len(families), size, **layout) as (figure, axes):
        for column, (family, shown) in enumerate(families.items()):
            top, bottom = axes[:, column]
            top.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=1)
            for loss in shown:
                _reliability_curve(top, bottom, loss, *diagrams[loss])
            top.set_title(family)
            bottom.set_xlabel("top-class confidence")
            legend_below(bottom, *top.get_legend_handles_labels())
        axes[0, 0].set_ylabel("accuracy in the bin")
        axes[1, 0].set_ylabel("share of\nexamples")
        title = f"{cells[0].dataset}, {cells[0].regime}: {len(cells)} test sets pooled, 15 bins"
        figure.suptitle(title, y=0.98, fontsize=10)
        return save(figure, path)


def _symmetric(regime: str) -> bool:
    return noise_of(regime)[0] in ("clean", "symmetric")


def _accuracy_line(axis, runs: pd.DataFrame, loss: str, offset: float) -> None:
    rates = runs["regime"].map(lambda regime: 100 * noise_of(regime)[1]).astype(float)
    groups = runs["accuracy"].astype(float).groupby(rates)
    mean, sd = groups.mean(), groups.std(ddof=1).fillna(0)
    colour, marker = LOOKS[loss]
    axis.errorbar(
        mean.index + 0.5 * offset,  # side by side, so that no error bar hides another
        mean,
        yerr=sd,
        color=colour,
        marker=marker,
        markersize=4,
        linewidth=1.2,
        elinewidth=0.8,
        capsize=2,
        label=LABELS[loss],
        zorder=3 if loss == "ce" else 2,
    )
    axis.set_xticks(sorted(set(rates)))


def _diagrams(store: Store, cells: list[Cell], losses) -> dict[str, tuple[Reliability, int]]:
    """By loss, the reliability diagram of the cells' pooled test sets, and how many examples."""
    arrays = [store.logits(cell) for cell in cells]
    logits = np.stack([np.concatenate([one[loss] for one in arrays]) for loss in losses])
    labels = np.concatenate([one["labels"] for one in arrays])
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probabilities = shifted / shifted.sum(axis=-1, keepdims=True)
    bins = jax.jit(metrics.reliability)(probabilities, np.broadcast_to(labels, logits.shape[:2]))
    tables = [Reliability(*parts) for parts in zip(*map(np.asarray, bins), strict=True)]
    return {loss: (table, len(labels)) for loss, table in zip(losses, tables, strict=True)}


def _reliability_curve(top, bottom, loss: str, diagram: Reliability, examples: int) -> None:
    if not np.all(np.isfinite(diagram.confidence)):  # a run of the loss diverged
        return
    colour, marker = LOOKS[loss]
    full = diagram.share >= 10 / examples  # a bin of a few examples is noise
    line = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.2}
    top.plot(diagram.confidence[full], diagram.accuracy[full], label=LABELS[loss], **line)
    edges = np.linspace(0, 1, len(diagram.share) + 1)
    bottom.stairs(diagram.share, edges, color=colour, linewidth=1.2)
