"""Every published cell beside ours, as dumbbells in units of the published deviation."""

from pathlib import Path

import numpy as np
import pandas as pd

from experiments.figures.layout import labels_down
from experiments.shell.figure_style import BLUE, GREY, RED, figure, save
from experiments.tables.published import expected_share
from pgeom.losses.catalogue import LOSSES

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
            _panel(axis, name, tables[name])
        for axis in axes.flat[len(order) :]:
            axis.set_visible(False)
        handles, labels = axes.flat[0].get_legend_handles_labels()
        drawing.legend(handles, labels, loc="outside upper center", ncols=3)
        drawing.supxlabel("(ours − published) / published sd", fontsize=9)
        return save(drawing, path)


def _panel(axis, name: str, cells: pd.DataFrame) -> None:
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
