"""What a failed check of a user's generator means, in plain words.

A failure is about the function, a bound that was searched for, or the arithmetic, and never about
the lemma that the row is named after.

>>> from proofs_numeric.check import upper_bound
>>> bounds = {"paper": 2.0, "sharp": 2.0}
>>> row = upper_bound("ℓ ≤ M", "Prop. (capm)", observed=3.0, **bounds, how="by hand")
>>> explain_upper_bound(row, "the largest loss").partition(":")[0]
'the searched bound is too small'
"""

import math
from typing import NamedTuple

from pgeom.diagnosis import describe_pair
from proofs_numeric.check import Check

# what a row is about, where it is no claim of the paper
PROPERTY, ARITHMETIC, FLOAT32 = "property of F", "arithmetic", "arithmetic in float32"


class Diagnostic(NamedTuple):
    """A check, and what it would mean that it failed."""

    check: Check
    failure: str


def explain_identity(error, size, eta, p) -> str:
    """R(η,p) − R(η,η) and D(η,p) differ, though algebra makes them equal whatever F is."""
    return (
        "the arithmetic of the score failed: R(η,p) − R(η,η) and D(η,p), which are equal for "
        f"every F, were computed {error:.3g} apart, from terms of size up to {size:.3g}, at "
        f"{describe_pair(eta, p)}"
    )


def explain_upper_bound(row: Check, largest: str) -> str:
    """A value exceeds what the curvature of F allows, so that curvature was not all found."""
    if not math.isfinite(row.observed):
        return f"{largest} is not finite: {row.observed}"
    if row.sharp_bound is not None and row.observed > row.sharp_bound:
        return (
            f"the searched bound is too small: {largest} found is {row.observed:.6g}, above the "
            f"{row.sharp_bound:.6g} by M_T; F bends more than the search for M_T saw, as at a kink"
        )
    return (
        f"the searched bounds on {largest} are inconsistent: "
        f"{row.sharp_bound:.6g} by M_T, {row.paper_bound:.6g} by M"
    )


def explain_lower_bound(row: Check) -> str:
    """F is flatter between two points than the least curvature that was found allows."""
    return (
        f"the searched bound is too large: the least D(η,p)/½‖η−p‖² found is {row.observed:.6g}, "
        f"below the {row.sharp_bound:.6g} by m_T; F bends less than the search for m_T saw"
    )
