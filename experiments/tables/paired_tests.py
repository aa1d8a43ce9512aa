"""Each loss against cross-entropy on matched seeds."""

import numpy as np
import pandas as pd

from experiments.tables.grid import Grid
from experiments.tables.margins import BALANCED, headline
from experiments.tables.numbers import p_value
from experiments.tables.summary import version_notes
from pgeom.evaluation.significance import Wilcoxon, holm, paired_wilcoxon
from pgeom.messages import count

REFERENCE = "ce"


def significance(frame: pd.DataFrame, title: str, regime: str) -> Grid | None:
    """Exact Wilcoxon tests against cross-entropy, in the headline metric and NLL, Holm-corrected.

    None where cross-entropy is not among the losses, or nothing else is.
    """
    metric = headline(frame)
    frame = frame[frame["regime"] == regime]
    labels = dict(zip(frame["loss"], frame["label"], strict=True))
    losses = [loss for loss in labels if loss != REFERENCE]
    if REFERENCE not in labels or not losses:
        return None
    header, columns = ["Loss"], [[labels[loss] for loss in losses]]
    short = "balanced acc" if metric is BALANCED else "acc"
    for field, name in ((metric.name, short), ("nll", "NLL")):
        pivot = frame.pivot(index="seed", columns="loss", values=field).astype(np.float32)
        header += [f"Δ{name}", "p", "Holm", "floor"]
        columns += _columns(pivot, losses)
    pairs = frame["seed"].nunique()
    notes = [
        "p: exact two-sided Wilcoxon on matched seeds; Holm: corrected over the losses",
        f"floor: the least p that the pairs which differ could give; {_floor(pairs, len(losses))}",
    ]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return Grid(f"{title}: against CE", header, rows, set(), notes + version_notes(frame))


def _columns(pivot: pd.DataFrame, losses: list[str]) -> list[list[str]]:
    """Mean difference, p, corrected p and least attainable p of every loss."""
    tests = [_compare(pivot[loss], pivot[REFERENCE]) for loss in losses]
    known = [place for place, test in enumerate(tests) if test is not None]
    p_values = [test.p_value for test in tests if test is not None]
    adjusted = dict(zip(known, holm(p_values), strict=True))
    return [
        [f"{(pivot[loss] - pivot[REFERENCE]).mean():+.3f}" for loss in losses],
        ["–" if test is None else p_value(test.p_value) for test in tests],
        [p_value(adjusted[k]) if k in adjusted else "–" for k in range(len(tests))],
        ["–" if test is None else p_value(test.attainable) for test in tests],
    ]


def _compare(values: pd.Series, reference: pd.Series) -> Wilcoxon | None:
    """The test of one loss, or None where a run has no number to compare."""
    if values.isna().any() or reference.isna().any():
        return None
    return paired_wilcoxon(values.to_numpy(), reference.to_numpy())


def _floor(pairs: int, losses: int) -> str:
    """The least p of so many pairs, and what Holm's correction makes of it for the first loss."""
    least = 2.0 / 2**pairs
    corrected = min(1.0, losses * least)
    text = (
        f"with {count(pairs, 'pair')} at best {least:.4g}, "
        f"Holm-corrected over {losses} {corrected:.4g}"
    )
    return f"{text}, so the comparison is descriptive" if corrected > 0.05 else text
