"""The paper's empirical claims, one value each, held against the records.

A claim says of contrasts that they are above or below zero, close to it, or at least or at most
zero but for a margin. Margins are ours where the paper says "close", "near", "slightly" or "small",
and stand in the text.

A contrast is *above* zero where its 95% BCa interval and its Wilcoxon test (5%) say so, *close*
where two one-sided t-tests do, and *at least* or *at most* so much where both its BCa and its
Student interval do; it is contradicted where the tests, or both intervals, say the opposite.

A claim about all its contrasts is reproduced if all hold and reversed if one is contradicted. A
claim about some is reproduced if one holds, with p-values corrected by Holm, and reversed if all
are contradicted. Anything else is undetermined.

>>> CLAIMS[0].says, len(CLAIMS[0].contrasts)
('close', 9)
"""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from experiments.show.contrasts import (
    ABLATED,
    ADJUSTED,
    CANDIDATES,
    CLEAN,
    DIGITS,
    EVERYWHERE,
    NOISY,
    PAIRS,
    PLAIN,
    ROBUST,
    TAIL,
    Contrast,
    changes,
    differences,
    effect,
    larger_than_elsewhere,
    levels,
    more_variable,
)
from experiments.show.metrics import METRICS, Samples
from experiments.show.published import load_published
from experiments.show.tables import Grid
from pgeom.evaluation import significance
from pgeom.evaluation.significance import holm, paired_wilcoxon
from pgeom.losses.catalogue import GENERAL, LOSSES

PROTOCOL, ABLATION, PROBES = "protocol", "ablation", "robustness"
OTHERS = tuple(loss for loss in GENERAL if loss != "ce")
NATURAL = ("gaussian_0.1", "gaussian_0.2", "salt_and_pepper_0.1")
ATTACKS = ("fgsm_0.05", "fgsm_0.1", "fgsm_0.2", "pgd_0.1", "pgd_0.2")


class Claim(NamedTuple):
    """What the paper says.

    Attributes:
      text: the claim in words.
      where: it is made, by the paper's label.
      says: what is true of the contrasts.
      contrasts: all of which must have it, or one of them, if `some`.
      margin: of "close", "at least" and "at most".
      some: whether one is enough.
      source: the study that the runs are of.
    """

    text: str
    where: str
    says: Literal["above", "below", "close", "at least", "at most"]
    contrasts: tuple[Contrast, ...]
    margin: float = METRICS["accuracy"].margin
    some: bool = False
    source: str = PROTOCOL


