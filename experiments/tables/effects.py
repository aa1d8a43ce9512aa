"""Every loss against the references in every place: one row per comparison.

>>> runs = pd.DataFrame({"dataset": "digits", "regime": "clean", "seed": [0, 1, 2] * 2,
...     "loss": ["ce"] * 3 + ["hpg"] * 3, "label": ["CE"] * 3 + ["HPG"] * 3,
...     "accuracy": [0.90, 0.91, 0.92, 0.93, 0.94, 0.95]})
>>> rows = compare_losses(Samples(runs), metrics=("accuracy",))
>>> rows[["reference", "loss", "metric", "seeds", "verdict"]].values.tolist()
[['ce', 'hpg', 'accuracy', 3, 'undetermined']]
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from experiments.tables.grid import Grid
from experiments.tables.margins import METRICS
from experiments.tables.samples import Column, Place, Samples
from pgeom.evaluation.significance import BETTER, EQUIVALENT, UNDETERMINED, WORSE, compare

REFERENCES = ("ce", "brier")
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
        _family(samples, place, metric, reference)
        for reference in references
        for metric in names
        for place in samples.places
        if samples.has(Column(place, reference, metric))
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COLUMNS)


def _family(samples: Samples, place: Place, metric: str, reference: str) -> pd.DataFrame:
    """All losses of a place against one reference in one metric."""
    losses = [loss for loss in samples.losses(place) if loss != reference]
    values = samples.compared(place, (reference, *losses), metric)
    rule = METRICS[metric]
    result = compare(
        values[1:], values[0], margin=rule.margin, higher_is_better=rule.higher_is_better
    )
    where = {"reference": reference, "metric": metric, **place._asdict()}
    what = {
        "loss": losses,
        "label": [samples.labels[loss] for loss in losses],
        "seeds": values.shape[1],
        "mean": values[1:].mean(axis=1, dtype=float),
        "reference_mean": float(values[0].mean(dtype=float)),
    }
    return pd.DataFrame({**what, **result._asdict()}).assign(**where)[COLUMNS]


def effects_table(effects: pd.DataFrame, reference: str, metric: str) -> Grid:
    """Mean differences with their intervals and verdicts: losses down, places across."""
    part = effects[(effects["reference"] == reference) & (effects["metric"] == metric)]
    pairs = zip(part["dataset"], part["regime"], strict=True)
    places = [Place(*pair) for pair in dict.fromkeys(pairs)]
    labels = dict(zip(part["loss"], part["label"], strict=True))
    cells = {
        (row["loss"], Place(row["dataset"], row["regime"])): effect_text(row)
        for row in part.to_dict("records")
    }
    rows = [
        [label, *(cells.get((loss, place), "–") for place in places)]
        for loss, label in labels.items()
    ]
    title = f"{METRICS[metric].label}: difference from {reference_label(reference)}"
    return Grid(title, ["Loss", *map(str, places)], rows, set(), [rule_note(part, metric)])


def effect_text(row: dict) -> str:
    """A difference, its interval and the sign of its verdict."""
    if np.isnan(row["difference"]):
        return "diverged"
    return f"{row['difference']:+.3f} {interval(row['low'], row['high'])} {SIGNS[row['verdict']]}"


def interval(low: float, high: float) -> str:
    """An interval in brackets; a single seed has none."""
    return "[–]" if np.isnan(low) else f"[{low:+.3f}, {high:+.3f}]"


def rule_note(part: pd.DataFrame, metric: str) -> str:
    """What the signs stand for, and how many seeds there are."""
    seeds = " to ".join(map(str, sorted({part["seeds"].min(), part["seeds"].max()})))
    return (
        f"mean paired difference [95% BCa interval] over {seeds} seeds; + better, "
        f"− worse (interval and Holm-corrected Wilcoxon test agree), = equivalent within "
        f"±{METRICS[metric].margin:g} (TOST, 5%), ? undetermined"
    )


def reference_label(name: str) -> str:
    """The label of a reference."""
    from pgeom.losses.catalogue import LOSSES

    return LOSSES[name].label
