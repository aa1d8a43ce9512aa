"""Theorem (apms), second part: how far the margin penalty moves the conditional target.

    ‖p*_β − η‖ ≤ √(2βC_r/m),    ‖p*_β − η‖ ≤ √2 β/m

Sharper: (β/m_T)‖P_cone(−∇ρ(η))‖, which is zero at vertices, with a bound from below where p* is
interior. The minimiser must be global: D_F(η, ·) is not convex for HPG.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.compilation import quick_jit
from pgeom.geometry import bounds, curvature, displacement
from pgeom.geometry.displacement import DisplacementBounds, Minimum, Penalty
from pgeom.geometry.generators import Hyperbolic
from proofs_numeric import configurations, probes
from proofs_numeric.check import Check, agreement, attainment, lower_bound, upper_bound
from proofs_numeric.instances import fill_ridges, isotropic, two_minima

SQUARE_ROOT, LINEAR = "Eq. (apms-sqrt-bound)", "Eq. (apms-linear-bound)"
CLAIMS = (
    "‖p*−η‖ ≤ √(2βC_r/m)",
    "‖p*−η‖ ≤ √2β/m",
    "min(√2β/m, √2) ≤ √(2βC_r/m)",
    "no probe is below the minimum",
)
HIGHER = 1e-10  # by which a probe may undercut a minimum that is only resolved to rounding
INTERIOR = 1e-6
SOFT = Penalty(tau=0.2, kappa=0.8, nu=0.4)


class Problem(NamedTuple):
    """One target: a generator, η `[K]`, the penalty and β, with a name."""

    name: str
    F: Hyperbolic
    eta: np.ndarray
    penalty: Penalty
    beta: float


class Solved(NamedTuple):
    """A problem, its global minimum, and the lowest value that a probe has."""

    problem: Problem
    minimum: Minimum
    bounds: DisplacementBounds
    probe: float

    @property
    def distance(self) -> float:
        return float(np.linalg.norm(self.minimum.point - self.problem.eta))

    @property
    def linear(self) -> float:
        """√2β/m, the linear bound of the paper."""
        return float(np.asarray(self.bounds.linear))


def all_starts(eta: np.ndarray) -> np.ndarray:
    """η, the centre, every vertex and eight draws, `[K + 10, K]`."""
    K = len(eta)
    draws = np.random.default_rng([11, K]).dirichlet(np.ones(K), 8)
    return np.concatenate([eta[None], np.full((1, K), 1 / K), np.eye(K), draws])


def checks(
    K: int,
    *,
    displacement_bounds: Callable = displacement.displacement_bounds,
    starts: Callable = all_starts,
) -> list[Check]:
    """Every check of the displacement on K classes, with bounds and starts under test."""
    solved = solve(problems(K), displacement_bounds, starts)
    rows = [check for one in solved for check in check_bounds(one)]
    by_name = {one.problem.name: one for one in solved}
    rows += check_vertex(by_name["vertex"])
    if K == 2:
        rows += check_extremal(by_name["extremal family"])
        rows += check_two_minima(by_name["two minima"], starts)
    return rows


def problems(K: int) -> list[Problem]:
    """The experiments' APMS and random ridges; a certain η; for K = 2 the two special cases."""
    cases, rng = configurations.hyperbolics(K), np.random.default_rng([12, K])
    etas = [rng.dirichlet(np.full(K, c)) for c in (0.5, 3.0)]
    cores = ("HPG experiments R=4", "random ridges 0", "extremal: one ridge")
    settings = [(configurations.EXPERIMENT, 0.2), (SOFT, 0.5)]
    rows = [
        Problem(f"{name}, η {i}, β={beta}, τ={penalty.tau}", cases.get(name), eta, penalty, beta)
        for name in cores
        for i, eta in enumerate(etas)
        for penalty, beta in settings
    ]
    core = cases.get(cores[0])
    rows.append(Problem("vertex", core, np.eye(K)[0], configurations.EXPERIMENT, 0.2))
    if K == 2:
        e, ridges = 1e-3, len(core.a)
        extreme, case = Penalty(0.1, 10.0, 0.1), Penalty(0.1, 0.0, 1.0)
        eta, plain = np.array([1 - e, e]), fill_ridges(isotropic(2), ridges)
        rows.append(Problem("extremal family", plain, eta, extreme, e / 2))
        sharp, eta = fill_ridges(two_minima(), ridges), np.array([0.75, 0.25])
        rows.append(Problem("two minima", sharp, eta, case, 0.25))
    return rows


