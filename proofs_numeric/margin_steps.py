"""The steps of the proof of Theorem (apms) about the margin: at fixed a = p_y, and its derivatives.

    a − τ log(e^{(1−a)/τ} + K − 2) ≤ m_τ(p, y) ≤ (Ka − 1)/(K − 1) − τ log(K − 1)
    ∇m_τ = e_y − q_{−y},    ‖∇m_τ‖ ≤ √2,    ‖∇E_η r‖ ≤ √2

Beyond the paper, and used by the bound on ‖p* − η‖ from below: ∇²r ⪯ 1/(2ν) + 1/(2τ).
"""

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.compilation import quick_jit
from pgeom.paper import displacement, margin
from pgeom.paper.displacement import Penalty
from proofs_numeric import probes
from proofs_numeric.check import Check, agreement, attainment, lower_bound, upper_bound

FIXED, SLOPE = "App. (apms, margin at fixed a)", "App. (apms, linear bound)"
BEND = "beyond the paper: the curvature of the penalty is at most 1/(2ν) + 1/(2τ)"
TAUS, SHARP = (0.02, 0.1, 0.2), 0.02
SHARES = (0.0, 0.3, 0.8, 1.0)  # a
ABOVE = 2.0  # added to margins, so that they are positive and a ratio says something
PENALTIES = (Penalty(0.1, 0.2, 0.1), Penalty(0.02, 0.5, 0.3), Penalty(0.2, 10.0, 0.05))
CERTAIN = Penalty(SHARP, 10.0, 0.05)  # σ = 1
# where one term of the curvature is all of it: m = κ with a small ν, and σ = 1 with a large one
STEEP, WIDE = Penalty(SHARP, 0.0, 1e-6), Penalty(SHARP, 4e4, 1e3)


def least_margin(K: int, tau, a):
    """a − τ log(e^{(1−a)/τ} + K − 2), the least margin at p_y = a."""
    return a - (1 - a) - tau * jnp.log1p((K - 2) * jnp.exp(-(1 - a) / tau))


def least_growth(K: int, tau, a):
    """1 + e^{(1−a)/τ}/(e^{(1−a)/τ} + K − 2) > 0, the derivative of the least margin in a."""
    return 1 + 1 / (1 + (K - 2) * jnp.exp(-(1 - a) / tau))


def largest_margin(K: int, tau, a):
    """(Ka − 1)/(K − 1) − τ log(K − 1), the largest margin at p_y = a."""
    return (K * a - 1) / (K - 1) - tau * jnp.log(K - 1.0)


def margin_gradient(p: jax.Array, y: jax.Array, tau) -> jax.Array:
    """e_y − q_{−y}, with the softmax q_{−y} of p/τ over the other classes."""
    mine = jnp.arange(p.shape[0]) == y
    return jnp.where(mine, 1.0, -jax.nn.softmax(jnp.where(mine, -jnp.inf, p / tau)))


def penalty_curvature(penalty: Penalty):
    """1/(2ν) + 1/(2τ)."""
    return 1 / (2 * penalty.nu) + 1 / (2 * penalty.tau)


def checks(
    K: int,
    *,
    least: Callable = least_margin,
    growth: Callable = least_growth,
    largest: Callable = largest_margin,
    gradient: Callable = margin_gradient,
    steepest: float = math.sqrt(2),
    bend: Callable = penalty_curvature,
) -> list[Check]:
    """Every step on K classes, with its formula under test."""
    return [
        *check_fixed_share(K, least, growth, largest),
        *check_gradient(K, gradient, steepest),
        *check_curvature(K, bend),
    ]


def check_fixed_share(K: int, least, growth, largest) -> list[Check]:
    """The margins at p_y = a, over the other classes; a vertex and the centre of them attain."""
    starts = np.concatenate([np.full((1, K - 1), 1 / (K - 1)), np.eye(K - 1)[:3]])
    starts = np.concatenate([starts, probes.draws(K - 1, count=2, seed=14)] if K > 2 else [starts])
    grid = np.array([[tau, a] for tau in TAUS for a in SHARES])
    seen = _margins_at_share(grid, starts)
    claims = "m_τ at p_y = a: least, at a vertex", "m_τ at p_y = a: largest, at the centre"
    rows = []
    for (tau, a), low, high, centre, vertex, slope in zip(
        grid, *map(np.asarray, seen), strict=True
    ):
        how = f"K={K}, τ={tau}, a={a}: ascents over the competitors of label {K}"
        stated = ABOVE + float(least(K, tau, a)), ABOVE + float(largest(K, tau, a))
        ends = {"how": how, "shortfall": 1e-9}
        error = {"error": abs(slope - float(growth(K, tau, a))), "tolerance": 1e-12}
        vertex, centre = ABOVE + vertex, ABOVE + centre
        rows += [
            lower_bound(
                "m_τ at p_y = a: least", FIXED, observed=ABOVE + low, paper=stated[0], how=how
            ),
            upper_bound(
                "m_τ at p_y = a: largest", FIXED, observed=ABOVE + high, paper=stated[1], how=how
            ),
            agreement("m_τ at p_y = a: slope of the least", FIXED, how=how, **error),
            attainment(claims[0], FIXED, observed=stated[0], paper=vertex, **ends),
            attainment(claims[1], FIXED, observed=centre, paper=stated[1], **ends),
        ]
    return rows


