"""Figures of losses against each other: verdicts, forests, ranks, published values."""

from collections.abc import Mapping
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from experiments.show.contrasts import RankedLosses, select_effects
from experiments.show.figures.panels import (
    Legend,
    bars,
    heat,
    height,
    labels_down,
    legend_beside,
    present,
    rows_down,
    seeds,
    short,
)
from experiments.show.metrics import METRICS
from experiments.show.style import BLACK, BLUE, GREY, ORANGE, RED, figure
from pgeom.evaluation.significance import BETTER, EQUIVALENT, UNDETERMINED, WORSE, cliques
from pgeom.losses.catalogue import LOSSES

ACROSS = 4  # panels
VERDICTS = {  # distinct in grey and for colour-blind readers
    BETTER: (BLUE, "o"),
    WORSE: (ORANGE, "X"),
    EQUIVALENT: (GREY, "s"),
    UNDETERMINED: ("0.75", "D"),
}
FILLS = {BETTER: "#9DC9E8", WORSE: "#F6C98A", EQUIVALENT: "#D9D9D9", UNDETERMINED: "white"}


def verdicts(judged: pd.DataFrame, across: str, chosen: Mapping[str, str]) -> Figure | None:
    """Losses down, situations or cells across: the difference, and its verdict as colour.

    Args:
      judged: comparisons with cross-entropy; one metric per column.
      across: the field of the columns.
      chosen: by column, the label of the loss that the decision table has; it is in brackets.
    """
    if judged.empty:
        return None
    metrics = dict(zip(judged[across], judged["metric"], strict=True))
    labels = list(dict.fromkeys(judged["label"]))
    codes = np.full((len(labels), len(metrics)), np.nan)
    texts = [[""] * len(metrics) for _ in labels]
    for row in judged.to_dict("records"):
        place = labels.index(row["label"]), list(metrics).index(row[across])
        codes[place] = list(FILLS).index(row["verdict"])
        number = "–" if np.isnan(row["difference"]) else short(f"{row['difference']:+.3f}")
        is_chosen = chosen.get(row[across]) == row["label"]
        texts[place[0]][place[1]] = f"[{number}]" if is_chosen else number
    columns = [f"{fill(name, 16)}\n{METRICS[metric].label}" for name, metric in metrics.items()]
    with figure(1, 1, (2.2 + 1.1 * len(columns), 1.6 + 0.26 * len(labels))) as (drawing, axes):
        axis = axes[0][0]
        look = {"cmap": ListedColormap([*FILLS.values()]), "norm": Normalize(-0.5, 3.5)}
        heat(axis, codes, columns, texts, **look)
        axis.set_facecolor("white")
        rows_down(axis, labels)
        axis.xaxis.tick_top()
        axis.tick_params(axis="x", labelsize=7, rotation=0, length=0)
        for text in axis.get_xticklabels():
            text.set(ha="center", rotation_mode="default")
        handles = [Patch(facecolor=colour, edgecolor="0.7") for colour in FILLS.values()]
        names = [f"{name} than CE" if name in (BETTER, WORSE) else name for name in FILLS]
        axis.legend(handles, names, loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=4)
        return drawing


