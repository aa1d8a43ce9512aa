"""Paired comparisons: every loss against the references, contrasts of several places, and ranks.

A contrast is a sum of weighted means over matched seeds, which the paper's claims are about.

>>> [contrast] = differences([TAIL], ["hpg"], ["ce"])
>>> [(part.weight, part.column.loss) for part in contrast.parts]
[(1, 'hpg'), (-1, 'ce')]
>>> runs = pd.DataFrame({"dataset": "digits", "regime": "clean", "seed": [0, 1, 2] * 2,
...     "loss": ["ce"] * 3 + ["hpg"] * 3, "label": ["CE"] * 3 + ["HPG"] * 3,
...     "accuracy": [0.90, 0.91, 0.92, 0.93, 0.94, 0.95]})
>>> rows = compare_losses(Samples(runs), metrics=("accuracy",))
>>> rows[["reference", "loss", "metric", "seeds", "verdict"]].values.tolist()
[['ce', 'hpg', 'accuracy', 3, 'undetermined']]
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments.show.metrics import METRICS, Column, Metric, Place, Samples, headline
from experiments.show.summary import version_notes
from experiments.show.tables import Grid
from pgeom.evaluation.significance import (
    BETTER,
    EQUIVALENT,
    LEVEL,
    UNDETERMINED,
    WORSE,
    Ranking,
    compare,
    rank,
)
from pgeom.losses.catalogue import GENERAL, LOSSES, PRIOR
from pgeom.messages import count

CANDIDATES = tuple(name for name, loss in GENERAL.items() if loss.studied)
PLAIN = ("ce", *CANDIDATES)
ROBUST = ("sce", "gce", "apl", "mae")
ADJUSTED = tuple(name for name, loss in LOSSES.items() if loss.family == PRIOR)
CLEAN = tuple(Place(name, "clean") for name in ("breast-cancer", "digits", "confusion"))
DIGITS = Place("digits", "symmetric-40")
PAIRS = Place("digits", "pair-flip-40")
TAIL = Place("long-tail", "long-tail-30")
NOISY = tuple(
    Place(name, regime)
    for name, regimes in {
        "breast-cancer": ("symmetric-20", "symmetric-40"),
        "digits": ("symmetric-20", "symmetric-40", "pair-flip-40"),
        "confusion": ("symmetric-20", "pair-flip-40"),
    }.items()
    for regime in regimes
)
ABLATED = (DIGITS, Place("confusion", "clean"), Place("confusion", "pair-flip-40"))
EVERYWHERE = (*CLEAN, *NOISY, TAIL)


class Part(NamedTuple):
    """One weighted mean of a contrast; with `spread`, of the distance from the mean instead."""

    weight: float
    column: Column
    spread: bool = False


class Contrast(NamedTuple):
    """A sum of parts less a constant, zero if the two sides of a comparison are equal."""

    parts: tuple[Part, ...]
    constant: float = 0.0


def differences(
    places: Iterable[Place], losses: Iterable[str], others: Iterable[str], metric: str = "accuracy"
) -> tuple[Contrast, ...]:
    """Every loss less every other, in every place."""
    others = tuple(others)
    return tuple(
        _difference(Column(place, loss, metric), Column(place, other, metric))
        for place in places
        for loss in losses
        for other in others
    )


def levels(losses: Iterable[str], metric: str, constant: float) -> tuple[Contrast, ...]:
    """The long tail's means less a constant."""
    return tuple(Contrast((Part(1, Column(TAIL, loss, metric)),), constant) for loss in losses)


def changes(before: str, after: str) -> tuple[Contrast, ...]:
    """What temperature scaling adds to a metric on clean digits."""
    clean = Place("digits", "clean")
    return tuple(
        _difference(Column(clean, loss, after), Column(clean, loss, before))
        for loss in (*PLAIN, "brier")
    )


def larger_than_elsewhere(here: Place) -> tuple[Contrast, ...]:
    """The candidates' gains in accuracy over CE in a place, less those in every other."""
    return tuple(
        Contrast((*_gain(1, here, loss), *_gain(-1, other, loss)))
        for loss in CANDIDATES
        for other in EVERYWHERE
        if other != here
    )


