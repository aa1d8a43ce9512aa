"""The steps of the proof of Theorem (apms) about p*, and its limit β → 0; part of `displacement`.

    ½m‖p* − η‖² ≤ D(η, p*) ≤ β(ρ(η) − ρ(p*)) ≤ βC_r,    ρ = E_η r
    m‖p − η‖² ≤ ⟨∇R(p), p − η⟩ ≤ β(ρ(η) − ρ(p)) at every stationary p
    p*_β = η − βH_T(η)⁻¹Π∇ρ(η) + O(β²) where η is interior

The bounds of the library are also compared with what the extremes of each step, by autodiff, give:
no target comes near √(2βC_r/m), so that a wrong constant would show nowhere else.
"""

import math
from collections.abc import Callable

import numpy as np

from pgeom import simplex
from proofs_numeric.check import Check, agreement, attainment, upper_bound
from proofs_numeric.penalised_minimum import Solved

DIVERGENCE, STEPS = "App. (apms, D ≤ βC_r)", "App. (apms, combining the steps)"
LIMIT = "Eq. (apms-linear-bound)"
EVERY = "beyond the paper: the linear bound holds at every stationary point"
CONVEX = "beyond the paper: the penalty is convex, so that 1 does for the 2 under the root"
STATIONARY = 1e-9


def root(beta: float, largest: float, least: float) -> float:
    """√(2βC_r/m), from the largest penalty and the least eigenvalue of H."""
    return math.sqrt(beta * largest / (least / 2))


def slack(decrease: float) -> float:
    """The multiple of ρ(η) − ρ(p*) that bounds D/β, by comparing p* with η."""
    return decrease


def first_order(hessian: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """−H_T⁻¹Πg, the derivative of p*_β at β = 0, `[K]`."""
    basis = simplex.tangent_basis(len(slope))
    return -basis @ np.linalg.solve(basis.T @ hessian @ basis, basis.T @ slope)


def checks(
    solved: list[Solved], *, first_order: Callable, root: Callable, slack: Callable
) -> list[Check]:
    """Every step, under test, for problems and their minima."""
    by_name = {one.problem.name: one for one in solved}
    return [
        *(check for one in solved for check in check_minimum(one, slack)),
        *(check for one in solved for check in check_every_stationary_point(one)),
        *check_formulas(by_name["anisotropic family"], root),
        *check_limit([one for one in solved if "β → 0" in one.problem.name], first_order),
    ]


def check_minimum(one: Solved, slack) -> list[Check]:
    """D(η, p*) against βC_r and β(ρ(η) − ρ(p*)), and the latter against m_T‖p* − η‖²."""
    beta, facts, how = one.problem.beta, one.facts, one.how
    # what rounding leaves of a difference of two penalties
    decrease = float(facts.decrease) + 1e-15 * float(facts.largest)
    compared = {"observed": float(facts.divergence), "paper": beta * float(facts.largest)}
    convex = {"observed": one.m_tangent * one.distance**2, "sharp": beta * decrease}
    claims = "D(η,p*) ≤ β(ρ(η)−ρ(p*)) ≤ βC_r", "m_T‖p*−η‖² ≤ β(ρ(η)−ρ(p*))"
    return [
        upper_bound(claims[0], DIVERGENCE, sharp=beta * slack(decrease), how=how, **compared),
        upper_bound(claims[1], CONVEX, how=how, **convex),
    ]


def check_every_stationary_point(one: Solved) -> list[Check]:
    """Every start ends at a stationary point, and each of them is within the linear bound."""
    count = f"{len(one.minimum.ends)} starts; {one.how}"
    limits = {"observed": one.farthest, "paper": one.linear, "sharp": float(one.bounds.cone)}
    gaps = {"error": np.max(one.facts.gaps), "tolerance": STATIONARY}
    return [
        agreement("every start ends at a stationary point", EVERY, how=count, **gaps),
        upper_bound("every stationary p: ‖p−η‖ ≤ √2β/m", EVERY, how=count, slack=1e-8, **limits),
    ]


def check_formulas(one: Solved, root) -> list[Check]:
    """Both bounds of the paper as their steps give them, where m < m_T and H is constant."""
    least, beta = float(np.linalg.eigvalsh(one.facts.hessian)[0]), one.problem.beta
    how = f"{one.problem.name}: λ_min(H) = {least:.4g}, m_T = {one.m_tangent:.4g}"
    stated = root(beta, float(one.facts.largest), least), math.sqrt(2) * beta / least
    given = float(one.bounds.square_root), one.linear
    claims = "√(2βC_r/m) from r at a vertex and λ_min(H)", "√2β/m from λ_min(H)"
    return [
        attainment(claim, STEPS, observed=step, paper=bound, how=f"K={len(one.problem.eta)}, {how}")
        for claim, step, bound in zip(claims, stated, given, strict=True)
    ]


def check_limit(solved: list[Solved], first_order) -> list[Check]:
    """(p*_β − η)/β tends to its first order, and the error to zero as β does."""
    rows = []
    for one in solved:
        expected = first_order(one.facts.hessian, one.facts.slope)
        moved = (one.minimum.point - one.problem.eta) / one.problem.beta
        error = np.linalg.norm(moved - expected) / np.linalg.norm(expected)
        claim, how = "(p*−η)/β → −H_T⁻¹Π∇ρ(η) as β → 0", f"{one.how}, relative error below β"
        rows.append(agreement(claim, LIMIT, error=error, tolerance=one.problem.beta, how=how))
    return rows
