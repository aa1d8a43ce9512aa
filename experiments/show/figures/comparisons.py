"""Figures of losses against each other: forests, heatmaps, ranks, published beside measured."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.ticker import MaxNLocator

from experiments.show.contrasts import RankedLosses, reference_label
from experiments.show.figures.legend import (
    Entry,
    Legend,
    bars,
    labels_down,
    legend_beside,
    mean_and_sd,
    present,
)
from experiments.show.metrics import METRICS, Metric, Place, Samples
from experiments.show.published import expected_share
from experiments.show.style import BLACK, BLUE, GREY, ORANGE, RED, figure, save
from experiments.show.summary import REFERENCE
from pgeom.data.regimes import Regime
from pgeom.evaluation.significance import BETTER, EQUIVALENT, UNDETERMINED, WORSE, cliques
from pgeom.losses.catalogue import LOSSES
from pgeom.messages import count

ACROSS = 4  # panels
VERDICTS = {  # distinct in grey and for colour-blind readers
    BETTER: (BLUE, "o"),
    WORSE: (ORANGE, "X"),
    EQUIVALENT: (GREY, "s"),
    UNDETERMINED: ("0.75", "D"),
}


def forest(
    samples: Samples, effects: pd.DataFrame, path: Path, *, reference: str, metric: str
) -> list[Path]:
    """One panel per place, one row per loss: seeds, mean difference and its 95% interval.

    The band is the margin of equivalence. A panel ends where all means, intervals and nine tenths
    of the seeds are inside.
    """
    part = effects[(effects["reference"] == reference) & (effects["metric"] == metric)]
    places = [place for place in samples.places if len(_here(part, place))]
    across = min(ACROSS, len(places))
    down = -(-len(places) // across)
    rows = [len(_here(part, place)) for place in places]
    heights = [max(rows[first : first + across]) for first in range(0, len(places), across)]
    size = (3.1 * across, 1.0 + down * 0.5 + 0.15 * sum(heights))
    grid = {"wspace": 0.7, "hspace": 0.35, "height_ratios": heights}
    with figure(down, across, size, gridspec_kw=grid) as (drawing, axes):
        for axis in axes.flat[len(places) :]:
            axis.set_visible(False)
        for axis, place in zip(axes.flat, places, strict=False):
            _panel(axis, samples, _here(part, place), place, METRICS[metric], reference)
        handles = [
            axes.flat[0].plot([], [], marker, color=colour)[0]
            for colour, marker in VERDICTS.values()
        ]
        side = "right" if METRICS[metric].higher_is_better else "left"
        title = (
            f"{METRICS[metric].label[:-2]}: difference from {reference_label(reference)} "
            f"({side} is better; the band is the margin of equivalence)"
        )
        above = axes.flat[0].get_position().y1 + 0.27 / size[1]  # the titles of panels, in inches
        place = {"bbox_to_anchor": (0.5, above), "ncols": len(VERDICTS), "title_fontsize": 9}
        drawing.legend(handles, list(VERDICTS), loc="lower center", title=title, **place)
        return save(drawing, path)


def _here(part: pd.DataFrame, place: Place) -> pd.DataFrame:
    return part[(part["dataset"] == place.dataset) & (part["regime"] == place.regime)]


def _panel(
    axis, samples: Samples, rows: pd.DataFrame, place: Place, metric: Metric, reference: str
) -> None:
    rows = rows[rows["difference"].notna()]
    names = [reference, *rows["loss"]]
    values = samples.compared(place, names, metric.name).astype(float)
    differences = values[1:] - values[0]
    axis.axvspan(-metric.margin, metric.margin, color="0.93", zorder=0)
    axis.axvline(0, color="0.4", linewidth=0.8)
    heights = np.arange(len(rows), dtype=float)
    for verdict, (colour, marker) in VERDICTS.items():
        mine = (rows["verdict"] == verdict).to_numpy()
        chosen, levels = rows[mine], heights[mine]
        seeds = differences[mine]
        spread = np.repeat(levels, differences.shape[1])
        axis.plot(seeds.ravel(), spread, ".", color=colour, alpha=0.12, markersize=3)
        axis.hlines(levels, chosen["low"], chosen["high"], color=colour, linewidth=1.6)
        axis.plot(chosen["difference"], levels, marker, color=colour, markersize=4)
    if len(rows):
        axis.set_xlim(*_limits(rows, differences, metric.margin))
    labels_down(axis, list(rows["label"]))
    axis.tick_params(labelsize=7)
    axis.locator_params(axis="x", nbins=4)
    axis.set_title(str(place))


def _limits(rows: pd.DataFrame, differences: np.ndarray, margin: float) -> tuple[float, float]:
    shown = [np.quantile(differences, [0.05, 0.95]), rows["low"], rows["high"], rows["difference"]]
    values = np.concatenate([*map(np.asarray, shown), [-margin, margin]])
    low, high = np.nanmin(values), np.nanmax(values)
    room = 0.04 * (high - low)
    return float(low - room), float(high + room)


# blue is better than the reference, orange is worse: also to readers who confuse red and green
UP = LinearSegmentedColormap.from_list(
    "better", ["#B35806", "#FDD0A2", "white", "#C6DBEF", "#2166AC"]
)
PANELS = {
    "accuracy": ("test accuracy (higher is better)", UP),
    "nll": ("test NLL in nats (lower is better)", UP.reversed()),
    "ece": ("test ECE (lower is better)", UP.reversed()),
}
RANKED = {"accuracy": False, "nll": True, "brier": True, "ece": True}  # is lower better?


def metric_heatmaps(frame: pd.DataFrame, entries: Legend, path: Path) -> list[Path]:
    """Accuracy, NLL and ECE as differences from cross-entropy: losses down, cells across.

    The first row has cross-entropy's own means; grey where a loss was not run. Nothing is drawn
    where there is no cross-entropy.
    """
    losses = present(entries, frame)
    names = [REFERENCE, *(one.name for one in losses if one.name != REFERENCE)]
    if REFERENCE not in entries or len(names) != len(losses):
        return []
    columns = list(dict.fromkeys(cell_names(frame)))
    # no panel is shorter than the words beside its colours
    size = (2 + 0.62 * len(columns), 3 * max(2.6, 1.1 + 0.24 * len(losses)))
    with figure(3, 1, size, sharex=True, layout="constrained") as (drawing, axes):
        for axis, (metric, (label, colours)) in zip(axes[:, 0], PANELS.items(), strict=True):
            means = cell_means(frame, metric).reindex(index=names, columns=columns)
            image = _heatmap(axis, means, colours)
            axis.set_yticks(np.arange(len(names)) + 0.5, ["CE, mean", *_labels(entries, names[1:])])
            bar = drawing.colorbar(
                image, ax=axis, location="right", shrink=0.9, aspect=30, extend="both"
            )
            bar.set_label(f"{label}:\ndifference from CE, blue is better")
        turned = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
        axes[-1, 0].set_xticks(np.arange(len(columns)) + 0.5, columns, **turned)
        drawing.suptitle(f"means over {count(frame['seed'].nunique(), 'seed')}", fontsize=10)
        return save(drawing, path)


def clean_ranks(frame: pd.DataFrame, entries: Legend, path: Path) -> list[Path]:
    """Accuracy against NLL on clean digits; the mean rank of each loss over cells and metrics."""
    clean = frame[(frame["dataset"] == "digits") & (frame["regime"] == "clean")]
    losses = present(entries, clean)
    size = (9.2, max(3.2, 1 + 0.24 * len(losses)))
    with figure(1, 2, size, gridspec_kw={"wspace": 0.95}) as (drawing, axes):
        left, right = axes[0]
        for entry in losses:
            _clean_point(left, clean[clean["loss"] == entry.name], entry)
        left.set_xlabel("test NLL in nats (lower is better)")
        left.set_ylabel("test accuracy (higher is better)")
        left.set_title("digits, clean: mean ± sample sd over seeds")
        legend_beside(left)
        _rank_panel(right, rank_losses(balanced(frame), [one.name for one in losses]), entries)
        return save(drawing, path)


def balanced(frame: pd.DataFrame) -> pd.DataFrame:
    """Without the long tail, where most losses are near chance and their ranks mean little."""
    kinds = {name: Regime.parse(name).kind for name in frame["regime"].astype(str).unique()}
    return frame[frame["regime"].astype(str).map(kinds) != "long-tail"]


def cell_names(frame: pd.DataFrame) -> pd.Series:
    """The dataset and regime of each run, in a word."""
    return frame["dataset"].astype(str) + " " + frame["regime"].astype(str)


def cell_means(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Means over seeds: losses down, cells across."""
    values = frame[metric].astype(float)
    means = values.groupby([frame["loss"].astype(str), cell_names(frame)]).mean()
    return means.unstack()


