"""Which loss for which situation, computed from records: the decision table.

The loss is chosen on every other seed: of the losses that are nowhere in the situation shown to be
worse than cross-entropy, the one with the largest mean gain. Its effect is then estimated on the
other half of the seeds, so that it is not flattered by its choice. Where that half does not show it
to be better, the choice is cross-entropy, and the effect is that of its nearest rival. Where the
seeds are too few to show anything, a gain beyond the margin is enough, and the row is descriptive.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from experiments.show.contrasts import REFERENCE as DEFAULT, compare_losses, effect, powered
from experiments.show.metrics import METRICS, Column, Place, Samples
from experiments.show.tables import Grid
from pgeom.evaluation.significance import BETTER, LEVEL, WORSE, Comparisons, compare

STRUCTURED = ("pair-flip", "asymmetric", "instance")  # label noise that is not the same everywhere
POWERED, DESCRIPTIVE = "powered", "descriptive"


class Situation(NamedTuple):
    """What a person knows about the labels, and the metric that matters there.

    Without a metric it is the headline metric of the runs.
    """

    name: str
    includes: Callable[[Place], bool]
    metric: str | None = None


SITUATIONS = (
    Situation("Clean labels", lambda place: place.kind == "clean"),
    Situation("Symmetric label noise", lambda place: place.kind == "symmetric"),
    Situation("Structured label noise", lambda place: place.kind in STRUCTURED),
    Situation("Long tail", lambda place: place.kind == "long-tail"),
    Situation("Calibration matters, clean labels", lambda place: place.kind == "clean", "nll"),
    Situation("Calibration matters, noisy labels", lambda place: place.is_noisy, "nll"),
    Situation(
        "Noisy labels, then temperature scaling", lambda place: place.is_noisy, "calibrated_nll"
    ),
    Situation("Unknown, no long tail", lambda place: place.kind != "long-tail"),
)


class Question(NamedTuple):
    """A situation that was run: its metric, its places, and the losses run in all of them."""

    situation: str
    metric: str
    places: list[Place]
    losses: list[str]


def ask(samples: Samples, situations: Sequence[Situation] = SITUATIONS) -> list[Question]:
    """The situations of which there are runs, each question of places and metric once."""
    asked: dict[tuple, Question] = {}
    for situation in situations:
        metric = situation.metric or samples.headline.name
        places = [place for place in samples.places if situation.includes(place)]
        losses = [x for x in samples.labels if all(x in samples.losses(p) for p in places)]
        if places and DEFAULT in losses and len(losses) > 1:
            losses.remove(DEFAULT)
            asked.setdefault((metric, *places), Question(situation.name, metric, places, losses))
    return list(asked.values())


def judge_situations(samples: Samples) -> pd.DataFrame:
    """Every loss against cross-entropy in every situation, as the mean over its places.

    Holm's correction is over the losses of a situation.

    Returns:
      Columns: situation, metric, loss, label, seeds, and the fields of `Comparisons`.
    """
    parts = []
    for one in ask(samples):
        values = _pooled(samples, one.places, one.losses, one.metric)
        labels = [samples.labels[loss] for loss in one.losses]
        where = {"situation": one.situation, "metric": one.metric, "seeds": values.shape[1]}
        what = {"loss": one.losses, "label": labels}
        result = _against_default(values, one.metric)
        parts.append(pd.DataFrame({**what, **result._asdict()}).assign(**where))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def decide(samples: Samples, effects: pd.DataFrame | None = None) -> pd.DataFrame:
    """The decision table, one row per situation that was run with two seeds at least.

    Args:
      samples: of the protocol's runs, with cross-entropy among the losses.
      effects: as `compare_losses` gives them, if they are at hand.

    Returns:
      Columns: situation, metric, places, loss and label (the choice), compared (the label of the
      loss whose effect is given), difference, low, high (against cross-entropy, 95%), seeds (of the
      estimate), verdict, evidence (powered if so many seeds could have told the losses apart, else
      descriptive), fails (where in the situation the choice loses).
    """
    if samples.runs["seed"].nunique() < 2:
        return pd.DataFrame()
    choosing, estimating = samples.halves()
    questions, first = ask(samples), samples.headline.name
    wanted = [one.metric for one in questions]
    if effects is None:
        effects = compare_losses(samples, (DEFAULT,), dict.fromkeys((first, "nll", *wanted)))
    known = compare_losses(choosing, (DEFAULT,), dict.fromkeys(wanted))
    rows = []
    for one in questions:
        rival = _choose(choosing, known, one)
        values = _pooled(estimating, one.places, [rival], one.metric)
        result = {name: x[0] for name, x in _against_default(values, one.metric)._asdict().items()}
        enough = powered(result["attainable"], len(one.losses))
        gain = METRICS[one.metric].gain(result["difference"])
        # where seeds are too few to show anything, a gain beyond the margin is enough
        better = result["verdict"] == BETTER if enough else gain > METRICS[one.metric].margin
        choice = rival if better else DEFAULT
        other = "nll" if one.metric == first else one.metric  # in which a choice may fail, too
        rows.append(
            {
                "situation": one.situation,
                "metric": one.metric,
                "places": len(one.places),
                "loss": choice,
                "label": samples.labels[choice],
                "compared": samples.labels[rival],
                **{name: result[name] for name in ("difference", "low", "high", "verdict")},
                "seeds": values.shape[1],
                "evidence": POWERED if enough else DESCRIPTIVE,
                "fails": _failures(effects, one.places, choice, (first, other)),
            }
        )
    return pd.DataFrame(rows)


def decision_grid(decisions: pd.DataFrame) -> Grid | None:
    """The decision table as a grid."""
    if decisions.empty:
        return None
    rows = [
        [
            row["situation"],
            row["label"],
            f"{row['compared']}: {effect(row)}",
            METRICS[row["metric"]].label,
            row["verdict"],
            row["evidence"],
            row["fails"],
        ]
        for row in decisions.to_dict("records")
    ]
    header = ["Situation", "Loss", "Effect against CE [95%]", "Metric", "Verdict", "Evidence"]
    seeds = decisions["seeds"].max()
    notes = [
        f"chosen on half of the seeds; effect, BCa interval and verdict from the other {seeds}, as "
        "the mean over the situation's cells; powered: where the verdict is not better, the choice "
        "is CE; descriptive: too few seeds for a verdict, and a gain beyond the margin is chosen",
        "where it fails: of the situation's cells the worst in which the choice is shown to be "
        "worse than CE, or, for CE, in which another loss is shown to be better; with too few "
        "seeds for that, those whose interval lies beyond the margin",
    ]
    return Grid("which loss", [*header, "Where it fails"], rows, set(), notes)


def _choose(samples: Samples, effects: pd.DataFrame, question: Question) -> str:
    """The loss of the largest mean gain among those that are nowhere shown to be worse."""
    _, metric, places, losses = question
    lost = effects[(effects["verdict"] == WORSE) & (effects["metric"] == metric)]
    worse = set(lost["loss"][_within(lost, places)])
    eligible = [loss for loss in losses if loss not in worse] or losses
    gains = METRICS[metric].gain(_pooled(samples, places, eligible, metric).mean(axis=1))
    return eligible[int(np.argmax(np.nan_to_num(gains, nan=-np.inf)))]


def _within(effects: pd.DataFrame, places: Sequence[Place]) -> list[bool]:
    """Which comparisons are of these places."""
    return [cell in places for cell in zip(effects["dataset"], effects["regime"], strict=True)]


def _pooled(
    samples: Samples, places: Sequence[Place], losses: Sequence[str], metric: str
) -> Float[np.ndarray, "losses seeds"]:
    """Differences from cross-entropy, seed by seed, averaged over places."""
    names = (DEFAULT, *losses)
    columns = [Column(place, name, metric) for name in names for place in places]
    values = samples.matched(columns).astype(float).reshape(len(names), len(places), -1)
    means = values.mean(axis=1)
    return means[1:] - means[0]


def _against_default(values: Float[np.ndarray, "losses seeds"], metric: str) -> Comparisons:
    rule, nothing = METRICS[metric], np.zeros(values.shape[1])
    return compare(values, nothing, margin=rule.margin, higher_is_better=rule.higher_is_better)


def _failures(
    effects: pd.DataFrame, places: Sequence[Place], loss: str, metrics: Sequence[str]
) -> str:
    """The worst of these cells in which the choice is shown to lose, in each of some metrics."""
    texts = []
    effects = effects[_within(effects, places)]
    effects = effects[effects["reference"] == DEFAULT]
    for metric in dict.fromkeys(metrics):
        part = effects[effects["metric"] == metric]
        lost = _shown(part, BETTER if loss == DEFAULT else WORSE)
        lost = lost if loss == DEFAULT else lost[lost["loss"] == loss]
        if len(lost):
            row = lost.loc[lost["difference"].abs().idxmax()]
            who = f"{row['label']} has " if loss == DEFAULT else ""
            place = f"{row['dataset']}, {row['regime']}"
            texts.append(f"{who}{row['difference']:+.3f} {METRICS[metric].words} on {place}")
    return "; ".join(texts) or "in none of its cells"


def _shown(effects: pd.DataFrame, verdict: str) -> pd.DataFrame:
    """The comparisons in one metric with a verdict.

    Where the seeds are too few for any verdict, an interval beyond the margin is enough.
    """
    family = effects.groupby(["dataset", "regime"])["loss"].transform("count")
    powerless = effects["attainable"] * family > LEVEL
    metric = METRICS[effects["metric"].iloc[0]]
    sign = metric.gain(1.0) * (1 if verdict == BETTER else -1)
    nearer = (sign * effects[["low", "high"]]).min(axis=1)
    return effects[(effects["verdict"] == verdict) | (powerless & (nearer > metric.margin))]