def forest(effects: pd.DataFrame, reference: str, metric: str) -> Figure | None:
    """One panel per cell, one row per loss: the mean difference and its 95% interval.

    The band is the margin of equivalence.
    """
    part = select_effects(effects, reference, metric)
    part = part[part["difference"].notna()]
    panels = dict(list(part.groupby(["dataset", "regime"], sort=False)))
    if not panels:
        return None
    across, rule = min(ACROSS, len(panels)), METRICS[metric]
    down, losses = -(-len(panels) // across), [len(rows) for rows in panels.values()]
    heights = [max(losses[first : first + across]) for first in range(0, len(losses), across)]
    size = (3.1 * across, 1.0 + down * 0.5 + 0.15 * sum(heights))
    grid = {"wspace": 0.7, "hspace": 0.35, "height_ratios": heights}
    with figure(down, across, size, gridspec_kw=grid) as (drawing, axes):
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        for axis, (place, rows) in zip(axes.flat, panels.items(), strict=False):
            axis.axvspan(-rule.margin, rule.margin, color="0.93", zorder=0)
            axis.axvline(0, color="0.4", linewidth=0.8)
            for height, row in enumerate(rows.to_dict("records")):
                colour, marker = VERDICTS[row["verdict"]]
                axis.hlines(height, row["low"], row["high"], color=colour, linewidth=1.6)
                axis.plot(row["difference"], height, marker, color=colour, markersize=4)
            labels_down(axis, list(rows["label"]))
            axis.tick_params(labelsize=7)
            axis.locator_params(axis="x", nbins=4)
            axis.set_title(", ".join(place))
        first, looks = axes.flat[0], VERDICTS.values()
        handles = [first.plot([], [], marker, color=colour)[0] for colour, marker in looks]
        side = "right" if rule.higher_is_better else "left"
        text = (
            f"{rule.title}: difference from {LOSSES[reference].label} "
            f"({side} is better; the band is the margin of equivalence)"
        )
        above = first.get_position().y1 + 0.27 / size[1]  # the titles of panels, in inches
        place = {"bbox_to_anchor": (0.5, above), "ncols": len(VERDICTS), "title_fontsize": 9}
        drawing.legend(handles, list(VERDICTS), loc="lower center", title=text, **place)
        return drawing


def clean_scatter(frame: pd.DataFrame, entries: Legend) -> Figure:
    """Accuracy against NLL: mean ± sample sd of every loss on clean digits."""
    with figure(1, 1, (5, 3.4)) as (drawing, axes):
        axis = axes[0][0]
        for entry in present(entries, frame):
            runs = frame[frame["loss"] == entry.name][["nll", "accuracy"]].astype(float)
            (x, y), (dx, dy) = runs.mean(), runs.std(ddof=1).fillna(0)
            ends = {"xerr": bars(x, dx), "yerr": bars(y, dy, top=1.0), "elinewidth": 0.5}
            axis.errorbar(x, y, **ends, **entry.style | {"markersize": 6, "linestyle": ""})
        axis.set_xlabel("test NLL in nats (lower is better)")
        axis.set_ylabel("test accuracy (higher is better)")
        axis.set_title(f"digits, clean: mean ± sample sd over {seeds(frame)}")
        legend_beside(axis)
        return drawing


def critical_difference(ranked: list[RankedLosses]) -> Figure | None:
    """One panel per metric, the best loss on top; bars join losses that are not told apart."""
    if not ranked:
        return None
    losses, panels = len(ranked[0].labels), len(ranked)
    size = (2.9 * panels, height(losses))
    with figure(1, panels, size, gridspec_kw={"wspace": 0.75}) as (drawing, axes):
        for axis, one in zip(axes.flat, ranked, strict=True):
            ranks, gap = one.ranking.mean_ranks, one.ranking.critical_difference
            order = np.argsort(ranks, kind="stable")
            rows = {loss: row for row, loss in enumerate(order)}
            axis.plot(ranks[order], range(losses), "o", color=BLACK, markersize=4)
            for number, group in enumerate(cliques(ranks, gap)):
                ends = [rows[group[0]] - 0.25, rows[group[-1]] + 0.25]
                place = losses + 0.8 + 0.5 * number
                axis.plot([place, place], ends, color=BLUE, linewidth=2.5)
            labels_down(axis, [one.labels[loss] for loss in order])
            axis.tick_params(labelsize=7)
            axis.set_xlabel("mean rank (lower is better)")
            axis.set_title(f"{one.metric.title}: critical difference {gap:.1f}")
        return drawing


FAR = 4.0  # sd, beyond which a point is put at the edge


def published(compared: pd.DataFrame) -> Figure | None:
    """How far our means are from the published ones: one strip per table, one point per cell.

    Args:
      compared: as `published.compare` gives it.
    """
    tables = dict(list(compared.groupby("table", sort=False)))
    if not tables:
        return None
    with figure(1, 1, (6.4, 1 + 0.5 * len(tables))) as (drawing, axes):
        axis = axes[0][0]
        for sds, shade in ((2, "0.95"), (1, "0.88")):
            axis.axvspan(-sds, sds, color=shade, zorder=0)
        for row, cells in enumerate(tables.values()):
            distance = np.clip(cells["difference"].to_numpy(float), -FAR, FAR)
            places = row + np.linspace(-0.3, 0.3, len(cells))  # in the order of the table
            near = np.abs(distance) <= 1
            for colour, own in ((BLUE, near), (RED, ~near)):
                axis.plot(distance[own], places[own], "o", color=colour, markersize=3.5)
        labels_down(axis, [f"{name}: {len(cells)} cells" for name, cells in tables.items()])
        axis.set_xlim(-FAR - 0.2, FAR + 0.2)
        axis.set_xlabel("(ours − published) / published sd")
        return drawing
