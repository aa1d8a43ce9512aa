"""The canonical link of any smooth convex generator, by a primal–dual interior-point method.

The maximiser p of ⟨z, p⟩ − F(p) over the simplex and the multipliers s of p ≥ 0 solve

    ∇F(p) − z + θ1 = s,    Σp = 1,    p_j s_j = 0,    p, s ≥ 0.

Newton steps for p_j s_j = μ, μ → 0, stay inside the simplex, so that neither a solution on the
boundary nor a gradient that diverges there needs a case of its own. In q = √p the matrix of a step,
Diag(q)H(p)Diag(q) + Diag(s), is of moderate size for every such F. It is dense: O(K²) memory and
O(K³) time per example and step.

>>> import jax.numpy as jnp
>>> p = maximise(lambda p: jnp.sum(p**3), jnp.array([[0.0], [-1.0], [-9.0]])).p
>>> jnp.round(p, 6)                                  # 3p₀² − 3p₁² = 1
Array([[0.666667],
       [0.333333],
       [0.      ]], dtype=float32)
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pgeom import simplex
from pgeom.links.threshold import Maximum, gap_and_rounding, slack
from pgeom.types import Generator

STEPS = 100
SHRINK = 0.99  # the share of the way to the boundary that a step may go
AT_ONCE = 4_000_000  # numbers in the matrices that are computed at the same time


class _State(NamedTuple):
    p: Array
    s: Array
    slope: Array
    reach: Array
    best: Array
    best_gap: Array
    idle: Array
    done: Array
    steps: Array


def maximise(F: Generator, z: Float[Array, "K n"]) -> Maximum:
    """The maximisers of ⟨z, p⟩ − F(p) over the simplex, for logits whose largest is zero."""
    K, n = z.shape
    together = max(1, AT_ONCE // (K + 1) ** 2)
    if not isinstance(n, int) or n <= together:  # a size is no number in an export
        points, steps = jax.vmap(partial(_maximise_one, F))(z.T)
    else:
        points, steps = jax.lax.map(partial(_maximise_one, F), z.T, batch_size=together)
    return Maximum(points.T, jnp.max(steps, initial=0))


def _maximise_one(F: Generator, z: Float[Array, " K"]) -> tuple[Array, Array]:
    K = z.shape[0]
    p = jnp.full_like(z, 1 / K)
    slope = jax.grad(F)(p)
    size = 1 + jnp.max(jnp.abs(slope))
    s = slack((z - slope)[:, None])[:, 0] + 0.1 * size
    # as the slope, also in what they vary over in a `shard_map`
    zero, half = jnp.zeros_like(slope[0], jnp.int32), jnp.full_like(slope[0], 0.5)
    infinite = jnp.full_like(slope[0], jnp.inf)
    first = _State(p, s, slope, half, p, infinite, zero, jnp.isnan(slope[0]), zero)

    def unsettled(state: _State):
        return (state.steps < STEPS) & ~state.done

    last = jax.lax.while_loop(unsettled, partial(_step, F, z), first)
    # entries smaller than their multipliers are zero in the limit, if F has a gradient there
    s = slack((z - jax.grad(F)(last.best))[:, None])[:, 0]
    rounded = jnp.where(last.best < s, 0.0, last.best)
    rounded = rounded / jnp.sum(rounded)
    gap, rounding = _gap(z, rounded, jax.grad(F)(simplex.interior(rounded)))
    better = gap <= jnp.maximum(last.best_gap, rounding)
    p = jnp.where(better, rounded, last.best)
    return jnp.where(jnp.any(jnp.isnan(z)), jnp.nan, p), last.steps  # no step was taken from NaN


def _step(F: Generator, z, state: _State) -> _State:
    p, s = state.p, state.s
    target = jnp.clip((1 - state.reach) ** 2, 0.05, 0.8) * jnp.mean(p * s)
    dp, ds = _direction(F, z, state, target)
    limit = jnp.maximum(jnp.max(-dp / p), jnp.max(-ds / s))
    length = state.reach * jnp.minimum(1.0, SHRINK / jnp.maximum(limit, SHRINK))
    onward, s_onward = p + length * dp, s + length * ds
    slope = jax.grad(F)(onward)
    # ⟨z, p⟩ − F(p) + μΣlog p is concave: past its maximum along dp, this slope changes its sign
    before = jnp.sum(dp * _barrier_slope(state.slope - z, p, target))
    after = jnp.sum(dp * _barrier_slope(slope - z, onward, target))
    rounding = 16 * jnp.finfo(z.dtype).eps * jnp.sum(jnp.abs(dp) * (jnp.abs(slope) - z))
    kept = after <= jnp.maximum(0.5 * jnp.abs(before), rounding)
    reach = jnp.where(kept, jnp.minimum(1.0, 4 * state.reach), state.reach / 4)
    gap, smallest = _gap(z, onward, slope)
    better = kept & ((gap < 0.9 * state.best_gap) | (gap <= smallest))
    idle = jnp.where(better, 0, state.idle + 1)
    best_gap = jnp.where(better, gap, state.best_gap)
    done = (best_gap <= smallest) | ((best_gap <= 64 * smallest) & (idle > 3))
    choose = partial(jnp.where, kept)
    return _State(
        choose(onward, p),
        choose(s_onward, s),
        choose(slope, state.slope),
        reach,
        jnp.where(better, onward, state.best),
        best_gap,
        idle,
        done | ~jnp.isfinite(limit),
        state.steps + 1,
    )


def _barrier_slope(slope, p, target):
    """The slope of F(p) − ⟨z, p⟩ − μΣlog p, less what Σdp ≠ 0 by rounding would multiply."""
    total = slope - target / p
    return total - jnp.sum(p * total)


def _direction(F: Generator, z, state: _State, target) -> tuple[Array, Array]:
    """The Newton step for p_j s_j = target, keeping Σp = 1."""
    p, s = state.p, state.s
    q = jnp.sqrt(p)
    matrix = bordered(q[:, None] * jax.hessian(F)(p) * q[None, :] + jnp.diag(s), q)
    right = jnp.append(q * (z - state.slope) + target / q, 1 - jnp.sum(p))
    dp = q * jnp.linalg.solve(matrix, right)[:-1]
    return dp, (target - s * dp) / p - s


def bordered(matrix: Float[Array, "K K"], q: Float[Array, " K"]) -> Float[Array, "..."]:
    """The matrix of an equation for x and the multiplier of ⟨q, x⟩ = const, `[K + 1, K + 1]`."""
    corner = jnp.zeros((1, 1), q.dtype)
    return jnp.block([[matrix, q[:, None]], [q[None, :], corner]])


def _gap(z, p, slope) -> tuple[Array, Array]:
    """The optimality gap of one example, and its rounding."""
    gap, rounding = gap_and_rounding(p[:, None], z[:, None], slope[:, None])
    return gap[0, 0], rounding[0, 0]