def rank_losses(frame: pd.DataFrame, losses: list[str]) -> pd.DataFrame:
    """Ranks of the losses among each other, one column per cell and metric; 1 is best."""
    parts = []
    for metric, lower in RANKED.items():
        means = cell_means(frame, metric).loc[losses]
        parts.append(means.rank(ascending=lower, na_option="bottom"))
    return pd.concat(parts, axis=1)


def _labels(entries: Legend, names: list[str]) -> list[str]:
    return [entries[name].label for name in names]


def _heatmap(axis, means: pd.DataFrame, colours: Colormap):
    """Differences from the first row, which has the numbers themselves."""
    values = means.to_numpy()
    differences = values - values[:1]
    differences[0] = 0
    # a few large differences should not leave the others pale: the scale ends at most of them
    limit = max(np.nanquantile(np.abs(differences[1:]), 0.85), 1e-3) if len(values) > 1 else 1.0
    limits, look = Normalize(-limit, limit), {"edgecolors": "white", "linewidth": 0.6}
    image = axis.pcolormesh(np.ma.masked_invalid(differences), cmap=colours, norm=limits, **look)
    axis.set_facecolor("0.85")
    axis.grid(False)
    axis.invert_yaxis()
    for row, column in np.argwhere(np.isfinite(values)):
        text = f"{values[row, column]:.2f}" if row == 0 else f"{differences[row, column]:+.2f}"
        light = sum(image.cmap(image.norm(differences[row, column]))[:3]) > 1.5
        look = {
            "ha": "center",
            "va": "center",
            "fontsize": 8,
            "color": "black" if light else "white",
        }
        # out of the layout: to measure hundreds of texts takes longer than to draw them
        axis.text(column + 0.5, row + 0.5, short(text), **look).set_in_layout(False)
    return image


