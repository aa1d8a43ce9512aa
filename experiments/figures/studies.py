"""Figures of the long tail, the ablations and the learning rates."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
import pandas as pd

from experiments.figures.layout import labels_down, legend_beside, seed_points
from experiments.figures.legend import Legend, present
from experiments.shell.figure_style import BLUE, GREEN, RED, figure, save
from experiments.tables.margins import METRICS, headline
from pgeom.losses.spec import LossSpec
from pgeom.messages import count

COLOURS = (BLUE, RED, GREEN)
MARKERS = ("o", "s", "^")
PROTOCOL = ("capm", "hpg-4", "apms-0.2")  # the variants that the other experiments use
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Series(NamedTuple):
    """Some runs, and the field of them that a figure shows."""

    frame: pd.DataFrame
    field: str


def longtail(series: dict[str, Series], entries: Legend, chance: float, path: Path) -> list[Path]:
    """The accuracy of every loss, one point per seed, by way of stopping if several."""
    first, field = next(iter(series.values()))
    words = METRICS[field].words
    losses = present(entries, first)
    with figure(1, 1, (5.6, 0.9 + 0.24 * len(losses) * max(1, len(series) / 2))) as (drawing, axes):
        axis = axes[0][0]
        for number, (name, (frame, field)) in enumerate(series.items()):
            offset = 0.26 * (number - (len(series) - 1) / 2)
            look = {"colour": COLOURS[number], "marker": MARKERS[number], "label": name}
            seed_points(axis, frame, losses, field, offset, **look if len(series) > 1 else {})
        if len(series) > 1:
            axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.03), ncols=1)
        labels_down(axis, [entry.label for entry in losses])
        axis.axvline(chance, color="0.5", linestyle="--", linewidth=1)
        above = {"transform": axis.get_xaxis_transform(), "ha": "center", "va": "bottom"}
        axis.text(chance, 1.0, "chance", fontsize=7, color="0.4", **above)
        axis.set_xlim(left=0)
        seeds = first["seed"].nunique()
        axis.set_xlabel(f"{words} (higher is better): {count(seeds, 'seed')} and means")
        return save(drawing, path)


def ablations(
    frame: pd.DataFrame, families: dict[str, tuple[LossSpec, ...]], path: Path
) -> list[Path]:
    """Accuracy of each variant minus the protocol's, on matched seeds: every seed, and the mean.

    Where classes are uneven it is balanced accuracy. No lines: most variants have no order that
    they could follow.
    """
    places, families = list(dict.fromkeys(frame["place"])), recorded_families(frame, families)
    reference, metric = protocol_variants(families), headline(frame)
    with figure(1, len(families), (3.2 * len(families), 3.2), sharey=True) as (drawing, axes):
        for axis, (family, variants) in zip(axes[0], families.items(), strict=True):
            axis.axhline(0, color="0.5", linewidth=1)
            for number, place in enumerate(places):
                runs = frame[frame["place"] == place]
                gains = paired_gains(runs, variants, reference[family], metric.name)
                x = np.arange(len(variants)) + 0.2 * (number - (len(places) - 1) / 2)
                turn = number + number // len(COLOURS)  # no two of nine places look the same
                look = COLOURS[number % len(COLOURS)], MARKERS[turn % len(MARKERS)]
                _gains(axis, x, gains, *look, place)
            beside = "" if reference[family] in variants else f", against {reference[family].label}"
            axis.set_title(family + beside)
            axis.set_xticks(
                range(len(variants)),
                [_tick(one, reference[family]) for one in variants],
                fontsize=8,
            )
        axes[0][0].set_ylabel(f"test {metric.words} − that of the protocol's\nvariant, same seed")
        seeds = frame["seed"].nunique()
        drawing.suptitle(f"{count(seeds, 'seed')} (light) and their means", y=1.0, fontsize=10)
        legend_beside(axes[0][-1])
        return save(drawing, path)


def recorded_families(
    frame: pd.DataFrame, families: dict[str, tuple[LossSpec, ...]]
) -> dict[str, tuple[LossSpec, ...]]:
    """The families without the variants that have no record."""
    recorded = set(frame["loss"])
    kept = {
        family: tuple(one for one in variants if one.name in recorded)
        for family, variants in families.items()
    }
    return {family: variants for family, variants in kept.items() if variants}


def protocol_variants(families: dict[str, tuple[LossSpec, ...]]) -> dict[str, LossSpec]:
    """Of each family the variant that the other experiments use; HPG's, where there is none."""
    hpg = {one.name: one for variants in families.values() for one in variants}.get(PROTOCOL[1])
    return {
        family: next((one for one in variants if one.name in PROTOCOL), hpg or variants[0])
        for family, variants in families.items()
    }


def paired_gains(
    runs: pd.DataFrame, variants: Sequence[LossSpec], reference: LossSpec, metric: str
) -> pd.DataFrame:
    """A metric minus the reference's of the same seed: seeds down, variants across."""
    table = runs.pivot(index="seed", columns="loss", values=metric).astype(float)
    return table[[one.name for one in variants]].sub(table[reference.name], axis=0)


def _gains(axis, x, gains: pd.DataFrame, colour: str, marker: str, label: str) -> None:
    for place, name in zip(x, gains, strict=True):
        seeds = np.full(len(gains), place)
        axis.plot(seeds, gains[name], ".", color=colour, alpha=0.35, markersize=4)
    axis.plot(x, gains.mean(), marker, color=colour, markersize=5, label=label)


def _tick(variant: LossSpec, reference: LossSpec) -> str:
    """ "CAPM, no graph" is "no graph" below CAPM's panel, and CAPM itself is in full."""
    protocol = variant.name == reference.name
    text = variant.label.partition(", ")[2] or ("full" if protocol else variant.label)
    text = text.replace(" ", "\n")
    return f"{text}\n(protocol)" if protocol else text


def lr_sensitivity(counts: pd.DataFrame, path: Path) -> list[Path]:
    """How often each learning rate was selected, one bar per loss."""
    cells = int(counts.sum(axis=1).max())
    colours = matplotlib.colormaps["cividis"](np.linspace(0, 0.95, len(counts.columns)))
    with figure(1, 1, (6, 0.9 + 0.24 * len(counts))) as (drawing, axes):
        axis = axes[0][0]
        left = np.zeros(len(counts))
        for rate, colour in zip(counts.columns, colours, strict=True):
            axis.barh(
                range(len(counts)),
                counts[rate],
                left=left,
                color=colour,
                label=scientific(float(rate)),
            )
            left += counts[rate].to_numpy()
        labels_down(axis, list(counts.index))
        axis.set_xlim(0, cells)
        axis.set_xticks(np.unique(np.round(np.linspace(0, cells, 5)).astype(int)))
        axis.set_xlabel(f"cells, of {cells}, in which validation NLL selects the learning rate")
        legend_beside(axis, title="learning rate")
        return save(drawing, path)


def scientific(rate: float) -> str:
    """A rate as it is written: a digit and a power of ten.

    >>> scientific(3e-4), scientific(1e-3), scientific(0.00125)
    ('3×10⁻⁴', '10⁻³', '1.25×10⁻³')
    """
    digits, power = f"{rate:e}".split("e")
    digits, raised = f"{float(digits):g}", str(int(power)).translate(RAISED)
    return f"10{raised}" if digits == "1" else f"{digits}×10{raised}"
