"""Theorem (apms), first part: the exact range of the smoothed margin and of its penalty.

    m_min = −τ log(e^{1/τ} + K − 2),   m_max = 1 − τ log(K − 1)
    ν softplus((κ − m_max)/ν) ≤ r(p, y) ≤ C_r = ν softplus((κ − m_min)/ν)

All four are attained at vertices. The penalty is convex in p, which the sharper displacement bound
needs; and the range stays finite in float32 where e^{1/τ} does not.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.compilation import quick_jit
from pgeom.paper import margin
from proofs_numeric import probes
from proofs_numeric.check import Check, agreement, attainment, finiteness, lower_bound, upper_bound

RANGE, PENALTY = "Eq. (margin-minimum)", "Eq. (penalty-bound)"
CONVEX = "beyond the paper: the penalty is convex in p"
# τ, κ, ν: the experiments', a sharp one, a soft one (as soft as K = 100 has a positive margin)
PARAMETERS = ((0.1, 0.2, 0.1), (0.02, -0.3, 0.5), (0.2, 1.5, 0.05))
SHARP_TAU = 0.005  # e^{1/τ} overflows float32


class Extremes(NamedTuple):
    """Of one τ, κ, ν: what ascents found, and margin and penalty at the vertices e₁ and e₂."""

    margin_low: float
    margin_high: float
    penalty_low: float
    penalty_high: float
    bend: float
    margin_right: float
    margin_wrong: float
    penalty_right: float
    penalty_wrong: float


def checks(
    K: int,
    *,
    margin_range: Callable = margin.margin_range,
    penalty_range: Callable = margin.penalty_range,
    penalty: Callable = margin.penalty,
) -> list[Check]:
    """Every check of the two ranges on K classes, with the formulas under test."""
    starts = np.concatenate([np.eye(K)[:4], probes.draws(K, count=3, seed=7)])
    ranges = {"margin_range": margin_range, "penalty_range": penalty_range}
    extremes = _search(starts, np.array(PARAMETERS), penalty=penalty)
    stated = _ranges(K, np.array(PARAMETERS), **ranges)
    rows = []
    for i, (tau, kappa, nu) in enumerate(PARAMETERS):
        seen = Extremes(*(float(values[i]) for values in extremes))
        limits = [float(values[i]) for values in stated]
        how = f"K={K}, τ={tau}, κ={kappa}, ν={nu}: "
        rows += check_ranges(seen, limits, f"{how}ascents from {len(starts)} starts")
        rows += check_vertices(seen, limits, f"{how}y = 1 at e₁ and e₂")
        # the gradient has a size of the order of one, and its rounding is all that is allowed
        bend = {"error": seen.bend, "tolerance": 1e-14}
        rows.append(agreement("r is convex (∇r is monotone)", CONVEX, how=f"{how}ascents", **bend))
    return rows + check_float32(K, **ranges, penalty=penalty)


def check_ranges(seen: Extremes, limits, how: str) -> list[Check]:
    """Margin and penalty inside their ranges."""
    m_min, m_max, r_min, C_r = map(float, limits)
    return [
        # −m_min > 0, so that a ratio says something
        upper_bound("m_min ≤ m_τ", RANGE, observed=-seen.margin_low, paper=-m_min, how=how),
        upper_bound("m_τ ≤ m_max", RANGE, observed=seen.margin_high, paper=m_max, how=how),
        lower_bound("r_min ≤ r", PENALTY, observed=seen.penalty_low, paper=r_min, how=how),
        upper_bound("r ≤ C_r", PENALTY, observed=seen.penalty_high, paper=C_r, how=how),
    ]


def check_vertices(seen: Extremes, limits, how: str) -> list[Check]:
    """Equality: m_min and C_r at a wrong vertex, m_max and the least penalty at the right one."""
    m_min, m_max, r_min, C_r = map(float, limits)
    cases = [
        ("m_min is attained", RANGE, -seen.margin_wrong, -m_min),
        ("m_max is attained", RANGE, seen.margin_right, m_max),
        ("C_r is attained", PENALTY, seen.penalty_wrong, C_r),
        # a bound from below may not exceed what is seen
        ("r_min is attained", PENALTY, r_min, seen.penalty_right),
    ]
    return [
        attainment(claim, label, observed=small, paper=large, how=how, shortfall=1e-9)
        for claim, label, small, large in cases
    ]


def check_float32(K: int, *, margin_range, penalty_range, penalty) -> list[Check]:
    """τ = 0.005 in float32: ranges, penalties and their gradients are finite."""
    with jax.enable_x64(False):
        p = jnp.asarray(probes.points(K, count=2), jnp.float32)
        labels = jnp.asarray(np.zeros(len(p), np.int32))
        constants = {"tau": np.float32(SHARP_TAU), "kappa": np.float32(0.2), "nu": np.float32(0.1)}

        @quick_jit
        def everything(p, constants):
            total = jax.value_and_grad(lambda p: jnp.sum(penalty(p, labels, **constants)))
            ranges = (*margin_range(K, tau=constants["tau"]), *penalty_range(K, **constants))
            return *ranges, *total(p)

        values = np.concatenate([np.ravel(value) for value in everything(p, constants)])
    claim, how = "finite in float32 at τ = 0.005", f"K={K}: ranges, penalty and gradient"
    return [finiteness(claim, RANGE, values=values, how=how)]


@partial(quick_jit, static_argnames=("K", "margin_range", "penalty_range"))
def _ranges(K, parameters, *, margin_range, penalty_range):
    """m_min, m_max, r_min and C_r, one array each over the rows τ, κ, ν."""

    def one(parameters):
        tau, kappa, nu = parameters
        return *margin_range(K, tau=tau), *penalty_range(K, tau=tau, kappa=kappa, nu=nu)

    return jax.vmap(one)(parameters)


@partial(quick_jit, static_argnames="penalty")
def _search(starts, parameters, *, penalty):
    """The fields of `Extremes`, one array each over the rows τ, κ, ν."""
    label, corners = jnp.array(0), jnp.eye(starts.shape[1])[:2]
    signed = [[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 1.0, 0.0]]
    choices = jnp.array(signed + [[0.0, 0.0, 1.0]] * len(starts[::2]))
    centres = jnp.concatenate([starts[:4], starts[::2]])  # unused by the first four

    def one(parameters):
        tau, kappa, nu = parameters

        def m(p):
            return margin.smooth_margin(p, label, tau=tau)

        def r(p):
            return penalty(p, label, tau=tau, kappa=kappa, nu=nu)

        def extreme(choice, q):
            """Of ±m, ±r, or −⟨∇r(p) − ∇r(q), p − q⟩, positive somewhere unless r is convex."""
            at_q = jax.grad(r)(q)

            def objective(p):
                value, slope = jax.value_and_grad(r)(p)
                return jnp.dot(choice, jnp.stack([m(p), value, -jnp.dot(slope - at_q, p - q)]))

            return probes.maximise_inside(objective, starts).value

        low_m, high_m, low_r, high_r, *bends = jax.vmap(extreme)(choices, centres)
        seen = (-low_m, high_m, -low_r, high_r, jnp.max(jnp.stack(bends)))
        return *seen, *jax.vmap(m)(corners), *jax.vmap(r)(corners)

    return jax.vmap(one)(parameters)