def check_gradient(K: int, gradient, steepest: float) -> list[Check]:
    """The form of ∇m_τ for every label, and the norms of ∇m_τ and ∇E_η r, attained at e_j."""
    starts = np.concatenate([np.eye(K)[:3], probes.draws(K, count=2, seed=15)])
    penalties = np.array(PENALTIES)
    error, norm, risk, corner, corner_risk = map(
        np.asarray, _gradients(starts, penalties, gradient=gradient)
    )
    how = f"K={K}: autodiff at {len(starts)} points, each label, τ in {TAUS}"
    search, met = f"K={K}: ascents from {len(starts)} starts", f"K={K}, p = e₂, y = 1, τ={SHARP}"
    size = {"observed": norm.max(), "paper": steepest}
    expected = {"observed": risk.max(), "paper": steepest}
    claims = "‖∇m_τ‖ = √2 is attained", "‖∇E_η r‖ = √2 is attained"
    return [
        agreement("∇m_τ = e_y − q_{−y}", SLOPE, error=error, tolerance=1e-12, how=how),
        upper_bound("‖∇m_τ‖ ≤ √2", SLOPE, how=search, **size),
        upper_bound("‖∇E_η r‖ ≤ √2", SLOPE, how=f"{search}, one η", **expected),
        attainment(claims[0], SLOPE, observed=corner, paper=steepest, how=met),
        attainment(claims[1], SLOPE, observed=corner_risk, paper=steepest, how=f"{met}, η = e₁"),
    ]


def check_curvature(K: int, bend) -> list[Check]:
    """λ_max(∇²r) at points, and where either term is attained; the second needs two competitors."""
    points = np.concatenate([probes.points(K, count=1)[:2], probes.draws(K, count=2, seed=16)])
    pair, two = np.zeros((2, K))
    pair[:2], two[1:3] = 0.5, 0.5
    seen = np.asarray(_bends(points, np.array(PENALTIES))).max(axis=1)
    how, claim = f"K={K}: {len(points)} points, label 1", "∇²r ⪯ 1/(2ν) + 1/(2τ)"
    rows = [
        upper_bound(claim, BEND, observed=x, sharp=bend(penalty), how=f"{how}, {penalty}")
        for x, penalty in zip(seen, PENALTIES, strict=True)
    ]
    extremes = [("1/(2ν) is attained", pair, STEEP)]
    if K > 2:
        extremes.append(("1/(2τ) is attained", two, WIDE))
    for claim, point, penalty in extremes:
        at = float(np.asarray(_bends(point[None], np.array([penalty])))[0, 0])
        ends = {"observed": at, "sharp": bend(penalty), "how": f"K={K}: {penalty}"}
        rows.append(attainment(f"∇²r: {claim}", BEND, shortfall=1e-4, **ends))
    return rows


@quick_jit
def _margins_at_share(grid, starts):
    """The least and largest margin at each (τ, a), those at the centre and a vertex, its slope."""
    K = starts.shape[1] + 1

    def one(row):
        tau, a = row

        def m(others, a):
            p = jnp.concatenate([(1 - a) * others, a[None]])
            return margin.smooth_margin(p, jnp.array(K - 1), tau=tau)

        def extreme(sign):
            return sign * probes.maximise_inside(lambda x: sign * m(x, a), starts).value

        low, high = jax.vmap(extreme)(jnp.array([-1.0, 1.0]))
        return low, high, m(starts[0], a), *jax.value_and_grad(m, argnums=1)(starts[1], a)

    return jax.vmap(one)(grid)


@partial(quick_jit, static_argnames="gradient")
def _gradients(starts, penalties, *, gradient):
    """The error of the form, the largest ‖∇m‖ and ‖∇E_η r‖ of each penalty, and both at e₂."""
    K = starts.shape[1]
    labels = jnp.arange(K)

    def slope(p, y, tau):
        return jax.grad(lambda p: margin.smooth_margin(p, y, tau=tau))(p)

    def error(p, y, tau):
        return jnp.max(jnp.abs(slope(p, y, tau) - gradient(p, y, tau)))

    def risk_slope(p, eta, penalty):
        return jax.grad(displacement.expected_penalty)(p, eta, penalty)

    def one(row):
        penalty = Penalty(*row)

        def size(p, choice):
            both = slope(p, labels[0], penalty.tau), risk_slope(p, starts[-1], penalty)
            return jnp.dot(choice, jnp.linalg.norm(jnp.stack(both), axis=1))

        def largest(choice):
            return probes.maximise_inside(lambda p: size(p, choice), starts).value

        each = jax.vmap(jax.vmap(error, in_axes=(None, 0, None)), in_axes=(0, None, None))
        return jnp.max(each(starts, labels, penalty.tau)), *jax.vmap(largest)(jnp.eye(2))

    right, wrong = jnp.eye(K)[:2]
    corner = slope(wrong, labels[0], SHARP), risk_slope(wrong, right, CERTAIN)
    return *jax.vmap(one)(penalties), *(jnp.linalg.norm(x) for x in corner)


@quick_jit
def _bends(points, penalties):
    """λ_max(∇²r(p, 1)), `[penalties, points]`."""

    def one(row, p):
        r = partial(margin.penalty, y=jnp.array(0), **Penalty(*row)._asdict())
        return jnp.linalg.eigvalsh(jax.hessian(r)(p))[-1]

    return jax.vmap(jax.vmap(one, in_axes=(None, 0)), in_axes=(0, None))(penalties, points)
