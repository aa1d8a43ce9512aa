"""Figures of the other studies: long tail, ablations, learning rates, clean models and regrets."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from experiments.engine.results import TestLogits
from experiments.show.figures.legend import (
    Entry,
    Legend,
    bars,
    by_family,
    labels_down,
    legend_below,
    legend_beside,
    present,
    seed_points,
)
from experiments.show.metrics import METRICS, headline
from experiments.show.regrets import CLEAN, RAW, SCORES
from experiments.show.style import BLUE, GREEN, RED, figure, save
from pgeom.losses.catalogue import PRIOR
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


ATTACKS = {
    "FGSM": "FGSM: one step on CE",
    "PGD": "PGD: 20 steps on CE",
    "APGD": "APGD: 100 steps on DLR",
}


def calibration(frame: pd.DataFrame, entries: Legend, path: Path) -> list[Path]:
    """Raw and temperature-scaled ECE and NLL of every loss, one point per seed."""
    losses = present(entries, frame)
    panels = {"ECE": ("ece", "calibrated_ece"), "NLL": ("nll", "calibrated_nll")}
    with figure(1, 2, (7.2, 0.9 + 0.24 * len(losses)), sharey=True) as (drawing, axes):
        for axis, (name, fields) in zip(axes[0], panels.items(), strict=True):
            for field, colour, offset in zip(fields, (RED, BLUE), (-0.15, 0.15), strict=True):
                label = "temperature-scaled" if field.startswith("cal") else "raw"
                seed_points(axis, frame, losses, field, offset, colour=colour, label=label)
            axis.set_xlabel(f"test {name} (lower is better)")
            axis.set_xlim(left=0)
        labels_down(axes[0][0], [entry.label for entry in losses])
        axes[0][1].legend(loc="lower right")
        seeds, name = frame["seed"].nunique(), frame["dataset"].iloc[0]
        drawing.suptitle(f"{name}, clean: {count(seeds, 'seed')} and means", y=1.0, fontsize=10)
        return save(drawing, path)


def natural_corruption(
    frame: pd.DataFrame, entries: Legend, columns: dict[str, str], path: Path
) -> list[Path]:
    """Accuracy under each random corruption, one panel per family."""
    ticks = [label.removesuffix(" ↑") for label in columns.values()]
    return _panels(frame, entries, list(columns), ticks, "input corruption", path)


def attacks(frame: pd.DataFrame, entries: Legend, radii: Sequence[str], path: Path) -> list[Path]:
    """Accuracy against the radius of each attack, on the same axes."""
    losses, levels = present(entries, frame), np.array([0.0, *map(float, radii)])
    with figure(1, len(ATTACKS), (9.6, 3.2), sharex=True, sharey=True) as (drawing, axes):
        for axis, name in zip(axes[0], ATTACKS, strict=True):
            fields = ["accuracy", *(f"{name.lower()}_{radius}" for radius in radii)]
            for place, entry in enumerate(losses):
                offset = 0.0012 * (place - (len(losses) - 1) / 2)
                _points(axis, frame, entry, fields, levels + offset, linewidth=0.8)
            axis.set_title(ATTACKS[name])
            axis.set_xlabel("radius ε, on pixels in [0, 1]")
            axis.set_xticks(levels, [f"{level:g}" for level in levels])
        axes[0][0].set_ylim(-0.02, 1.02)
        axes[0][0].set_ylabel("test accuracy (higher is better)")
        legend_beside(axes[0][-1])
        seeds, name = frame["seed"].nunique(), frame["dataset"].iloc[0]
        title = f"{name}, clean-trained models: mean ± sample sd over {count(seeds, 'seed')}"
        drawing.suptitle(title, y=1.04, fontsize=10)
        return save(drawing, path)


def _panels(frame, entries: Legend, fields, ticks, what: str, path: Path) -> list[Path]:
    families = by_family(entries, frame["loss"])
    size = (1 + 2.2 * len(families), 2.9)
    with figure(1, len(families), size, sharey=True) as (drawing, axes):
        for axis, (family, shown) in zip(axes[0], families.items(), strict=True):
            for place, entry in enumerate(shown):
                offset = 0.11 * (place - (len(shown) - 1) / 2)
                # no line: corruptions have no order that it could follow
                places = np.arange(len(fields)) + offset
                _points(axis, frame, entry, fields, places, linestyle="")
            axis.set_title(family)
            axis.set_xticks(range(len(fields)), ticks, rotation=30, ha="right")
            legend_below(axis, gap=0.75)
        axes[0][0].set_ylabel("test accuracy (higher is better)")
        seeds, name = frame["seed"].nunique(), frame["dataset"].iloc[0]
        over = f"mean ± sample sd over {count(seeds, 'seed')}"
        title = f"{name}, clean-trained models under {what}: {over}"
        drawing.suptitle(title, y=1.02, fontsize=10)
        return save(drawing, path)


def _points(axis, frame, entry: Entry, fields, x, **line) -> None:
    """Mean ± sample sd of some fields."""
    values = frame[frame["loss"] == entry.name][fields].astype(float)
    ends = bars(values.mean(), values.std(ddof=1).fillna(0), top=1.0)
    look = {"elinewidth": 0.7, "capsize": 1.5, **line}
    axis.errorbar(x, values.mean(), ends, **entry.style, **look)


TAIL = 3  # the rarest classes, 7–9 of ten


def longtail_details(
    test: TestLogits, counts: Sequence[int], entries: Legend, path: Path
) -> list[Path]:
    """Accuracy of each class, and of the three rarest.

    Args:
      test: its logits.
      counts: training examples of each class.
      entries: of its losses.
      path: of the figure, without suffix.
    """
    losses, recalls = list(entries.values()), class_recalls(test)
    classes = [name for name in recalls if name not in ("loss", "seed")]
    seeds, size = len(test.labels), (10.2, 0.9 + 0.22 * max(len(losses), 9))
    ratios = {"wspace": 0.85, "width_ratios": [1.3, 1]}
    with figure(1, 2, size, gridspec_kw=ratios) as (drawing, axes):
        left, right = axes[0]
        shown = [one for one in losses if _is_representative(one)]
        for place, entry in enumerate(shown):
            runs = recalls[recalls["loss"] == entry.name][classes]
            x = np.arange(len(classes)) + 0.06 * (place - (len(shown) - 1) / 2)
            ends = bars(runs.mean(), runs.std(ddof=1).fillna(0), top=1.0)
            left.errorbar(x, runs.mean(), ends, elinewidth=0.6, linewidth=1, **entry.style)
        left.set_xticks(
            range(len(classes)),
            [f"{c}\n{n}" for c, n in zip(classes, counts, strict=True)],
            fontsize=7,
        )
        left.set_xlabel("class, and its number of training examples")
        left.set_ylabel("accuracy in the class (higher is better)")
        left.set_title(f"mean ± sample sd over {count(seeds, 'seed')}")
        legend_beside(left)
        tail = recalls.assign(tail=recalls[classes[-TAIL:]].mean(axis=1))
        seed_points(right, tail, losses, "tail")
        labels_down(right, [entry.label for entry in losses])
        rare = f"{classes[-TAIL]}–{classes[-1]}"
        right.set_xlabel(f"mean accuracy in classes {rare}\n(higher is better)")
        right.set_title(f"{count(seeds, 'seed')} and means")
        return save(drawing, path)


def _is_representative(entry: Entry) -> bool:
    """Cross-entropy, the candidates, and what knows the class counts."""
    return entry.name == "ce" or entry.studied or entry.family == PRIOR


def class_recalls(test: TestLogits) -> pd.DataFrame:
    """The share of each class that is recognised, one row per run."""
    rows = []
    for loss, logits in test.logits.items():
        for seed, (scores, labels) in enumerate(zip(logits, test.labels, strict=True)):
            hits = scores.argmax(axis=1) == labels
            recalls = {int(name): hits[labels == name].mean() for name in np.unique(labels)}
            rows.append({"loss": loss, "seed": seed, **recalls})
    return pd.DataFrame(rows)


def calibration_gradients(
    frame: pd.DataFrame, probed: pd.DataFrame, entries: Legend, path: Path
) -> list[Path]:
    """ECE before and after temperature scaling, and mean norms of input gradients.

    `frame` are runs on clean digits, `probed` those of the robustness experiment.
    """
    losses = present(entries, frame)
    fields = {"raw": ("ece", RED, -0.15), "scaled": ("calibrated_ece", BLUE, 0.15)}
    size = (8.4, 0.9 + 0.24 * len(losses))
    with figure(1, 2, size, sharey=True) as (drawing, axes):
        left, right = axes[0]
        for label, (field, colour, offset) in fields.items():
            seed_points(left, frame, losses, field, offset, colour=colour, label=label)
        left.set_xlabel("test ECE (lower is better)")
        left.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        seed_points(right, probed, present(entries, probed), "input_gradient_norm")
        norm = "mean over test examples of ‖∂CE/∂x‖₂"
        right.set_xlabel(f"{norm},\nnats per unit of pixels in [0, 1] (lower is less sensitive)")
        labels_down(left, [entry.label for entry in losses])
        for axis in (left, right):
            axis.set_xlim(left=0)
        seeds = frame["seed"].nunique()
        right.set_title(f"digits, clean: {count(seeds, 'seed')} and means")
        return save(drawing, path)


def optimization(
    frame: pd.DataFrame, timed: pd.DataFrame, entries: Legend, path: Path
) -> list[Path]:
    """Validation NLL over epochs, and seconds to train a run with each loss alone."""
    losses = present(entries, frame)
    size = (10.2, max(3.4, 0.9 + 0.24 * len(losses)))
    with figure(1, 2, size, gridspec_kw={"wspace": 1.15}) as (drawing, axes):
        left, right = axes[0]
        for entry in losses:
            _curve(left, frame[frame["loss"] == entry.name]["validation_nll"], entry)
        left.set_yscale("log")
        left.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        left.yaxis.set_major_formatter("{x:g}")
        left.yaxis.set_minor_formatter("")
        left.set_xlabel("epoch")
        left.set_ylabel("validation NLL in nats (lower is better)")
        left.set_title("digits, clean: mean and range over seeds")
        legend_beside(left)
        shown = present(entries, timed)
        seed_points(right, timed, shown, "seconds")
        labels_down(right, [entry.label for entry in shown])
        right.set_xlim(left=0)
        right.set_xlabel("seconds to train a run (lower is better)")
        seeds = count(timed["seed"].nunique(), "seed")
        right.set_title(f"each loss alone, compiling apart: {seeds}\n{hardware(timed)}")
        return save(drawing, path)


def hardware(frame: pd.DataFrame) -> str:
    """What the runs were computed on, in words."""
    devices = {
        (one.get("processor", one["machine"]), count(one["count"], f"{one['kind'].upper()} device"))
        for one in frame["device"]
    }
    return " and ".join(sorted(map(", ".join, devices)))


def _curve(axis, curves: pd.Series, entry: Entry) -> None:
    """Over the epochs that every seed trained: a mean of fewer would jump where one stops."""
    length = min(len(curve) for curve in curves)
    values = np.array([curve[:length] for curve in curves], float)
    epochs, every = np.arange(1, length + 1), max(1, length // 6)
    axis.plot(epochs, values.mean(axis=0), markevery=every, linewidth=1.1, **entry.style)
    low, high = values.min(axis=0), values.max(axis=0)
    axis.fill_between(epochs, low, high, color=entry.colour, alpha=0.08, linewidth=0)


SMALLEST = 1e-4  # regret that a colour or a line still shows
PLAIN = FuncFormatter(lambda value, _: f"{value:g}")


def regret_heatmaps(frame: pd.DataFrame, entries: Legend, path: Path) -> list[Path]:
    """Mean regret of the largest sample: losses down, scores across, one panel per case.

    A case is a regime, the posterior that is compared with, and whether forecasts are as trained.
    """
    largest = frame[frame["size"] == frame["size"].max()]
    names = list(SCORES)
    cases = [*largest.groupby(["regime", "posterior", "forecast"], sort=False)]
    losses = present(entries, largest)
    size = (1.2 + 2.1 * len(cases), max(2.6, 1.4 + 0.24 * len(losses)))
    with figure(1, len(cases), size, sharey=True, layout="constrained") as (drawing, axes):
        for axis, ((regime, posterior, forecast), part) in zip(axes[0], cases, strict=True):
            means = part.groupby("loss", sort=False)[names].mean()
            values = means.loc[[entry.name for entry in losses]].to_numpy()
            shown = np.maximum(values, SMALLEST)
            image = axis.imshow(shown, cmap="viridis_r", norm=LogNorm(SMALLEST, 1), aspect="auto")
            axis.set_title(f"{regime}\nagainst {posterior} labels\n{forecast}", fontsize=8)
            axis.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=7)
            axis.grid(False)
            _write(axis, image, values)
        axes[0][0].set_yticks(range(len(losses)), [entry.label for entry in losses])
        words = {"label": "mean regret (lower is better)", "format": PLAIN}
        drawing.colorbar(image, ax=axes[0], shrink=0.8, **words)
        return save(drawing, path)


def _write(axis, image, values: np.ndarray) -> None:
    for row, column in np.ndindex(values.shape):
        value = values[row, column]
        dark = sum(image.cmap(image.norm(max(value, SMALLEST)))[:3]) < 1.5
        text = f"{value:.1f}" if value >= 1 else f"{value:.{2 + 2 * (value < 0.1)}f}".lstrip("0")
        look = {"ha": "center", "va": "center", "fontsize": 5}
        look["color"] = "white" if dark else "black"
        axis.text(column, row, text, **look).set_in_layout(False)


def regret_curves(frame: pd.DataFrame, entries: Legend, path: Path) -> list[Path]:
    """Log regret against the number of examples, one row per regime, one panel per family."""
    chosen = frame[(frame["posterior"] == CLEAN) & (frame["forecast"] == RAW)]
    families, regimes = by_family(entries, chosen["loss"]), list(dict.fromkeys(chosen["regime"]))
    size = (1 + 2.2 * len(families), 0.8 + 2.3 * len(regimes))
    made = figure(len(regimes), len(families), size, sharex=True, sharey=True)
    with made as (drawing, axes):
        for row, regime in zip(axes, regimes, strict=True):
            part = chosen[chosen["regime"] == regime]
            for axis, (family, shown) in zip(row, families.items(), strict=True):
                for entry in shown:
                    values = part[part["loss"] == entry.name].groupby("size")["log"]
                    axis.plot(values.mean().clip(lower=SMALLEST), linewidth=1.2, **entry.style)
                axis.set(xscale="log", yscale="log", title=f"{family}, {regime}")
                axis.set_xticks(sorted(set(part["size"])))
                axis.xaxis.set_major_formatter(PLAIN)
                axis.xaxis.set_minor_locator(NullLocator())
                axis.yaxis.set_major_formatter(PLAIN)
            row[0].set_ylabel("log regret in nats")
        for axis in axes[-1]:
            axis.set_xlabel("examples, 60% for training")
            legend_below(axis)
        return save(drawing, path)
