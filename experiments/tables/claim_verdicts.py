"""The paper's claims held against the records: reproduced, reversed or undetermined.

A contrast is *above* zero where its 95% BCa interval and its Wilcoxon test (5%) say so, *close*
where two one-sided t-tests do, and *at least* or *at most* so much where both its BCa and its
Student interval do; it is contradicted where the tests, or both intervals, say the opposite.

A claim about all its contrasts is reproduced if all hold and reversed if one is contradicted. A
claim about some is reproduced if one holds, with p-values corrected by Holm, and reversed if all
are contradicted. Anything else is undetermined.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from experiments.tables.claims import CLAIMS, Claim
from experiments.tables.contrasts import Contrast
from experiments.tables.effects import interval
from experiments.tables.grid import Grid
from experiments.tables.published import load_published
from experiments.tables.samples import Samples
from pgeom.evaluation import significance
from pgeom.evaluation.significance import holm, paired_wilcoxon

REPRODUCED, REVERSED, UNDETERMINED = "reproduced", "reversed", "undetermined"
DECIMALS = 6  # of float32 metrics: differences that agree so far are ties


class Estimates(NamedTuple):
    """The contrasts of a claim: their means, intervals, and what was shown of each."""

    mean: Float[np.ndarray, " contrasts"]
    low: Float[np.ndarray, " contrasts"]
    high: Float[np.ndarray, " contrasts"]
    holds: Bool[np.ndarray, " contrasts"]
    contradicted: Bool[np.ndarray, " contrasts"]


def check_claims(
    sources: Mapping[str, Samples], claims: tuple[Claim, ...] = CLAIMS
) -> pd.DataFrame:
    """One row per claim whose runs are there, with the contrast that decides it.

    That is the weakest of all that must hold, or the strongest of those of which one is enough.

    Args:
      sources: the samples of each study by its name: `protocol`, `ablation`, `robustness`.
      claims: to check.
    """
    published, rows = _published_means(), []
    for claim in claims:
        samples = sources.get(claim.source)
        parts = [part for contrast in claim.contrasts for part in contrast.parts]
        if samples is None or not all(samples.has(part.column) for part in parts):
            continue
        values = [_values(samples, contrast) for contrast in claim.contrasts]
        seeds = min(map(len, values))
        estimates = estimate(np.stack([one[:seeds] for one in values]), claim)
        place = _deciding(estimates, claim)
        contrast = claim.contrasts[place]
        rows.append(
            {
                "claim": claim.text,
                "where": claim.where,
                "label": judge(estimates, some=claim.some),
                "deciding": _describe(contrast, samples),
                "difference": estimates.mean[place],
                "low": estimates.low[place],
                "high": estimates.high[place],
                "published": _published(contrast, published),
                "hold": int(estimates.holds.sum()),
                "contradicted": int(estimates.contradicted.sum()),
                "contrasts": len(claim.contrasts),
                "seeds": seeds,
            }
        )
    return pd.DataFrame(rows)


def estimate(values: Float[np.ndarray, "contrasts seeds"], claim: Claim) -> Estimates:
    """What the seeds show of each contrast of a claim; nothing of one without a number."""
    known = np.flatnonzero(np.isfinite(values).all(axis=1))
    estimates = Estimates(
        *(np.full(len(values), np.nan) for _ in range(3)),
        *(np.zeros(len(values), bool) for _ in range(2)),
    )
    for column, found in zip(estimates, _estimate(values[known], claim), strict=True):
        column[known] = found
    return estimates


def _estimate(values: Float[np.ndarray, "contrasts seeds"], claim: Claim) -> Estimates:
    mean, margin = values.mean(axis=1), claim.margin
    low, high = significance.mean_interval(values)
    student_low, student_high = significance.t_interval(values)
    least, most = np.minimum(low, student_low), np.maximum(high, student_high)
    if claim.says == "close":
        holds = significance.equivalence(values, margin) <= significance.LEVEL
        return Estimates(mean, low, high, holds, (least > margin) | (most < -margin))
    if claim.says == "at least":
        return Estimates(mean, low, high, least > -margin, most < -margin)
    if claim.says == "at most":
        return Estimates(mean, low, high, most < margin, least > margin)
    nothing = np.zeros(values.shape[1])
    p_values = np.array([paired_wilcoxon(one, nothing).p_value for one in values])
    significant = (holm(p_values) if claim.some else p_values) <= significance.LEVEL
    above, below = significant & (low > 0), significant & (high < 0)
    holds, contradicted = (above, below) if claim.says == "above" else (below, above)
    return Estimates(mean, low, high, holds, contradicted)


def judge(estimates: Estimates, *, some: bool) -> str:
    """The label of a claim."""
    enough, against = (np.any, np.all) if some else (np.all, np.any)
    if enough(estimates.holds):
        return REPRODUCED
    return REVERSED if against(estimates.contradicted) else UNDETERMINED


def claims_table(checked: pd.DataFrame) -> Grid | None:
    """The claims with their labels, our numbers and the published ones."""
    if checked.empty:
        return None
    rows = [
        [
            row["claim"],
            row["label"],
            f"{row['difference']:+.3f} {interval(row['low'], row['high'])}",
            "–" if np.isnan(row["published"]) else f"{row['published']:+.3f}",
            row["deciding"],
            f"{row['hold']} of {row['contrasts']}",
            str(row["seeds"]),
            row["where"],
        ]
        for row in checked.to_dict("records")
    ]
    header = ["Claim of the paper", "Label", "Ours [95%]", "Published", "Deciding contrast"]
    notes = [
        "ours: the contrast that decides, the weakest of all that must hold or the strongest where "
        "one is enough, with its BCa interval; shown: how many contrasts the seeds confirm",
        "a claim about all contrasts is reversed as soon as one of them is contradicted",
    ]
    return Grid("the paper's claims", [*header, "Shown", "Seeds", "Where"], rows, set(), notes)


def _deciding(estimates: Estimates, claim: Claim) -> int:
    """The place of the weakest contrast, or of the strongest if one is enough."""
    low, high, margin = estimates.low, estimates.high, claim.margin
    strength = {
        "above": low,
        "below": -high,
        "close": margin - np.maximum(np.abs(low), np.abs(high)),
        "at least": low + margin,
        "at most": margin - high,
    }[claim.says]
    known = np.nan_to_num(strength, nan=-np.inf)
    return int(np.argmax(known) if claim.some else np.argmin(known))


def _values(samples: Samples, contrast: Contrast) -> Float[np.ndarray, " seeds"]:
    """The contrast on every seed that all of its parts have."""
    columns = samples.matched([part.column for part in contrast.parts]).astype(float)
    total = np.full(columns.shape[1], -contrast.constant)
    for part, values in zip(contrast.parts, columns, strict=True):
        total += part.weight * (np.abs(values - values.mean()) if part.spread else values)
    return np.round(total, DECIMALS)


def _describe(contrast: Contrast, samples: Samples) -> str:
    """A contrast in words: of which loss, less what, and where."""
    first, *others = (part.column for part in contrast.parts)
    against = f" − {contrast.constant:.3g}" if not others else ""
    if others and others[0].loss != first.loss:
        against = f" − {samples.labels[others[0].loss]}"
    elsewhere = dict.fromkeys(str(one.place) for one in others if one.place != first.place)
    return (
        f"{samples.labels[first.loss]}{against}, {', less '.join([str(first.place), *elsewhere])}"
    )


def _published_means() -> dict[tuple[str | bool, ...], float]:
    """By dataset, regime, loss, metric and whether it is a spread, none of which is published."""
    cells = load_published().drop_duplicates(["dataset", "regime", "loss", "metric"])
    keys = zip(cells["dataset"], cells["regime"], cells["loss"], cells["metric"], strict=True)
    return {(*key, False): mean for key, mean in zip(keys, cells["mean"], strict=True)}


def _published(contrast: Contrast, means: Mapping[tuple[str | bool, ...], float]) -> float:
    """The contrast of the published means; NaN where one of them is not published."""
    terms = [
        part.weight * means.get((*part.column.place, *part.column[1:], part.spread), np.nan)
        for part in contrast.parts
    ]
    return float(np.sum(terms) - contrast.constant)
