"""Figures of single studies: noise, long tail, calibration, perturbations, parts and regrets."""

from collections.abc import Mapping, Sequence

import jax
import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from experiments.engine.results import TestLogits
from experiments.show.figures.panels import (
    PLAIN,
    Legend,
    Series,
    by_family,
    dots,
    height,
    labels_down,
    legend_below,
    legend_beside,
    points,
    present,
    seeds,
    title,
)
from experiments.show.metrics import METRICS, Metric, headline
from experiments.show.regrets import CLEAN, RAW
from experiments.show.style import BLUE, GREEN, RED, figure
from experiments.show.summary import Way
from pgeom.data.regimes import Regime
from pgeom.evaluation.calibration import ReliabilityCurve, reliability_curve
from pgeom.losses.catalogue import PRIOR
from pgeom.losses.spec import LossSpec
from pgeom.messages import count

COLOURS, MARKERS = (BLUE, RED, GREEN), ("o", "s", "^")


def noise_curves(frame: pd.DataFrame, entries: Legend, metric: Metric) -> Figure | None:
    """A metric against the rate of symmetric label noise, one panel per family, CE in each.

    Nothing is drawn where every regime has noise of another kind.
    """
    rated = symmetric_runs(frame)
    families = by_family(entries, rated["loss"])
    if not families:
        return None
    top = 1.0 if metric.higher_is_better else np.inf
    with figure(1, len(families), (1 + 2.2 * len(families), 2.9), sharey=True) as (drawing, axes):
        for axis, (family, shown) in zip(axes[0], families.items(), strict=True):
            for place, entry in enumerate(shown):
                runs = rated[rated["loss"] == entry.name]
                values = runs.pivot(index="seed", columns="rate", values=metric.name)
                # shifted so that no error bar hides another
                x = np.asarray(values.columns, float) + 0.5 * (place - len(shown) / 2)
                points(axis, entry, x, values, top, zorder=3 if entry.name == "ce" else 2)
            axis.set_title(family)
            axis.set_xticks(sorted(set(rated["rate"])))
            axis.set_xlabel("symmetric label noise (%)")
            legend_below(axis)
        better = "higher" if metric.higher_is_better else "lower"
        axes[0][0].set_ylabel(f"test {metric.words} ({better} is better)")
        title(drawing, f"{rated['dataset'].iloc[0]}: mean ± sample sd over {seeds(rated)}")
        return drawing


def symmetric_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """The runs without label noise or with a symmetric one, with its percentage as `rate`."""
    regimes = frame["regime"].astype(str).map(Regime.parse)
    shown = regimes.map(lambda regime: regime.kind in ("clean", "symmetric")).astype(bool)
    rates = regimes[shown].map(lambda regime: 100 * regime.noise_rate).astype(float)
    return frame[shown].assign(rate=rates)