def solve(problems: list[Problem], displacement_bounds, starts) -> list[Solved]:
    """Every problem at once: the minimum from all starts, the bounds, and the lowest probe."""
    K = len(problems[0].eta)
    envelopes = [curvature.envelope(one.F, K) for one in problems]
    lipschitz = [bounds.hessian_lipschitz(one.F, K) for one in problems]
    steps = [
        displacement.safe_step(envelope, L.paper, one.penalty, beta=one.beta)
        for one, envelope, L in zip(problems, envelopes, lipschitz, strict=True)
    ]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *[one[1:] for one in problems])
    numbers = np.array(
        [[*envelope[:4], L.sharp] for envelope, L in zip(envelopes, lipschitz, strict=True)]
    )
    grid = probes.points(K, count=100) if K > 2 else _segment()
    each = np.stack([starts(one.eta) for one in problems])
    minima, lowest = _minimise(stacked, np.array(steps), each, grid)
    limits = _limits(stacked, numbers, displacement_bounds=displacement_bounds)
    minima, limits, lowest = jax.tree.map(np.asarray, (minima, limits, lowest))
    at = lambda tree, i: jax.tree.map(lambda leaf: leaf[i], tree)  # noqa: E731
    return [
        Solved(one, at(minima, i), at(limits, i), float(lowest[i]))
        for i, one in enumerate(problems)
    ]


def check_bounds(one: Solved) -> list[Check]:
    """What holds for every target."""
    limits = one.bounds
    how = f"K={len(one.problem.eta)}, {one.problem.name}: {describe_ends(one)}"
    active = "square-root" if limits.square_root < one.linear else "linear"
    crossover = one.problem.beta * (limits.square_root / one.linear) ** 2  # m C_r
    trivial = min(one.linear, np.sqrt(2))
    square_root = f"{how}; the {active} bound is the lower, up to β={crossover:.3g}"
    linear = {"observed": one.distance, "paper": one.linear, "sharp": limits.cone}
    lowest = {"observed": float(one.minimum.value) - HIGHER, "sharp": one.probe}
    root = limits.square_root
    rows = [
        upper_bound(CLAIMS[0], SQUARE_ROOT, observed=one.distance, paper=root, how=square_root),
        upper_bound(CLAIMS[1], LINEAR, how=how, **linear),
        upper_bound(CLAIMS[2], "§1.1", observed=trivial, paper=root, how=how),
        upper_bound(CLAIMS[3], "§1.3", how=how, **lowest),
    ]
    if one.minimum.point.min() > INTERIOR:
        claim = "lower bound ≤ ‖p*−η‖"
        rows.append(lower_bound(claim, "§2.5", observed=one.distance, sharp=limits.lower, how=how))
    if limits.unique:
        spread = np.abs(one.minimum.ends - one.minimum.point).max()
        claim = "certified unique: all starts agree"
        rows.append(agreement(claim, "§2.6", error=spread, tolerance=1e-8, how=how))
    return rows


def check_vertex(one: Solved) -> list[Check]:
    """A certain η is not moved, and the cone bound says so."""
    how = f"K={len(one.problem.eta)}, η = e₁: {describe_ends(one)}"
    moved = max(one.distance, float(one.bounds.cone))
    return [agreement("η = e_y is not moved", "§2.5", error=moved, tolerance=1e-9, how=how)]


def check_extremal(one: Solved) -> list[Check]:
    """K = 2, A = mI, κ = 10, ν = 0.1, η = (1 − e, e), β = em/2: the ratio is 1 − 2e."""
    how = f"K=2, e=1e-3: {describe_ends(one)}"
    linear, sharp = one.linear, float(one.bounds.cone)
    return [
        attainment(
            "√2β/m is attained",
            LINEAR,
            observed=one.distance,
            paper=linear,
            how=how,
            shortfall=3e-3,
        ),
        attainment(
            "the cone bound is attained", "§2.5", observed=one.distance, sharp=sharp, how=how
        ),
    ]


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
        agreement("the global minimum is at x = 1", "§1.3", error=error, tolerance=1e-9, how=how)
    ]


def describe_ends(one: Solved) -> str:
    """Where the starts led: how many to the minimum, and where the others ended."""
    ends, values = one.minimum.ends, one.minimum.values
    there = np.abs(ends - one.minimum.point).max(axis=1) < 1e-6
    text = f"{there.sum()} of {len(ends)} starts led to ‖p*−η‖={one.distance:.4g}"
    if there.all():
        return text
    worst = float(np.max(values[~there] - one.minimum.value))
    return f"{text}, {(~there).sum()} to local minima up to {worst:.2g} higher"


def _segment() -> np.ndarray:
    x = np.linspace(0, 1, 4001)
    return np.stack([x, 1 - x], axis=1)


@quick_jit
def _minimise(stacked, steps, starts, grid):
    """The minimum of each problem, and the lowest value on the grid."""

    def one(problem, step, starts):
        F, eta, penalty, beta = problem
        minimum = displacement.minimise(F, eta, penalty, beta=beta, step=step, starts=starts)
        objective = partial(displacement.penalised_regret, F, eta=eta, penalty=penalty, beta=beta)
        return minimum, jnp.min(jax.vmap(objective)(grid))

    return jax.vmap(one)(stacked, steps, starts)


@partial(quick_jit, static_argnames="displacement_bounds")
def _limits(stacked, numbers, *, displacement_bounds):
    """The bounds of each problem, from its m, M, m_T, M_T and L_T."""

    def one(problem, numbers):
        _, eta, penalty, beta = problem
        envelope = curvature.Envelope(*numbers[:4], how="")
        return displacement_bounds(envelope, numbers[4], eta, penalty, beta=beta)

    return jax.vmap(one)(stacked, numbers)