def short(text: str) -> str:
    """A number without the zero before its point, and with a minus sign that is one.

    >>> short("-0.25"), short("+1.20"), short("-0.00")
    ('−.25', '+1.20', '.00')
    """
    sign, digits = (text[0], text[1:]) if text[0] in "+-" else ("", text)
    if float(digits) == 0:
        sign = ""
    return sign.replace("-", "−") + (digits[1:] if digits.startswith("0.") else digits)


def _clean_point(axis, runs: pd.DataFrame, entry: Entry) -> None:
    (nll, nll_sd), (accuracy, accuracy_sd) = (mean_and_sd(runs[m]) for m in ("nll", "accuracy"))
    look = {**entry.style, "markersize": 6, "linestyle": "", "elinewidth": 0.5}
    ends = {"xerr": bars(nll, nll_sd), "yerr": bars(accuracy, accuracy_sd, top=1.0)}
    axis.errorbar(nll, accuracy, **ends, **look)


def _rank_panel(axis, ranks: pd.DataFrame, entries: Legend) -> None:
    """Losses by mean rank, the best on top, with the middle half of their ranks."""
    mean = ranks.mean(axis=1).sort_values()
    low, high = (ranks.quantile(q, axis=1) for q in (0.25, 0.75))
    for place, name in enumerate(mean.index):
        colour, marker = entries[name].colour, entries[name].marker
        axis.plot([low[name], high[name]], [place, place], color=colour, linewidth=1.2, alpha=0.6)
        axis.plot(mean[name], place, marker, color=colour, markersize=6)
    labels_down(axis, [entries[name].label for name in mean.index])
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlabel("mean rank (lower is better)")
    axis.set_title(f"ranks in {ranks.shape[1]} cells × metrics: mean, middle half\nno long tail")


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


FAR = 4.0  # sd, beyond which a point is put at the edge


def dumbbells(compared: pd.DataFrame, path: Path) -> list[Path]:
    """One row per cell: published at zero, ours at its distance; the bands are one and two sd.

    Args:
      compared: as `tables.published.compare` gives it.
      path: of the figure, without suffix.
    """
    tables = {str(name): part for name, part in compared.groupby("table", sort=False)}
    if not tables:
        return []
    columns = 2 if len(tables) > 1 else 1
    order = sorted(tables, key=lambda name: -len(tables[name]))
    rows = [order[k : k + columns] for k in range(0, len(order), columns)]
    heights = [max(len(tables[name]) for name in row) + 4 for row in rows]
    size = (5 * columns, 0.135 * sum(heights))
    ratios = {"height_ratios": heights}
    made = figure(len(rows), columns, size, layout="constrained", gridspec_kw=ratios)
    with made as (drawing, axes):
        for axis, name in zip(axes.flat, order, strict=False):
            _deviations(axis, name, tables[name])
        for axis in axes.flat[len(order) :]:
            axis.set_visible(False)
        handles, labels = axes.flat[0].get_legend_handles_labels()
        drawing.legend(handles, labels, loc="outside upper center", ncols=3)
        drawing.supxlabel("(ours − published) / published sd", fontsize=9)
        return save(drawing, path)


def _deviations(axis, name: str, cells: pd.DataFrame) -> None:
    distance = cells["difference"].to_numpy(float)
    shown, heights = np.clip(distance, -FAR, FAR), np.arange(len(cells))
    colours = np.where(np.abs(distance) <= 1, BLUE, RED)
    axis.axvspan(-2, 2, color="0.95", zorder=0)
    axis.axvspan(-1, 1, color="0.88", zorder=0)
    axis.hlines(heights, 0, shown, colors=colours, linewidth=1.2)
    axis.plot(np.zeros(len(cells)), heights, "o", color="white", markeredgecolor=GREY, markersize=3)
    for colour, near, label in ((BLUE, True, "ours, within 1 sd"), (RED, False, "ours, further")):
        own = (np.abs(distance) <= 1) == near
        axis.plot(shown[own], heights[own], "o", color=colour, markersize=3.5, label=label)
    axis.plot([], [], "o", color="white", markeredgecolor=GREY, label="published")
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
    metric = cell["metric"].removeprefix("plain_").replace("_", " ")
    metric = metric.replace("nll", "NLL").replace("ece", "ECE")
    place = f"{cell['dataset']} {cell['regime']}, " if cell["table"] == "candidate-accuracy" else ""
    name = LOSSES[cell["loss"]].label
    return f"{place}{name}" if place else f"{name}, {metric}"