CLAIMS = (
    Claim(
        "On clean data CAPM, HPG and APMS are close to CE in accuracy (±.005)",
        "abstract, tab:candidate-accuracy",
        "close",
        differences(CLEAN, CANDIDATES, ("ce",)),
    ),
    Claim(
        "In some noisy-label cells a candidate is more accurate than CE",
        "abstract, tab:candidate-accuracy",
        "above",
        differences(NOISY, CANDIDATES, ("ce",)),
        some=True,
    ),
    Claim(
        "Under pair flips on digits all three candidates are more accurate than CE",
        "tab:candidate-accuracy",
        "above",
        differences((PAIRS,), CANDIDATES, ("ce",)),
    ),
    Claim(
        "Nowhere do the candidates gain more accuracy over CE than there",
        "sec:results, overall",
        "above",
        larger_than_elsewhere(PAIRS),
    ),
    Claim(
        "Accuracy varies more over seeds there than in the other cells of digits",
        "sec:results, overall",
        "above",
        more_variable(PAIRS),
    ),
    *(
        Claim(
            f"With 40% symmetric noise on digits {LOSSES[loss].label} is more accurate than CE and "
            "the candidates",
            "tab:digits-noise",
            "above",
            differences((DIGITS,), (loss,), PLAIN),
        )
        for loss in ROBUST
    ),
    *(
        Claim(
            f"There SCE, GCE, APL and MAE have a lower {name} than CE and the candidates",
            "tab:digits-noise",
            "below",
            differences((DIGITS,), ROBUST, PLAIN, metric),
        )
        for metric, name in (("nll", "NLL"), ("brier", "Brier score"))
    ),
    Claim(
        "There CAPM, HPG and APMS are more accurate than CE",
        "tab:digits-noise",
        "above",
        differences((DIGITS,), CANDIDATES, ("ce",)),
    ),
    Claim(
        "On the long tail the prior-adjusted losses have a higher balanced accuracy than others",
        "tab:longtail",
        "above",
        differences((TAIL,), ADJUSTED, GENERAL, "balanced_accuracy"),
    ),
    Claim(
        "There Balanced Softmax and logit adjustment match (±.005)",
        "tab:longtail",
        "close",
        differences((TAIL,), ("balanced_softmax",), ("logit_adjustment",), "balanced_accuracy"),
    ),
    Claim(
        "There the candidates are close to CE in balanced accuracy (±.005)",
        "tab:longtail",
        "close",
        differences((TAIL,), CANDIDATES, ("ce",), "balanced_accuracy"),
    ),
    Claim(
        "There CE and the candidates remain near a balanced accuracy of .16 (±.02)",
        "tab:longtail",
        "close",
        levels(PLAIN, "balanced_accuracy", 0.16),
        margin=0.02,
    ),
    Claim(
        "There their NLL is close to that of a uniform forecast, log 10 (±.02)",
        "tab:longtail",
        "close",
        levels(PLAIN, "nll", math.log(10)),
        margin=0.02,
    ),
    Claim(
        "There their Brier score is close to that of a uniform forecast, .9 (±.01)",
        "tab:longtail",
        "close",
        levels(PLAIN, "brier", 0.9),
        margin=0.01,
    ),
    Claim(
        "There Balanced Softmax and logit adjustment exceed a balanced accuracy of .62",
        "sec:discussion",
        "above",
        levels(("balanced_softmax", "logit_adjustment"), "balanced_accuracy", 0.62),
    ),
    Claim(
        "Temperature scaling lowers the NLL of CE, Brier and the candidates on clean digits",
        "tab:calibration",
        "below",
        changes("nll", "plain_calibrated_nll"),
    ),
    Claim(
        "Temperature scaling lowers their ECE there",
        "tab:calibration",
        "below",
        changes("ece", "plain_calibrated_ece"),
    ),
    *(
        Claim(
            f"{LOSSES[loss].label} does not beat CE in accuracy everywhere (somewhere by ≤ .005)",
            "abstract, sec:conclusion",
            "at most",
            differences(EVERYWHERE, (loss,), ("ce",)),
            some=True,
        )
        for loss in CANDIDATES
    ),
    *(
        Claim(
            f"{part} does not gain accuracy in every ablation cell (at most .005 in one)",
            "fig:ablations",
            "at most",
            differences(ABLATED, (full,), (without,)),
            some=True,
            source=ABLATION,
        )
        for part, full, without in (
            ("CAPM's graph", "capm", "capm-no-graph"),
            ("CAPM's tail term", "capm", "capm-no-tail"),
            ("HPG's ridges", "hpg-4", "hpg-0"),
            ("APMS's margin penalty", "apms-0.2", "apms-0"),
        )
    ),
    Claim(
        "On confusion CAPM without graph or tail term can match the full one (at least −.005)",
        "sec:results, ablation",
        "at least",
        differences(ABLATED[1:], ("capm-no-graph", "capm-no-tail"), ("capm",)),
        some=True,
        source=ABLATION,
    ),
    Claim(
        "APMS's initial coefficient changes mean accuracy only slightly (±.005)",
        "sec:results, ablation",
        "close",
        differences(ABLATED, ("apms-0.05", "apms-0.1", "apms-0.2", "apms-0.5"), ("apms-0",)),
        source=ABLATION,
    ),
    *(
        Claim(
            f"{name} leave clean-trained digits models close to CE's in accuracy (±.05)",
            "fig:natural-corruption, fig:attacks",
            "close",
            tuple(c for m in kinds for c in differences(CLEAN[1:2], OTHERS, ("ce",), m)),
            margin=0.05,
            source=PROBES,
        )
        for name, kinds in (("Input corruptions", NATURAL), ("Attacks", ATTACKS))
    ),
)


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


def claims_grid(checked: pd.DataFrame) -> Grid | None:
    """The claims with their labels, our numbers and the published ones."""
    if checked.empty:
        return None
    rows = [
        [
            row["claim"],
            row["label"],
            effect(row),
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
