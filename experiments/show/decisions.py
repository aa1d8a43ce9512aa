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

from experiments.show.contrasts import compare_losses, interval
from experiments.show.metrics import METRICS, Column, Metric, Place, Samples
from experiments.show.tables import Grid
from pgeom.evaluation.significance import BETTER, LEVEL, WORSE, Comparisons, compare

DEFAULT = "ce"
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


def decide(
    samples: Samples,
    situations: Sequence[Situation] = SITUATIONS,
    *,
    effects: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The decision table, one row per situation that was run with two seeds at least.

    Args:
      samples: of the protocol's runs, with cross-entropy among the losses.
      situations: to decide.
      effects: as `compare_losses` gives them, if they are at hand.

    Returns:
      Columns: situation, metric, places, loss and label (the choice), compared (the label of the
      loss whose effect is given), effect, low, high (against cross-entropy, 95%), seeds (of the
      estimate), verdict, evidence (powered if so many seeds could have told the losses apart, else
      descriptive), fails (where in the situation the choice loses).
    """
    choosing, estimating = samples.halves()
    first = samples.headline.name
    wanted = [situation.metric or first for situation in situations]
    if effects is None:
        effects = compare_losses(samples, (DEFAULT,), dict.fromkeys((first, "nll", *wanted)))
    effects = effects[effects["reference"] == DEFAULT]
    known = compare_losses(choosing, (DEFAULT,), dict.fromkeys(wanted))
    rows, decided = [], set()
    for situation, metric in zip(situations, wanted, strict=True):
        places = [place for place in estimating.places if situation.includes(place)]
        losses = _run_everywhere(samples, places)
        other = "nll" if metric == first else metric  # in which a choice may fail, too
        question = (metric, *places)
        if not places or not losses or question in decided:
            continue
        decided.add(question)
        rival = _choose(choosing, known, places, losses, metric)
        values = _pooled(estimating, places, [rival], metric)
        result = _against_default(values, metric)
        powered = result.attainable[0] * len(losses) <= LEVEL
        choice = rival if _is_better(result, METRICS[metric], powered) else DEFAULT
        rows.append(
            {
                "situation": situation.name,
                "metric": metric,
                "places": len(places),
                "loss": choice,
                "label": samples.labels[choice],
                "compared": samples.labels[rival],
                "effect": result.difference[0],
                "low": result.low[0],
                "high": result.high[0],
                "seeds": values.shape[1],
                "verdict": result.verdict[0],
                "evidence": POWERED if powered else DESCRIPTIVE,
                "fails": _failures(effects, places, choice, (first, other)),
            }
        )
    return pd.DataFrame(rows)


def decision_table(decisions: pd.DataFrame) -> Grid | None:
    """The decision table as a grid."""
    if decisions.empty:
        return None
    rows = [
        [
            row["situation"],
            row["label"],
            f"{row['compared']}: {row['effect']:+.3f} {interval(row['low'], row['high'])}",
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


def _run_everywhere(samples: Samples, places: Sequence[Place]) -> list[str]:
    """The losses besides cross-entropy that were run in all places, where that was, too."""
    everywhere = [x for x in samples.labels if all(x in samples.losses(p) for p in places)]
    return [loss for loss in everywhere if loss != DEFAULT] if DEFAULT in everywhere else []


def _choose(
    samples: Samples,
    effects: pd.DataFrame,
    places: Sequence[Place],
    losses: Sequence[str],
    metric: str,
) -> str:
    """The loss of the largest mean gain among those that are nowhere shown to be worse."""
    lost = effects[(effects["verdict"] == WORSE) & (effects["metric"] == metric)]
    where = zip(lost["dataset"], lost["regime"], lost["loss"], strict=True)
    worse = {loss for dataset, regime, loss in where if (dataset, regime) in places}
    eligible = [loss for loss in losses if loss not in worse] or list(losses)
    gains = METRICS[metric].gain(1.0) * _pooled(samples, places, eligible, metric).mean(axis=1)
    return eligible[int(np.argmax(np.nan_to_num(gains, nan=-np.inf)))]


def _pooled(
    samples: Samples, places: Sequence[Place], losses: Sequence[str], metric: str
) -> Float[np.ndarray, "losses seeds"]:
    """Differences from cross-entropy, seed by seed, averaged over places."""
    names = (DEFAULT, *losses)
    columns = [Column(place, name, metric) for name in names for place in places]
    values = samples.matched(columns).astype(float).reshape(len(names), len(places), -1)
    means = values.mean(axis=1)
    return means[1:] - means[0]


def _against_default(values: Float[np.ndarray, "1 seeds"], metric: str) -> Comparisons:
    rule, nothing = METRICS[metric], np.zeros(values.shape[1])
    better = rule.higher_is_better
    return compare(values, nothing, margin=rule.margin, higher_is_better=better)


def _is_better(result: Comparisons, metric: Metric, powered: bool) -> bool:
    """Whether the rival is shown to be better or, without the power for it, seems to be."""
    if powered:
        return result.verdict[0] == BETTER
    return metric.gain(result.difference[0]) > metric.margin


def _failures(
    effects: pd.DataFrame, places: Sequence[Place], loss: str, metrics: Sequence[str]
) -> str:
    """The worst of these cells in which the choice is shown to lose, in each of some metrics."""
    texts = []
    cells = zip(effects["dataset"], effects["regime"], strict=True)
    effects = effects[[cell in places for cell in cells]]
    for metric in metrics:
        part = effects[effects["metric"] == metric]
        lost = _shown(part, BETTER) if loss == DEFAULT else _shown(part, WORSE)
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
