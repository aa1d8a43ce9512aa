"""Figures of what label noise does beyond accuracy: NLL, confidence, confusions."""

from pathlib import Path

import numpy as np
import pandas as pd

from experiments.cells import Cell
from experiments.figures.style import LOOKS, figure_of, legend_beside, present, save
from experiments.protocol import LABELS
from experiments.records import Store
from pgeom.data.regimes import noise_of
from pgeom.evaluation import metrics

CONFIDENT = ("ce", "gce", "brier", "capm", "hpg", "apms")
CONFUSED = ("ce", "capm", "hpg", "apms", "gce")


def noise_nll_confidence(frame, store: Store, cells: list[Cell], path: Path) -> list[Path]:
    """NLL against the rate of symmetric noise, and densities of top-class confidence.

    Args:
      frame: the runs of one dataset.
      store: where its logits are.
      cells: the seeds of the noisiest regime, for the densities.
      path: of the figure, without suffix.
    """
    with figure_of(1, 2, (9.2, 3.4), gridspec_kw={"wspace": 0.75}) as (figure, axes):
        left, right = axes[0]
        losses = present(frame, LABELS)
        for place, loss in enumerate(losses):
            _nll_line(left, frame[frame["loss"] == loss], loss, place - len(losses) / 2)
        left.set_xlabel("symmetric label noise (%)")
        left.set_ylabel("test NLL in nats (lower is better)")
        left.set_title(f"{cells[0].dataset}: mean ± sample sd over {len(cells)} seeds")
        legend_beside(left)
        arrays = [store.logits(cell) for cell in cells]
        for loss in present(frame, CONFIDENT):
            _density(right, [_probabilities(one[loss]) for one in arrays], loss)
        right.set_xlabel("top-class confidence")
        right.set_ylabel("density, logarithmic")
        right.set_yscale("log")  # one loss is near 1 almost always, the others hardly ever
        peak = max(np.max(line.get_ydata()) for line in right.get_lines())
        right.set_ylim(0.02, 2 * peak)
        right.set_title(f"{cells[0].regime}: seeds pooled, and their range")
        legend_beside(right)
        return save(figure, path)


def noise_confusions(store: Store, cells: list[Cell], losses, path: Path) -> list[Path]:
    """Row-normalised confusion matrices, means over seeds."""
    shown = [loss for loss in CONFUSED if loss in losses]
    arrays = [store.logits(cell) for cell in cells]
    logits = np.array([[one[loss] for one in arrays] for loss in shown])
    labels = np.array([one["labels"] for one in arrays])
    matrices = np.asarray(metrics.confusion_matrix(_probabilities(logits), labels[None]))
    size = (1 + 2.1 * len(shown), 2.6)
    with figure_of(1, len(shown), size, sharey=True, layout="constrained") as (figure, axes):
        for axis, loss, mean in zip(axes[0], shown, matrices.mean(axis=1), strict=True):
            # the square root: confusions of a few percent would all look like none
            image = axis.imshow(np.sqrt(mean), cmap="cividis", vmin=0, vmax=1)
            axis.set_title(f"{LABELS[loss]}: {100 * np.trace(mean) / len(mean):.1f}% on diagonal")
            axis.set_xlabel("predicted class")
            axis.set_xticks(range(len(mean)))
            axis.set_yticks(range(len(mean)))
            axis.grid(False)
        axes[0][0].set_ylabel("true class")
        bar = figure.colorbar(image, ax=axes[0], fraction=0.02)
        ticks = np.array([0, 0.01, 0.05, 0.2, 0.5, 1])
        bar.set_ticks(np.sqrt(ticks), labels=[f"{100 * tick:g}" for tick in ticks])
        bar.set_label("% of the true class")
        title = f"{cells[0].dataset}, {cells[0].regime}: means over {len(cells)} seeds"
        figure.suptitle(title, fontsize=10)
        return save(figure, path)


def _nll_line(axis, runs: pd.DataFrame, loss: str, offset: float) -> None:
    kinds = runs["regime"].map(lambda regime: noise_of(regime)[0]).astype(str)
    runs = runs[kinds.isin(("clean", "symmetric"))]
    rates = runs["regime"].map(lambda regime: 100 * noise_of(regime)[1]).astype(float)
    groups = runs["nll"].astype(float).groupby(rates)
    mean, sd = groups.mean(), groups.std(ddof=1).fillna(0)
    colour, marker = LOOKS[loss]
    look = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.1}
    bars = {"elinewidth": 0.7, "capsize": 1.5, "label": LABELS[loss]}
    axis.errorbar(mean.index + 0.3 * offset, mean, sd, **look, **bars)
    axis.set_xticks(sorted(set(rates)))


def _density(axis, probabilities: list[np.ndarray], loss: str) -> None:
    """The density of all seeds together, and in a band the range over single ones."""
    grid = np.linspace(0, 1, 201)
    of_seeds = [one.max(axis=1) for one in probabilities]
    curves = [kernel_density(values, grid) for values in of_seeds]
    colour = LOOKS[loss][0]
    pooled = kernel_density(np.concatenate(of_seeds), grid)
    axis.plot(grid, pooled, color=colour, linewidth=1.4, label=LABELS[loss])
    axis.fill_between(
        grid, np.min(curves, 0), np.max(curves, 0), color=colour, alpha=0.15, linewidth=0
    )


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


def _probabilities(logits: np.ndarray) -> np.ndarray:
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)
