"""Critical-difference diagrams: mean ranks, and bars over losses that are not told apart."""

from pathlib import Path

import numpy as np

from experiments.shell.figure_style import BLACK, GREY, figure, save
from experiments.tables.ranking import RankedLosses
from pgeom.evaluation.significance import cliques


def critical_difference(ranked: list[RankedLosses], path: Path) -> list[Path]:
    """One diagram per metric, the best loss on the left."""
    losses = len(ranked[0].labels)
    height = 0.85 + 0.17 * ((losses + 1) // 2)
    with figure(len(ranked), 1, (6.4, (0.6 + height) * len(ranked))) as (drawing, axes):
        drawing.subplots_adjust(hspace=0.3)
        for axis, one in zip(axes.flat, ranked, strict=True):
            _diagram(axis, one)
        return save(drawing, path)


def _diagram(axis, one: RankedLosses) -> None:
    """A scale of ranks on top, labels at both sides, and the cliques between."""
    ranks, difference = one.ranking.mean_ranks, one.ranking.critical_difference
    count = len(ranks)
    order = np.argsort(ranks, kind="stable")
    groups = cliques(ranks, difference)
    rows = (count + 1) // 2
    lowest = 0.4 + 0.35 * len(groups) + 0.75 * rows
    axis.set_xlim(1 - 0.32 * count, count + 0.32 * count)
    axis.set_ylim(lowest + 0.3, -2.2)
    axis.axis("off")
    axis.plot([1, count], [0, 0], color=BLACK, linewidth=1)
    for tick in range(1, count + 1):
        axis.plot([tick, tick], [0, -0.2], color=BLACK, linewidth=1)
        axis.text(tick, -0.3, str(tick), ha="center", va="bottom", fontsize=7)
    axis.plot([1, 1 + difference], [-1.5, -1.5], color=BLACK, linewidth=1.5)
    note = f"critical difference {difference:.1f}"
    axis.text(1 + difference + 0.15, -1.5, note, va="center", fontsize=7)
    axis.set_title(one.metric.label[:-2], loc="left", weight="bold")
    for number, loss in enumerate(order):
        left = number < rows
        height = 0.4 + 0.35 * len(groups) + 0.75 * (number if left else count - 1 - number) + 0.4
        end = 0.8 if left else count + 0.2
        axis.plot([ranks[loss]] * 2 + [end], [0, height, height], color=GREY, linewidth=0.7)
        text = f"{one.labels[loss]} ({ranks[loss]:.1f})"
        place = {"ha": "right" if left else "left", "va": "center", "fontsize": 7}
        axis.text(end + (-0.1 if left else 0.1), height, text, **place)
    for number, group in enumerate(groups):
        ends = [ranks[group[0]] - 0.06, ranks[group[-1]] + 0.06]
        axis.plot(ends, [0.35 * (number + 1)] * 2, color=BLACK, linewidth=2.5)