def probabilities(logits: np.ndarray) -> np.ndarray:
    """The softmax of logits `[..., K]`, on the host."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


RESAMPLES = 100  # of a band
MOST = 4000  # examples that a curve is fitted to


def reliability(test: TestLogits, entries: Legend) -> Figure:
    """Accuracy against confidence on the test split, pooled over the seeds of one regime.

    The curves are isotonic regressions. A band holds the curve of a calibrated forecast of the same
    confidences in 95% of draws, at each confidence. Losses of which a run diverged have no curve.
    """
    entries = {name: entries[name] for name in test.logits}
    families, curves = by_family(entries), _curves(test)
    heights = {"height_ratios": [3, 1], "hspace": 0.12}
    size = (1 + 2.2 * len(families), 4.1)
    made = figure(2, len(families), size, sharex=True, sharey="row", gridspec_kw=heights)
    with made as (drawing, axes):
        for (top, bottom), (family, shown) in zip(axes.T, families.items(), strict=True):
            top.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=1)
            for entry in shown:
                x, curve = curves[entry.name].confidence, curves[entry.name]
                if np.all(np.isfinite(x)):
                    few = max(1, len(x) // 8)
                    top.plot(x, curve.recalibrated, linewidth=1.2, markevery=few, **entry.style)
                    band = {"color": entry.colour, "alpha": 0.12, "linewidth": 0}
                    top.fill_between(x, curve.low, curve.high, **band)
                    counts, edges = np.histogram(x, bins=20, range=(0, 1))
                    bottom.stairs(counts, edges, color=entry.colour, linewidth=1.2)
            top.set_title(family)
            bottom.set_xlabel("top-class confidence")
            legend_below(bottom, *top.get_legend_handles_labels())
        axes[0, 0].set_ylabel("accuracy, recalibrated")
        axes[1, 0].set_ylabel("examples")
        pooled = f"{len(test.labels)} test sets pooled, 95% consistency bands"
        drawing.suptitle(f"{test.dataset}, {test.regime}: {pooled}", y=0.98, fontsize=10)
        return drawing


def _curves(test: TestLogits) -> dict[str, ReliabilityCurve]:
    """By loss, the curve of the pooled test sets, of every so many examples if there are many."""
    names, labels = list(test.logits), test.labels.ravel()
    every = slice(None, None, -(-len(labels) // MOST))
    pooled = np.stack([test.logits[name].reshape(len(labels), -1)[every] for name in names])
    repeated = np.broadcast_to(labels[every], pooled.shape[:2])
    fit = jax.jit(lambda p, y: reliability_curve(p, y, resamples=RESAMPLES))
    parts = zip(*map(np.asarray, fit(probabilities(pooled), repeated)), strict=True)
    return dict(zip(names, (ReliabilityCurve(*one) for one in parts), strict=True))


def longtail(ways: Mapping[str, Way], entries: Legend, chance: float) -> Figure:
    """The accuracy of every loss, one point per seed, by way of stopping if several."""
    first = next(iter(ways.values()))
    losses, several = present(entries, first.frame), len(ways) > 1
    series = [
        Series(way.frame, way.field, name, COLOURS[k] if several else None, MARKERS[k])
        for k, (name, way) in enumerate(ways.items())
    ]
    rows = len(losses) * max(1, len(ways) / 2)
    words = f"{METRICS[first.field].words} (higher is better): {seeds(first.frame)} and means"
    with figure(1, 1, (5.6, height(rows))) as (drawing, axes):
        axis = axes[0][0]
        dots(axis, losses, series, words)
        if several:
            axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.03), ncols=1)
        axis.axvline(chance, color="0.5", linestyle="--", linewidth=1)
        above = {"transform": axis.get_xaxis_transform(), "ha": "center", "va": "bottom"}
        axis.text(chance, 1.0, "chance", fontsize=7, color="0.4", **above)
        return drawing


TAIL = 3  # the rarest classes, 7–9 of ten


def longtail_details(test: TestLogits, counts: Sequence[int], entries: Legend) -> Figure:
    """Accuracy of each class, and of the three rarest.

    Args:
      test: its logits.
      counts: training examples of each class.
      entries: of its losses.
    """
    recalls = class_recalls(test)
    losses, classes = present(entries, recalls), [*range(len(counts))]
    ratios = {"wspace": 0.85, "width_ratios": [1.3, 1]}
    size = (10.2, height(max(len(losses), 9)))
    with figure(1, 2, size, gridspec_kw=ratios) as (drawing, (panels,)):
        left, right = panels
        shown = [one for one in losses if one.name == "ce" or one.studied or one.family == PRIOR]
        for place, entry in enumerate(shown):
            x = np.arange(len(classes)) + 0.06 * (place - (len(shown) - 1) / 2)
            points(left, entry, x, recalls[recalls["loss"] == entry.name][classes], 1.0)
        left.set_xticks(classes, [f"{c}\n{n}" for c, n in enumerate(counts)], fontsize=7)
        left.set_xlabel("class, and its number of training examples")
        left.set_ylabel("accuracy in the class (higher is better)")
        left.set_title(f"mean ± sample sd over {seeds(recalls)}")
        legend_beside(left)
        tail = recalls.assign(tail=recalls[classes[-TAIL:]].mean(axis=1))
        rare = f"{classes[-TAIL]}–{classes[-1]}"
        label = f"mean accuracy in classes {rare}\n(higher is better)"
        dots(right, losses, [Series(tail, "tail")], label)
        right.set_title(f"{seeds(recalls)} and means")
        return drawing


def class_recalls(test: TestLogits) -> pd.DataFrame:
    """The share of each class that is recognised, one row per run."""
    rows = []
    for loss, logits in test.logits.items():
        for seed, (scores, labels) in enumerate(zip(logits, test.labels, strict=True)):
            hits = scores.argmax(axis=1) == labels
            recalls = {int(name): hits[labels == name].mean() for name in np.unique(labels)}
            rows.append({"loss": loss, "seed": seed, **recalls})
    return pd.DataFrame(rows)


def calibration(frame: pd.DataFrame, entries: Legend, probed: pd.DataFrame | None = None) -> Figure:
    """Raw and temperature-scaled ECE of every loss, and beside it NLL or input gradients.

    Args:
      frame: runs on clean data.
      entries: of their losses.
      probed: runs of the robustness experiment; of these the norms of input gradients are shown,
        and without them NLL.
    """
    losses = present(entries, frame)
    with figure(1, 2, (8.4, height(len(losses))), sharey=True) as (drawing, (panels,)):
        left, right = panels
        scaled = {left: ("ece", "ECE")} | ({right: ("nll", "NLL")} if probed is None else {})
        for axis, (field, name) in scaled.items():
            raw = Series(frame, field, "raw", RED)
            after = Series(frame, f"calibrated_{field}", "temperature-scaled", BLUE)
            dots(axis, losses, [raw, after], f"test {name} (lower is better)")
        if probed is not None:
            norm = "mean over test examples of ‖∂CE/∂x‖₂"
            label = f"{norm},\nnats per unit of pixels in [0, 1] (lower is less sensitive)"
            dots(right, losses, [Series(probed, "input_gradient_norm")], label)
        left.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        right.set_title(f"{frame['dataset'].iloc[0]}, clean: {seeds(frame)} and means")
        return drawing


def natural_corruption(frame: pd.DataFrame, entries: Legend, columns: dict[str, str]) -> Figure:
    """Accuracy under each random corruption, one panel each."""
    losses, size = present(entries, frame), len(columns)
    with figure(1, size, (2.4 * size, height(len(losses))), sharey=True) as (drawing, axes):
        for axis, (field, label) in zip(axes[0], columns.items(), strict=True):
            dots(axis, losses, [Series(frame, field)], label.removesuffix(" ↑"))
        models = f"{frame['dataset'].iloc[0]}, clean-trained models under input corruption"
        title(drawing, f"{models}: test accuracy, {seeds(frame)} and means")
        return drawing


ATTACKS = {
    "FGSM": "FGSM: one step on CE",
    "PGD": "PGD: 20 steps on CE",
    "APGD": "APGD: 100 steps on DLR",
}


def attacks(frame: pd.DataFrame, entries: Legend, radii: Sequence[str]) -> Figure:
    """Accuracy against the radius of each attack, on the same axes."""
    losses, levels = present(entries, frame), np.array([0.0, *map(float, radii)])
    with figure(1, len(ATTACKS), (9.6, 3.2), sharex=True, sharey=True) as (drawing, axes):
        for axis, (name, words) in zip(axes[0], ATTACKS.items(), strict=True):
            fields = ["accuracy", *(f"{name.lower()}_{radius}" for radius in radii)]
            for place, entry in enumerate(losses):
                x = levels + 0.0012 * (place - (len(losses) - 1) / 2)
                points(axis, entry, x, frame[frame["loss"] == entry.name][fields], 1.0)
            axis.set_title(words)
            axis.set_xlabel("radius ε, on pixels in [0, 1]")
            axis.set_xticks(levels, [f"{level:g}" for level in levels])
        axes[0][0].set_ylim(-0.02, 1.02)
        axes[0][0].set_ylabel("test accuracy (higher is better)")
        legend_beside(axes[0][-1])
        models = f"{frame['dataset'].iloc[0]}, clean-trained models"
        title(drawing, f"{models}: mean ± sample sd over {seeds(frame)}")
        return drawing


Families = dict[str, tuple[LossSpec, ...]]
PROTOCOL = ("capm", "hpg-4", "apms-0.2")  # the variants that the other experiments use


def ablations(frame: pd.DataFrame, families: Families) -> Figure:
    """Accuracy of each variant minus the protocol's, on matched seeds: every seed, and the mean.

    Where classes are uneven it is balanced accuracy. No lines: most variants have no order that
    they could follow.
    """
    places, families = list(dict.fromkeys(frame["place"])), recorded_families(frame, families)
    metric, known = headline(frame), {one.name: one for v in families.values() for one in v}
    with figure(1, len(families), (3.2 * len(families), 3.2), sharey=True) as (drawing, axes):
        for axis, (family, variants) in zip(axes[0], families.items(), strict=True):
            # losses of a user's own are compared with HPG
            own = (one for one in variants if one.name in PROTOCOL)
            reference = next(own, known.get(PROTOCOL[1], variants[0]))
            axis.axhline(0, color="0.5", linewidth=1)
            for number, place in enumerate(places):
                gains = paired_gains(frame[frame["place"] == place], variants, reference, metric)
                x = np.arange(len(variants)) + 0.2 * (number - (len(places) - 1) / 2)
                turn = number + number // len(COLOURS)  # no two of nine places look the same
                look = {"color": COLOURS[number % len(COLOURS)]}
                axis.plot(x, gains.to_numpy().T, ".", alpha=0.35, markersize=4, **look)
                marker = MARKERS[turn % len(MARKERS)]
                axis.plot(x, gains.mean(), marker, markersize=5, label=place, **look)
            beside = "" if reference in variants else f", against {reference.label}"
            axis.set_title(family + beside)
            ticks = [_tick(one, reference) for one in variants]
            axis.set_xticks(range(len(variants)), ticks, fontsize=8)
        axes[0][0].set_ylabel(f"test {metric.words} − that of the protocol's\nvariant, same seed")
        title(drawing, f"{seeds(frame)} (light) and their means")
        legend_beside(axes[0][-1])
        return drawing


def recorded_families(frame: pd.DataFrame, families: Families) -> Families:
    """The families without the variants that have no record."""
    recorded = set(frame["loss"])
    kept = {
        family: tuple(one for one in variants if one.name in recorded)
        for family, variants in families.items()
    }
    return {family: variants for family, variants in kept.items() if variants}


def paired_gains(runs: pd.DataFrame, variants, reference: LossSpec, metric) -> pd.DataFrame:
    """A metric minus the reference's of the same seed: seeds down, variants across."""
    table = runs.pivot(index="seed", columns="loss", values=metric.name).astype(float)
    return table[[one.name for one in variants]].sub(table[reference.name], axis=0)


