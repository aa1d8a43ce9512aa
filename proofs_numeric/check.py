"""The verdict on one claim for one configuration, and the ways to reach it.

Ratios say how much of a bound is used: 1 is attained, more than 1 is a violation, for bounds from
below as for bounds from above.

>>> where = ("loss ≤ M", "Prop. (capm)")
>>> check = upper_bound(*where, observed=1.5, paper=3.0, sharp=2.0, how="by hand")
>>> check.holds, check.ratio_to_paper, check.ratio_to_sharp
(True, 0.5, 0.75)
>>> attainment(*where, observed=1.5, paper=3.0, how="by hand").holds
False
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from proofs_numeric.configurations import Configurations

Number = SupportsFloat  # a float, or a scalar of NumPy or JAX

ROUNDING = 1e-9  # relative excess that float64 and a search may show over an exact bound
ATTAINED = 1e-6  # relative shortfall up to which a bound counts as attained


class Check(NamedTuple):
    """What was claimed, what was found, and whether the claim holds.

    Attributes:
      claim: the statement, the same for every configuration.
      paper_label: where the paper states it, or in words what is claimed beyond it; of a user's
        function also what is checked in place of a claim, a property of it or the arithmetic.
      paper_bound: the bound of the paper.
      sharp_bound: a sharper one, None where there is none.
      observed: the extreme that was found.
      ratio_to_paper: the share of the paper's bound that is used.
      ratio_to_sharp: the share of the sharper bound that is used.
      holds: the verdict.
      how: the configuration, and how the extreme was found.
      tolerance: of an identity, the error that rounding may leave; no bound of anyone's.
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
    tolerance: float | None = None

    @property
    def used(self) -> float | None:
        """The share of the tightest bound that is used, or of the tolerance."""
        if self.tolerance is not None:
            return _ratio(self.observed, self.tolerance)
        return self.ratio_to_paper if self.ratio_to_sharp is None else self.ratio_to_sharp


def upper_bound(
    claim: str,
    label: str,
    *,
    observed: Number,
    paper: Number | None = None,
    sharp: Number | None = None,
    how: str,
    slack: float = ROUNDING,
) -> Check:
    """observed ≤ sharp ≤ paper, up to rounding."""
    used = _ratio(observed, paper), _ratio(observed, sharp)
    order = _ratio(sharp, paper)
    return _judge(claim, label, observed, (paper, sharp), used, order, how, slack)


def lower_bound(
    claim: str,
    label: str,
    *,
    observed: Number,
    paper: Number | None = None,
    sharp: Number | None = None,
    how: str,
    slack: float = ROUNDING,
) -> Check:
    """observed ≥ sharp ≥ paper, up to rounding."""
    used = _ratio(paper, observed), _ratio(sharp, observed)
    order = _ratio(paper, sharp)
    return _judge(claim, label, observed, (paper, sharp), used, order, how, slack)


def attainment(
    claim: str,
    label: str,
    *,
    observed: Number,
    paper: Number | None = None,
    sharp: Number | None = None,
    how: str,
    shortfall: float = ATTAINED,
) -> Check:
    """observed ≤ each bound that is given, and nearly equal to it."""
    check = upper_bound(claim, label, observed=observed, paper=paper, sharp=sharp, how=how)
    given = [r for r in (check.ratio_to_paper, check.ratio_to_sharp) if r is not None]
    return check._replace(holds=check.holds and min(given) >= 1 - shortfall)


def agreement(claim: str, label: str, *, error: ArrayLike, tolerance: float, how: str) -> Check:
    """An identity: the largest error is within the tolerance."""
    # Python's numbers: NumPy's would not go into JSON
    worst, tolerance = float(np.asarray(error).max()), float(tolerance)
    holds = math.isfinite(worst) and worst <= tolerance
    return Check(claim, label, None, None, worst, None, None, holds, how, tolerance)


def finiteness(claim: str, label: str, *, values: ArrayLike, how: str) -> Check:
    """Every value is finite: the share of those that are not is zero."""
    broken = np.mean(~np.isfinite(np.asarray(values)))
    return agreement(claim, label, error=broken, tolerance=0.0, how=how)


def check_each(
    judge: Callable[..., Check],
    claim: str,
    label: str,
    cases: "Configurations[Any]",
    how: str,
    **columns: ArrayLike,
) -> list[Check]:
    """`judge` on each configuration.

    Args:
      judge: one of the functions above.
      claim, label: as for `judge`.
      cases: the configurations, with `K` and `names`.
      how: how the values were found; K and the configuration's name are put before it.
      columns: the arguments of `judge`, each a scalar for all or an array `[len(names)]`.

    Returns:
      One `Check` per configuration.
    """
    arrays = {key: np.broadcast_to(values, len(cases.names)) for key, values in columns.items()}
    return [
        judge(
            claim,
            label,
            how=f"K={cases.K}, {name}: {how}",
            **{key: float(values[i]) for key, values in arrays.items()},
        )
        for i, name in enumerate(cases.names)
    ]


def _judge(
    claim: str,
    label: str,
    observed: Number,
    bounds: tuple[Number | None, Number | None],
    used: tuple[float | None, float | None],
    order: float | None,
    how: str,
    slack: float,
) -> Check:
    """`used` and `order` are ratios that may not exceed one; a NaN never holds."""
    ratios = [ratio for ratio in (*used, order) if ratio is not None]
    holds = math.isfinite(float(observed)) and all(ratio <= 1 + slack for ratio in ratios)
    paper, sharp = (None if bound is None else float(bound) for bound in bounds)
    return Check(claim, label, paper, sharp, float(observed), *used, holds, how)


def _ratio(small: Number | None, large: Number | None) -> float | None:
    """small/large; a bound that is not positive is not used at all where it is met, else broken."""
    if small is None or large is None:
        return None
    small, large = float(small), float(large)
    if large <= 0:
        return 0.0 if small <= large else math.inf
    return 1.0 if small == large else small / large  # the same, also of two infinite bounds