def _gain(weight: int, place: Place, loss: str) -> tuple[Part, Part]:
    ours, theirs = (Column(place, name, "accuracy") for name in (loss, "ce"))
    return Part(weight, ours), Part(-weight, theirs)


def more_variable(here: Place) -> tuple[Contrast, ...]:
    """Distances from the mean accuracy in a place, less those in others of its dataset."""
    return tuple(
        _difference(Column(here, loss, "accuracy"), Column(other, loss, "accuracy"), spread=True)
        for loss in PLAIN
        for other in EVERYWHERE
        if other.dataset == here.dataset and other != here
    )


def _difference(left: Column, right: Column, *, spread: bool = False) -> Contrast:
    return Contrast((Part(1, left, spread), Part(-1, right, spread)))


REFERENCES = ("ce", "brier")
REFERENCE = REFERENCES[0]
SIGNS = {BETTER: "+", WORSE: "−", EQUIVALENT: "=", UNDETERMINED: "?"}
COLUMNS = ["reference", "metric", "dataset", "regime", "loss", "label", "seeds", "mean"]
COLUMNS += ["reference_mean", "difference", "low", "high", "p_value", "holm", "attainable"]
COLUMNS += ["superiority", "tost", "verdict"]


def compare_losses(
    samples: Samples,
    references: Sequence[str] = REFERENCES,
    metrics: Iterable[str] | None = None,
) -> pd.DataFrame:
    """Paired comparisons on matched seeds, as `pgeom.evaluation.significance.compare` makes them.

    Holm's correction is over the losses compared with one reference in one metric and place.

    Args:
      samples: of any studies.
      references: names of losses; one that was not run is left out.
      metrics: names of `METRICS`; by default those of the samples.

    Returns:
      One row per comparison: where and what was compared, both means, and the fields of
      `Comparisons`.
    """
    names = [metric.name for metric in samples.metrics] if metrics is None else list(metrics)
    parts = [
        compare_with(samples, place, metric, {x: reference for x in others})
        for reference in references
        for metric in names
        for place in samples.places
        if samples.has(Column(place, reference, metric))
        and (others := [x for x in samples.losses(place) if x != reference])
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COLUMNS)


def compare_with(
    samples: Samples, place: Place, metric: str, references: Mapping[str, str]
) -> pd.DataFrame:
    """Losses of a place, each with the reference that it has in `references`, in one metric."""
    losses, others = [*references], [*references.values()]
    values = samples.compared(place, (*losses, *others), metric)
    ours, theirs = values[: len(losses)], values[len(losses) :]
    rule = METRICS[metric]
    result = compare(ours, theirs, margin=rule.margin, higher_is_better=rule.higher_is_better)
    what = {
        "reference": others,
        "loss": losses,
        "label": [samples.labels[loss] for loss in losses],
        "mean": ours.mean(axis=1, dtype=float),
        "reference_mean": theirs.mean(axis=1, dtype=float),
        **result._asdict(),
    }
    where = {"metric": metric, **place._asdict(), "seeds": values.shape[1]}
    return pd.DataFrame(what).assign(**where)[COLUMNS]


def powered(attainable: float, losses: int) -> bool:
    """Whether so many losses could be told apart: Holm's correction of the least p-value."""
    return attainable * losses <= LEVEL


def select_effects(effects: pd.DataFrame, reference: str, metric: str) -> pd.DataFrame:
    """The comparisons with one reference in one metric."""
    return effects[(effects["reference"] == reference) & (effects["metric"] == metric)]


def effects_grid(effects: pd.DataFrame, title: str, across: Sequence[str]) -> Grid:
    """Mean differences with their intervals and verdicts: losses down, some fields across."""
    names = effects[list(across)].agg(", ".join, axis=1)
    cells = {
        (row["loss"], name): effect_text(row)
        for name, row in zip(names, effects.to_dict("records"), strict=True)
    }
    columns = list(dict.fromkeys(names))
    rows = [
        [label, *(cells.get((loss, name), "–") for name in columns)]
        for loss, label in dict(zip(effects["loss"], effects["label"], strict=True)).items()
    ]
    return Grid(title, ["Loss", *columns], rows, set(), [rule_note(effects)])


def effect_text(row: dict) -> str:
    """A difference, its interval and the sign of its verdict."""
    if np.isnan(row["difference"]):
        return "diverged"
    return f"{effect(row)} {SIGNS[row['verdict']]}"