def _tick(variant: LossSpec, reference: LossSpec) -> str:
    """ "CAPM, no graph" is "no graph" below CAPM's panel, and CAPM itself is in full."""
    protocol = variant.name == reference.name
    text = variant.label.partition(", ")[2] or ("full" if protocol else variant.label)
    text = text.replace(" ", "\n")
    return f"{text}\n(protocol)" if protocol else text


RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def lr_sensitivity(counts: pd.DataFrame) -> Figure:
    """How often each learning rate was selected, one bar per loss."""
    cells = int(counts.sum(axis=1).max())
    colours = matplotlib.colormaps["cividis"](np.linspace(0, 0.95, len(counts.columns)))
    with figure(1, 1, (6, height(len(counts)))) as (drawing, axes):
        axis, left = axes[0][0], np.zeros(len(counts))
        for rate, colour in zip(counts.columns, colours, strict=True):
            look = {"color": colour, "label": scientific(float(rate))}
            axis.barh(range(len(counts)), counts[rate], left=left, **look)
            left += counts[rate].to_numpy()
        labels_down(axis, list(counts.index))
        axis.set_xlim(0, cells)
        axis.set_xticks(np.unique(np.round(np.linspace(0, cells, 5)).astype(int)))
        axis.set_xlabel(f"cells, of {cells}, in which validation NLL selects the learning rate")
        legend_beside(axis, title="learning rate")
        return drawing


