"""Figures of the label-noise experiment."""

from pathlib import Path

import numpy as np
import pandas as pd

from experiments.figures.layout import bars, legend_below
from experiments.figures.legend import Entry, Legend, by_family
from experiments.shell.figure_style import figure, save
from experiments.tables.margins import headline
from pgeom.data.regimes import CLEAN, Regime
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