def effect(row: dict) -> str:
    """A difference and its interval, which a single seed does not have."""
    if np.isnan(row["low"]):
        return f"{row['difference']:+.3f} [–]"
    return f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"


def rule_note(effects: pd.DataFrame) -> str:
    """What the signs stand for, and how many seeds there are."""
    seeds = " to ".join(map(str, sorted({effects["seeds"].min(), effects["seeds"].max()})))
    margins = {f"±{METRICS[name].margin:g}" for name in effects["metric"]}
    within = f" within {margins.pop()}" if len(margins) == 1 else ""
    return (
        f"mean paired difference [95% BCa interval] over {seeds} seeds; + better, "
        f"− worse (interval and Holm-corrected Wilcoxon test agree), = equivalent{within} "
        f"(TOST, 5%), ? undetermined"
    )


def against_reference(frame: pd.DataFrame, title: str) -> Grid | None:
    """Every loss of a place against cross-entropy, in the headline metric and NLL.

    None where cross-entropy is not among the losses, or nothing else is.
    """
    metrics = [headline(frame), METRICS["nll"]]
    samples = Samples(frame)
    effects = compare_losses(samples, (REFERENCE,), [metric.name for metric in metrics])
    if effects.empty:
        return None
    labels = effects["metric"].map({metric.name: f"Δ{metric.label}" for metric in metrics})
    grid = effects_grid(effects.assign(across=labels), f"{title}: against CE", ["across"])
    pairs, losses = int(effects["seeds"].min()), effects["loss"].nunique()
    least = 2.0 / 2**pairs
    floor = (
        f"the least p-value of {count(pairs, 'pair')} is {least:.4g}, Holm-corrected "
        f"{min(1.0, losses * least):.4g}"
    )
    floor += "" if powered(least, losses) else ": the comparison is descriptive"
    return grid.with_notes([floor, *version_notes(frame)])


LEFT_OUT = "long-tail"  # where early stopping leaves all but a few losses near chance


class RankedLosses(NamedTuple):
    """The mean ranks of some losses in one metric."""

    metric: Metric
    losses: list[str]
    labels: list[str]
    ranking: Ranking


def rank_losses(samples: Samples) -> list[RankedLosses]:
    """The losses ranked by their means in every place but the long tail, metric by metric.

    Only losses that were run in all of these places are ranked; of fewer than three losses or two
    places there are no ranks.
    """
    places = [place for place in samples.places if place.kind != LEFT_OUT]
    losses = [loss for loss in samples.labels if all(loss in samples.losses(p) for p in places)]
    if len(places) < 2 or len(losses) < 3:
        return []
    labels, ranked = [samples.labels[loss] for loss in losses], []
    for metric in samples.metrics:
        values = [samples.compared(place, losses, metric.name) for place in places]
        means = [one.mean(axis=1, dtype=float) for one in values]
        if np.isfinite(means).all():
            ranking = rank(np.stack(means), higher_is_better=metric.higher_is_better)
            ranked.append(RankedLosses(metric, losses, labels, ranking))
    return ranked


def ranks_grid(ranked: list[RankedLosses]) -> Grid | None:
    """Mean ranks: losses down, metrics across, the best of each marked."""
    if not ranked:
        return None
    ranks = np.array([one.ranking.mean_ranks for one in ranked]).T
    rows = [
        [label, *(f"{value:.1f}" for value in values)]
        for label, values in zip(ranked[0].labels, ranks, strict=True)
    ]
    best = {(row, column + 1) for row, column in np.argwhere(np.isclose(ranks, ranks.min(axis=0)))}
    first = ranked[0].ranking
    tests = ", ".join(f"{one.metric.title} p = {one.ranking.p_value:.1g}" for one in ranked)
    notes = [
        f"1 is best; over {first.cells} places, without the long tail; two losses differ where "
        f"their mean ranks are more than {first.critical_difference:.1f} apart (Nemenyi, 5%)",
        f"Friedman's test: {tests}; places of one dataset share its examples, so that these are "
        "descriptive",
    ]
    return Grid("mean ranks", ["Loss", *(one.metric.title for one in ranked)], rows, best, notes)
