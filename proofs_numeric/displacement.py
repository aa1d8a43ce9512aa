"""Theorem (apms), second part: how far the margin penalty moves the conditional target.

    ‖p*_β − η‖ ≤ √(2βC_r/m),    ‖p*_β − η‖ ≤ √2 β/m

Sharper: (β/m_T)‖P_cone(−∇ρ(η))‖, which is zero at vertices, with a bound from below where p* is
interior; and √(β(ρ(η) − ρ(p*))/m_T), because ρ = E_η r is convex, so that 1 does in place of 2. The
minimiser must be global: D_F(η, ·) is not convex for HPG. `displacement_steps` checks the proof.
"""

import math
from collections.abc import Callable

import numpy as np

from pgeom.paper import displacement
from proofs_numeric import displacement_steps
from proofs_numeric.check import Check, agreement, attainment, lower_bound, upper_bound
from proofs_numeric.penalised_minimum import Solved, all_starts, solve
from proofs_numeric.target_problems import problems

SQUARE_ROOT, LINEAR = "Eq. (apms-sqrt-bound)", "Eq. (apms-linear-bound)"
ORDER = "beyond the paper: the square-root bound is never the least of the three"
GLOBAL = "beyond the paper: D(η, ·) is not convex for HPG, so the minimum must be global"
CONE = "beyond the paper: only the penalty's slope at η, along feasible directions, counts"
CONVEX = "beyond the paper: the penalty is convex, so that 1 does for the 2 under the root"
UNIQUE = "beyond the paper: L_T times the cone bound below m_T makes p* unique"
CLAIMS = (
    "‖p*−η‖ ≤ √(2βC_r/m)",
    "‖p*−η‖ ≤ √2β/m",
    "min(√2β/m, √2) ≤ √(2βC_r/m)",
    "no probe is below the minimum",
)
HIGHER = 1e-10  # by which a probe may undercut a minimum that is only resolved to rounding
INTERIOR = 1e-6
NEARLY = {"softplus family": 0.1, "competitors family": 0.2}  # shortfall of the lower bound


def checks(
    K: int,
    *,
    displacement_bounds: Callable = displacement.displacement_bounds,
    starts: Callable = all_starts,
    minimise: Callable = displacement.minimise,
    first_order: Callable = displacement_steps.first_order,
    root: Callable = displacement_steps.root,
    slack: Callable = displacement_steps.slack,
) -> list[Check]:
    """Every check of the displacement on K classes, with bounds, search and steps under test."""
    solved = solve(problems(K), displacement_bounds, starts, minimise)
    by_name = {one.problem.name: one for one in solved}
    rows = [check for one in solved for check in check_bounds(one)]
    rows += check_vertex(by_name["vertex"])
    rows += check_extremal(by_name["extremal family"], by_name["anisotropic family"])
    rows += [check_lower(one, NEARLY[name]) for name, one in by_name.items() if name in NEARLY]
    rows += displacement_steps.checks(solved, first_order=first_order, root=root, slack=slack)
    return rows + (check_two_minima(by_name["two minima"], starts) if K == 2 else [])


def check_bounds(one: Solved) -> list[Check]:
    """What holds for every target."""
    limits, how = one.bounds, one.how
    active = "square-root" if limits.square_root < one.linear else "linear"
    crossover = one.problem.beta * (limits.square_root / one.linear) ** 2  # m C_r
    trivial = min(one.linear, np.sqrt(2))
    square_root = f"{how}; the {active} bound is the lower, up to β={crossover:.3g}"
    root = {"observed": one.distance, "paper": limits.square_root}
    linear = {"observed": one.distance, "paper": one.linear, "sharp": limits.cone}
    lowest = {"observed": float(one.minimum.value) - HIGHER, "sharp": float(one.facts.probe)}
    rows = [
        upper_bound(CLAIMS[0], SQUARE_ROOT, how=square_root, **root),
        upper_bound(CLAIMS[1], LINEAR, how=how, **linear),
        upper_bound(CLAIMS[2], ORDER, observed=trivial, paper=limits.square_root, how=how),
        upper_bound(CLAIMS[3], GLOBAL, how=how, **lowest),
    ]
    if one.minimum.point.min() > INTERIOR:
        claim = "lower bound ≤ ‖p*−η‖"
        rows.append(lower_bound(claim, CONE, observed=one.distance, sharp=limits.lower, how=how))
    if limits.unique:
        spread = np.abs(one.minimum.ends - one.minimum.point).max()
        claim = "certified unique: all starts agree"
        rows.append(agreement(claim, UNIQUE, error=spread, tolerance=1e-8, how=how))
    return rows


def check_vertex(one: Solved) -> list[Check]:
    """A certain η is not moved, and the cone bound says so."""
    moved = max(one.distance, float(one.bounds.cone))
    return [agreement("η = e_y is not moved", CONE, error=moved, tolerance=1e-9, how=one.how)]


def check_extremal(one: Solved, anisotropic: Solved) -> list[Check]:
    """A linear penalty of slope √2: the linear bound is met to 1 − 2e, the sharper ones exactly.

    With κ = 10, ν = 0.1, η = (1 − e, e, 0, …) and β = em/2; on the anisotropic one m < m_T.
    """
    claim, paper = "√2β/m is attained", {"observed": one.distance, "paper": one.linear}
    rows = [attainment(claim, LINEAR, how=one.how, shortfall=3e-3, **paper)]
    for case in (one, anisotropic):
        convex = math.sqrt(case.problem.beta * case.facts.decrease / case.m_tangent)
        met = {"observed": case.distance, "how": case.how}
        rows += [
            attainment("the cone bound is attained", CONE, sharp=float(case.bounds.cone), **met),
            attainment("√(β(ρ(η)−ρ(p*))/m_T) is attained", CONVEX, sharp=convex, **met),
        ]
    return rows


def check_lower(one: Solved, shortfall: float) -> Check:
    """The bound from below is nearly met, which it is not without either of its curvatures."""
    ends = {"observed": float(one.bounds.lower), "sharp": one.distance, "how": one.how}
    return attainment("the lower bound is nearly met", CONE, shortfall=shortfall, **ends)


def check_two_minima(one: Solved, starts) -> list[Check]:
    """The case with two minima: the global one is at x = 1, and η alone leads elsewhere."""
    ends = [
        f"({', '.join(f'{x:.3g}' for x in start)})→{end[0]:.5f} (f={value:.7f})"
        for start, end, value in zip(
            starts(one.problem.eta), one.minimum.ends, one.minimum.values, strict=True
        )
    ]
    error = abs(float(one.minimum.point[0]) - 1)
    how = f"K=2: {'; '.join(ends)}"
    return [
        agreement("the global minimum is at x = 1", GLOBAL, error=error, tolerance=1e-9, how=how)
    ]
