"""Figures of losses against each other: verdicts, forests, heatmaps, ranks, published values."""

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from experiments.show.contrasts import LEFT_OUT, RankedLosses, select_effects
from experiments.show.figures.panels import (
    REFERENCE,
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
from experiments.show.metrics import METRICS, Metric, Place, Samples
from experiments.show.published import expected_share
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


def situations(judged: pd.DataFrame, chosen: dict[str, str]) -> Figure | None:
    """Losses down, situations across: the difference from cross-entropy, and its verdict as colour.

    Args:
      judged: as `judge_situations` gives it.
      chosen: by situation, the label of the loss that the decision table has; it is in brackets.
    """
    if judged.empty:
        return None
    metrics = dict(zip(judged["situation"], judged["metric"], strict=True))
    labels = list(dict.fromkeys(judged["label"]))
    codes = np.full((len(labels), len(metrics)), np.nan)
    texts = [[""] * len(metrics) for _ in labels]
    for row in judged.to_dict("records"):
        place = labels.index(row["label"]), list(metrics).index(row["situation"])
        codes[place] = list(FILLS).index(row["verdict"])
        number = "–" if np.isnan(row["difference"]) else short(f"{row['difference']:+.3f}")
        is_chosen = chosen.get(row["situation"]) == row["label"]
        texts[place[0]][place[1]] = f"[{number}]" if is_chosen else number
    columns = [f"{wrap(name)}\n{METRICS[metric].label}" for name, metric in metrics.items()]
    size = (2.2 + 1.1 * len(columns), 1.6 + 0.26 * len(labels))
    with figure(1, 1, size) as (drawing, axes):
        axis = axes[0][0]
        look = {"cmap": ListedColormap([*FILLS.values()]), "norm": Normalize(-0.5, 3.5)}
        heat(axis, codes, columns, texts=texts, **look)
        axis.set_facecolor("white")
        rows_down(axis, labels)
        axis.xaxis.tick_top()
        axis.tick_params(axis="x", labelsize=7, rotation=0, length=0)
        for text in axis.get_xticklabels():
            text.set(ha="center", rotation_mode="default")
        handles = [Patch(facecolor=fill, edgecolor="0.7") for fill in FILLS.values()]
        names = [f"{name} than CE" if name in (BETTER, WORSE) else name for name in FILLS]
        axis.legend(handles, names, loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=4)
        return drawing


def wrap(text: str, width: int = 16) -> str:
    """A text in lines of about so many signs."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(line for line in lines if line)


def forest(
    samples: Samples, effects: pd.DataFrame, *, reference: str, metric: str
) -> Figure | None:
    """One panel per place, one row per loss: seeds, mean difference and its 95% interval.

    The band is the margin of equivalence. A panel ends where all means, intervals and nine tenths
    of the seeds are inside.
    """
    part = select_effects(effects, reference, metric)
    part = part[part["difference"].notna()]
    panels = {Place(*key): rows for key, rows in part.groupby(["dataset", "regime"], sort=False)}
    if not panels:
        return None
    across = min(ACROSS, len(panels))
    down, losses = -(-len(panels) // across), [len(rows) for rows in panels.values()]
    heights = [max(losses[first : first + across]) for first in range(0, len(losses), across)]
    size = (3.1 * across, 1.0 + down * 0.5 + 0.15 * sum(heights))
    grid = {"wspace": 0.7, "hspace": 0.35, "height_ratios": heights}
    with figure(down, across, size, gridspec_kw=grid) as (drawing, axes):
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        for axis, (place, rows) in zip(axes.flat, panels.items(), strict=False):
            names = [reference, *rows["loss"]]
            values = samples.compared(place, names, metric).astype(float)
            _forest_panel(axis, rows, values[1:] - values[0], METRICS[metric])
            axis.set_title(str(place))
        first = axes.flat[0]
        looks = VERDICTS.values()
        handles = [first.plot([], [], marker, color=colour)[0] for colour, marker in looks]
        side = "right" if METRICS[metric].higher_is_better else "left"
        title = (
            f"{METRICS[metric].title}: difference from {LOSSES[reference].label} "
            f"({side} is better; the band is the margin of equivalence)"
        )
        above = first.get_position().y1 + 0.27 / size[1]  # the titles of panels, in inches
        place = {"bbox_to_anchor": (0.5, above), "ncols": len(VERDICTS), "title_fontsize": 9}
        drawing.legend(handles, list(VERDICTS), loc="lower center", title=title, **place)
        return drawing


def _forest_panel(axis, rows: pd.DataFrame, differences: np.ndarray, metric: Metric) -> None:
    axis.axvspan(-metric.margin, metric.margin, color="0.93", zorder=0)
    axis.axvline(0, color="0.4", linewidth=0.8)
    for place, (row, values) in enumerate(zip(rows.to_dict("records"), differences, strict=True)):
        colour, marker = VERDICTS[row["verdict"]]
        places = np.full(len(values), place)
        axis.plot(values, places, ".", color=colour, alpha=0.12, markersize=3)
        axis.hlines(place, row["low"], row["high"], color=colour, linewidth=1.6)
        axis.plot(row["difference"], place, marker, color=colour, markersize=4)
    shown = [rows["low"], rows["high"], rows["difference"], [-metric.margin, metric.margin]]
    values = np.concatenate([np.quantile(differences, [0.05, 0.95]), *shown])
    room = 0.04 * (np.nanmax(values) - np.nanmin(values))
    axis.set_xlim(np.nanmin(values) - room, np.nanmax(values) + room)
    labels_down(axis, list(rows["label"]))
    axis.tick_params(labelsize=7)
    axis.locator_params(axis="x", nbins=4)


# blue is better than the reference, orange is worse: also to readers who confuse red and green
UP = LinearSegmentedColormap.from_list(
    "better", ["#B35806", "#FDD0A2", "white", "#C6DBEF", "#2166AC"]
)


def metric_heatmaps(frame: pd.DataFrame, entries: Legend) -> Figure | None:
    """Accuracy, NLL and ECE as differences from cross-entropy: losses down, cells across.

    The first row has cross-entropy's own means; grey where a loss was not run. Nothing is drawn
    where there is no cross-entropy.
    """
    losses = [one.name for one in present(entries, frame)]
    if REFERENCE not in losses:
        return None
    names = [REFERENCE, *(name for name in losses if name != REFERENCE)]
    cells = frame["dataset"].astype(str) + " " + frame["regime"].astype(str)
    columns = list(dict.fromkeys(cells))
    # no panel is shorter than the words beside its colours
    size = (2 + 0.62 * len(columns), 3 * max(2.6, 1.1 + 0.24 * len(names)))
    with figure(3, 1, size, sharex=True, layout="constrained") as (drawing, axes):
        for axis, metric in zip(axes[:, 0], ("accuracy", "nll", "ece"), strict=True):
            means = frame[metric].astype(float).groupby([frame["loss"].astype(str), cells]).mean()
            values = means.unstack().reindex(index=names, columns=columns).to_numpy()
            differences = values - values[:1]
            differences[0] = 0 * values[0]
            texts = [[short(f"{x:+.2f}") for x in row] for row in differences]
            texts[0] = [short(f"{x:.2f}") for x in values[0]]
            # a few large differences should not leave the others pale: the scale ends at most
            rest = np.abs(differences[1:])
            limit = max(np.nanquantile(rest, 0.85), 1e-3) if rest.size else 1.0
            colours = UP if METRICS[metric].higher_is_better else UP.reversed()
            look = {"cmap": colours, "norm": Normalize(-limit, limit)}
            image = heat(axis, differences, columns, texts=texts, **look)
            rows_down(axis, ["CE, mean", *(entries[name].label for name in names[1:])])
            where = {"location": "right", "shrink": 0.9, "aspect": 30, "extend": "both"}
            label = f"test {METRICS[metric].words}:\ndifference from CE, blue is better"
            drawing.colorbar(image, ax=axis, **where).set_label(label)
        drawing.suptitle(f"means over {seeds(frame)}", fontsize=10)
        return drawing


def clean_ranks(frame: pd.DataFrame, entries: Legend, ranked: list[RankedLosses]) -> Figure:
    """Accuracy against NLL, and the ranks of each loss: their mean over metrics, and their range.

    Args:
      frame: runs on clean digits.
      entries: of their losses.
      ranked: as `rank_losses` gives them.
    """
    losses = present(entries, frame)
    size = (9.2, max(3.2, height(len(losses))))
    with figure(1, 2, size, gridspec_kw={"wspace": 0.95}) as (drawing, (panels,)):
        left, right = panels
        for entry in losses:
            runs = frame[frame["loss"] == entry.name][["nll", "accuracy"]].astype(float)
            (x, y), (dx, dy) = runs.mean(), runs.std(ddof=1).fillna(0)
            ends = {"xerr": bars(x, dx), "yerr": bars(y, dy, top=1.0), "elinewidth": 0.5}
            left.errorbar(x, y, **ends, **entry.style | {"markersize": 6, "linestyle": ""})
        left.set_xlabel("test NLL in nats (lower is better)")
        left.set_ylabel("test accuracy (higher is better)")
        left.set_title("digits, clean: mean ± sample sd over seeds")
        legend_beside(left)
        right.set_visible(bool(ranked))
        if ranked:
            ranks = np.array([one.ranking.mean_ranks for one in ranked])
            order = np.argsort(ranks.mean(axis=0), kind="stable")
            for row, loss in enumerate(order):
                entry, values = entries[ranked[0].losses[loss]], ranks[:, loss]
                look = {"color": entry.colour}
                right.plot([values.min(), values.max()], [row, row], alpha=0.6, **look)
                right.plot(values.mean(), row, entry.marker, markersize=6, **look)
            labels_down(right, [ranked[0].labels[loss] for loss in order])
            right.set_xlabel("mean rank over cells (lower is better)")
            cells = f"{ranked[0].ranking.cells} cells without the {LEFT_OUT.replace('-', ' ')}"
            right.set_title(f"mean and range over {len(ranked)} metrics\n{cells}")
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
    """One row per cell: published at zero, ours at its distance; the bands are one and two sd.

    Args:
      compared: as `published.compare` gives it.
    """
    tables = {str(name): part for name, part in compared.groupby("table", sort=False)}
    if not tables:
        return None
    columns = 2 if len(tables) > 1 else 1
    order = sorted(tables, key=lambda name: -len(tables[name]))
    lengths = [len(tables[name]) + 4 for name in order]
    heights = [max(lengths[k : k + columns]) for k in range(0, len(order), columns)]
    size, ratios = (5 * columns, 0.135 * sum(heights)), {"height_ratios": heights}
    made = figure(len(heights), columns, size, layout="constrained", gridspec_kw=ratios)
    with made as (drawing, axes):
        for axis, name in zip(axes.flat, order, strict=False):
            _deviations(axis, name, tables[name])
        for axis in axes.flat[len(order) :]:
            axis.set_visible(False)
        handles, labels = axes.flat[0].get_legend_handles_labels()
        drawing.legend(handles, labels, loc="outside upper center", ncols=3)
        drawing.supxlabel("(ours − published) / published sd", fontsize=9)
        return drawing


def _deviations(axis, name: str, cells: pd.DataFrame) -> None:
    distance, heights = cells["difference"].to_numpy(float), np.arange(len(cells))
    shown, near = np.clip(distance, -FAR, FAR), np.abs(distance) <= 1
    axis.axvspan(-2, 2, color="0.95", zorder=0)
    axis.axvspan(-1, 1, color="0.88", zorder=0)
    ours = ((BLUE, near, "ours, within 1 sd"), (RED, ~near, "ours, further"))
    for colour, own, label in ours:
        axis.hlines(heights[own], 0, shown[own], colors=colour, linewidth=1.2)
        axis.plot(shown[own], heights[own], "o", color=colour, markersize=3.5, label=label)
    hollow = {"color": "white", "markeredgecolor": GREY, "markersize": 3, "zorder": 3}
    axis.plot(np.zeros(len(cells)), heights, "o", label="published", **hollow)
    labels_down(axis, [_row(cell) for cell in cells.to_dict("records")])
    axis.tick_params(axis="y", labelsize=6)
    axis.grid(axis="y", visible=False)
    axis.set_xlim(-FAR - 0.2, FAR + 0.2)
    expected = [expected_share(sds, int(cells["seeds"].max())) * len(cells) for sds in (1, 2)]
    seen = [int((np.abs(distance) <= sds).sum()) for sds in (1, 2)]
    axis.set_title(
        f"{name}: {seen[0]} of {len(cells)} within 1 sd, {seen[1]} within 2\n"
        f"(two draws of one protocol: about {expected[0]:.0f} and {expected[1]:.0f})",
        fontsize=8,
    )


def _row(cell: dict) -> str:
    label = LOSSES[cell["loss"]].label
    if cell["table"] == "candidate-accuracy":
        return f"{cell['dataset']} {cell['regime']}, {label}"
    return f"{label}, {METRICS[cell['metric']].words}"
