"""A forest plot: paired differences from a reference, seed by seed, with intervals and verdicts."""

from pathlib import Path

import numpy as np
import pandas as pd

from experiments.figures.layout import labels_down
from experiments.shell.figure_style import BLUE, GREY, ORANGE, figure, save
from experiments.tables.effects import reference_label
from experiments.tables.margins import METRICS, Metric
from experiments.tables.samples import Place, Samples
from pgeom.evaluation.significance import BETTER, EQUIVALENT, UNDETERMINED, WORSE

ACROSS = 4  # panels
LOOKS = {  # distinct in grey and for colour-blind readers
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
            axes.flat[0].plot([], [], marker, color=colour)[0] for colour, marker in LOOKS.values()
        ]
        side = "right" if METRICS[metric].higher_is_better else "left"
        title = (
            f"{METRICS[metric].label[:-2]}: difference from {reference_label(reference)} "
            f"({side} is better; the band is the margin of equivalence)"
        )
        above = axes.flat[0].get_position().y1 + 0.27 / size[1]  # the titles of panels, in inches
        place = {"bbox_to_anchor": (0.5, above), "ncols": len(LOOKS), "title_fontsize": 9}
        drawing.legend(handles, list(LOOKS), loc="lower center", title=title, **place)
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
    for verdict, (colour, marker) in LOOKS.items():
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