def scientific(rate: float) -> str:
    """A rate as it is written: a digit and a power of ten.

    >>> scientific(3e-4), scientific(1e-3), scientific(0.00125)
    ('3×10⁻⁴', '10⁻³', '1.25×10⁻³')
    """
    digits, power = f"{rate:e}".split("e")
    digits, raised = f"{float(digits):g}", str(int(power)).translate(RAISED)
    return f"10{raised}" if digits == "1" else f"{digits}×10{raised}"


def optimization(frame: pd.DataFrame, timed: pd.DataFrame, entries: Legend) -> Figure:
    """Validation NLL over epochs, and seconds to train a run with each loss alone.

    A curve ends where a seed stops: a mean of fewer would jump.
    """
    losses = present(entries, frame)
    size = (10.2, max(3.4, height(len(losses))))
    with figure(1, 2, size, gridspec_kw={"wspace": 1.15}) as (drawing, (panels,)):
        left, right = panels
        for entry in losses:
            curves = frame[frame["loss"] == entry.name]["validation_nll"]
            length = min(map(len, curves))
            values = np.array([curve[:length] for curve in curves], float)
            epochs, every = np.arange(1, length + 1), max(1, length // 6)
            left.plot(epochs, values.mean(axis=0), markevery=every, linewidth=1.1, **entry.style)
            band = {"color": entry.colour, "alpha": 0.08, "linewidth": 0}
            left.fill_between(epochs, values.min(axis=0), values.max(axis=0), **band)
        left.set_yscale("log")
        left.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        left.yaxis.set_major_formatter("{x:g}")
        left.yaxis.set_minor_formatter("")
        left.set_xlabel("epoch")
        left.set_ylabel("validation NLL in nats (lower is better)")
        left.set_title("digits, clean: mean and range over seeds")
        legend_beside(left)
        shown = present(entries, timed)
        dots(right, shown, [Series(timed, "seconds")], "seconds to train a run (lower is better)")
        right.set_title(f"each loss alone, compiling apart: {seeds(timed)}\n{hardware(timed)}")
        return drawing


def hardware(frame: pd.DataFrame) -> str:
    """What the runs were computed on, in words."""
    devices = {
        (one.get("processor", one["machine"]), count(one["count"], f"{one['kind'].upper()} device"))
        for one in frame["device"]
    }
    return " and ".join(sorted(map(", ".join, devices)))


SMALLEST = 1e-4  # regret that a line still shows


def regret_curves(frame: pd.DataFrame, entries: Legend) -> Figure:
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
                axis.xaxis.set_minor_locator(NullLocator())
                for scale in (axis.xaxis, axis.yaxis):
                    scale.set_major_formatter(PLAIN)
            row[0].set_ylabel("log regret in nats")
        for axis in axes[-1]:
            axis.set_xlabel("examples, 60% for training")
            legend_below(axis)
        return drawing
