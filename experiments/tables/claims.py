"""The paper's empirical claims, one value each; `claim_verdicts.py` holds them against the records.

A claim says of contrasts that they are above or below zero, close to it, or at least or at most
zero but for a margin. Margins are ours where the paper says "close", "near", "slightly" or "small",
and stand in the text.

>>> CLAIMS[0].says, len(CLAIMS[0].contrasts)
('close', 9)
"""

import math
from typing import Literal, NamedTuple

from experiments.tables.contrasts import (
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
    larger_than_elsewhere,
    levels,
    more_variable,
)
from experiments.tables.margins import METRICS
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
