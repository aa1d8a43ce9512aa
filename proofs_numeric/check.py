"""The verdict on one claim for one configuration, and the three ways to reach it.

Ratios say how much of a bound is used: 1 is attained, more than 1 is a violation, for bounds from
below as for bounds from above.

>>> check = below("loss ≤ M", "Prop. (capm)", observed=1.5, paper=3.0, sharp=2.0, how="by hand")
>>> check.holds, check.ratio_to_paper, check.ratio_to_sharp
(True, 0.5, 0.75)
>>> attains("loss ≤ M", "Prop. (capm)", observed=1.5, paper=3.0, how="by hand").holds
False
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

ROUNDING = 1e-9  # relative excess that float64 and a search may show over an exact bound
ATTAINED = 1e-6  # relative shortfall up to which a bound counts as attained


class Check(NamedTuple):
    """What was claimed, what was found, and whether the claim holds.

    Attributes:
      claim: the statement, the same for every configuration.
      paper_label: where the paper states it, or the note's section where it does not; of a user's
        function also what is checked in place of a claim, a property of it or the arithmetic.
      paper_bound: the bound of the paper.
      sharp_bound: a sharper one, None where there is none.
      observed: the extreme that was found.
      ratio_to_paper: the share of the paper's bound that is used.
      ratio_to_sharp: the share of the sharper bound that is used.
      holds: the verdict.
      how: the configuration, and how the extreme was found.
    """

    claim: str
    paper_label: str
    paper_bound: float | None
    sharp_bound: float | None
    observed: float
    ratio_to_paper: float | None
    ratio_to_sharp: float | None
    holds: bool
    how: str


def below(
    claim: str, label: str, *, observed, paper=None, sharp=None, how: str, slack=ROUNDING
) -> Check:
    """observed ≤ sharp ≤ paper, up to rounding."""
    used = [_ratio(observed, bound) for bound in (paper, sharp)]
    return _judge(claim, label, observed, paper, sharp, used, _ratio(sharp, paper), how, slack)


def above(
    claim: str, label: str, *, observed, paper=None, sharp=None, how: str, slack=ROUNDING
) -> Check:
    """observed ≥ sharp ≥ paper, up to rounding."""
    used = [_ratio(bound, observed) for bound in (paper, sharp)]
    return _judge(claim, label, observed, paper, sharp, used, _ratio(paper, sharp), how, slack)


def attains(
    claim: str, label: str, *, observed, paper=None, sharp=None, how: str, shortfall=ATTAINED
) -> Check:
    """observed ≤ each bound that is given, and as good as equal to it."""
    check = below(claim, label, observed=observed, paper=paper, sharp=sharp, how=how)
    given = [r for r in (check.ratio_to_paper, check.ratio_to_sharp) if r is not None]
    return check._replace(holds=check.holds and min(given) >= 1 - shortfall)


def agrees(claim: str, label: str, *, error, tolerance, how: str) -> Check:
    """An identity: the largest error is within the tolerance, shown as the bound."""
    return below(claim, label, observed=float(np.max(error)), paper=tolerance, how=how, slack=0.0)


def finite(claim: str, label: str, *, values, how: str) -> Check:
    """Every value is finite: the share of those that are not is zero."""
    broken = float(np.mean(~np.isfinite(np.asarray(values))))
    return below(claim, label, observed=broken, paper=0.0, how=how)


def for_each(judge: Callable[..., Check], claim: str, label: str, found, how: str, **columns):
    """`judge` on each configuration.

    Args:
      judge: one of the functions above.
      claim, label: as for `judge`.
      found: the `Configurations`, with `K` and `names`.
      how: how the values were found; K and the configuration's name are put before it.
      columns: the arguments of `judge`, each a scalar for all or an array `[len(names)]`.

    Returns:
      A list of `Check`s.
    """
    columns = {key: np.broadcast_to(value, len(found.names)) for key, value in columns.items()}
    return [
        judge(
            claim,
            label,
            how=f"K={found.K}, {name}: {how}",
            **{key: float(values[i]) for key, values in columns.items()},
        )
        for i, name in enumerate(found.names)
    ]


def _judge(claim, label, observed, paper, sharp, used, order, how, slack) -> Check:
    """`used` and `order` are ratios that may not exceed one; a NaN never holds."""
    ratios = [r for r in (*used, order) if r is not None]
    holds = math.isfinite(observed) and all(r <= 1 + slack for r in ratios)
    numbers = (None if x is None else float(x) for x in (paper, sharp, observed, *used))
    return Check(claim, label, *numbers, bool(holds), how)


def _ratio(small, large) -> float | None:
    """small/large; a bound that is not positive is not used at all where it is met, else broken."""
    if small is None or large is None:
        return None
    small, large = float(small), float(large)
    if large <= 0:
        return 0.0 if small <= large else math.inf
    return 1.0 if small == large else small / large  # the same, also of two infinite bounds
