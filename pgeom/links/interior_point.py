"""Links of any smooth convex generator, by a primal–dual interior-point method.

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
from jaxtyping import Array

from pgeom import simplex
from pgeom.links.projected_gradient import gap_and_rounding, multipliers, slack
from pgeom.links.threshold import Columns, Maximum
from pgeom.types import Generator

STEPS = 100
SHRINK = 0.99  # the share of the way to the boundary that a step may go
AT_ONCE = 4_000_000  # numbers in the matrices that are computed at the same time


class _State(NamedTuple):
    p: Array
    s: Array
    reach: Array
    best: Array
    best_gap: Array
    idle: Array
    done: Array
    steps: Array


def maximise(F: Generator, z: Columns) -> Maximum:
    """The maximisers of ⟨z, p⟩ − F(p) over the simplex, for logits whose largest is zero."""
    K, n = z.shape
    together = max(1, AT_ONCE // (K + 1) ** 2)
    if not isinstance(n, int) or n <= together:  # a size is no number in an export
        points, steps = jax.vmap(partial(_maximise_one, F))(z.T)
    else:
        points, steps = jax.lax.map(partial(_maximise_one, F), z.T, batch_size=together)
    return Maximum(points.T, jnp.max(steps, initial=0))


def _maximise_one(F: Generator, z):
    p = jnp.full_like(z, 1 / len(z))
    slope = jax.grad(F)(p)
    s = slack(z - slope) + 0.1 * (1 + jnp.max(jnp.abs(slope)))
    zero = jnp.zeros_like(slope[0])  # as the slope, also in what it varies over in a `shard_map`
    steps = zero.astype(jnp.int32)
    first = _State(p, s, zero + 0.5, p, zero + jnp.inf, steps, jnp.isnan(slope[0]), steps)

    def unsettled(state: _State):
        return (state.steps < STEPS) & ~state.done

    last = jax.lax.while_loop(unsettled, partial(_step, F, z), first)
    # entries smaller than their multipliers are zero in the limit, if F has a gradient there
    rounded = jnp.where(last.best < slack(z - jax.grad(F)(last.best)), 0.0, last.best)
    rounded = rounded / jnp.sum(rounded)
    gap, rounding = gap_and_rounding(rounded, z, jax.grad(F)(simplex.interior(rounded)))
    better = gap <= jnp.maximum(last.best_gap, rounding)
    return jnp.where(better, rounded, last.best), last.steps


def _step(F: Generator, z, state: _State) -> _State:
    p, s, slope = state.p, state.s, jax.grad(F)(state.p)
    target = jnp.clip((1 - state.reach) ** 2, 0.05, 0.8) * jnp.mean(p * s)
    # the Newton step for p_j s_j = target, keeping Σp = 1
    q = jnp.sqrt(p)
    dp = _solve(jax.hessian(F)(p), q, s, q * (z - slope) + target / q, 1 - jnp.sum(p))
    ds = (target - s * dp) / p - s
    limit = jnp.maximum(jnp.max(-dp / p), jnp.max(-ds / s))
    length = state.reach * jnp.minimum(1.0, SHRINK / jnp.maximum(limit, SHRINK))
    onward, onward_s = p + length * dp, s + length * ds
    onward_slope = jax.grad(F)(onward)
    # ⟨z, p⟩ − F(p) + μΣlog p is concave: past its maximum along dp, this slope changes its sign
    before = jnp.sum(dp * _barrier_slope(slope - z, p, target))
    after = jnp.sum(dp * _barrier_slope(onward_slope - z, onward, target))
    rounding = 16 * jnp.finfo(z.dtype).eps * jnp.sum(jnp.abs(dp) * (jnp.abs(onward_slope) - z))
    kept = after <= jnp.maximum(0.5 * jnp.abs(before), rounding)
    reach = jnp.where(kept, jnp.minimum(1.0, 4 * state.reach), state.reach / 4)
    gap, smallest = gap_and_rounding(onward, z, onward_slope)
    better = kept & ((gap < 0.9 * state.best_gap) | (gap <= smallest))
    idle = jnp.where(better, 0, state.idle + 1)
    best_gap = jnp.where(better, gap, state.best_gap)
    done = (best_gap <= smallest) | ((best_gap <= 64 * smallest) & (idle > 3))
    choose = partial(jnp.where, kept)
    return _State(
        choose(onward, p),
        choose(onward_s, s),
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


def _solve(H, q, s, right, excess):
    """qx with (Diag(q)H Diag(q) + Diag(s))x + tq = right and ⟨q, x⟩ = excess."""
    scaled = q[:, None] * H * q[None, :] + jnp.diag(s)
    matrix = jnp.block([[scaled, q[:, None]], [q[None, :], jnp.zeros((1, 1), q.dtype)]])
    return q * jnp.linalg.solve(matrix, jnp.append(right, excess))[:-1]


def respond(F: Generator, p: Columns, z: Columns, r: Columns) -> Columns:
    """How p moves where z − ∇F(p) moves by r."""
    s = jax.lax.stop_gradient(multipliers(F, p, z))
    s = s + jnp.where(p + s > 0, 0.0, 1.0)  # both are zero where the maximiser is degenerate

    def one(p, s, r):
        q = jnp.sqrt(jax.lax.stop_gradient(p))  # a mere scaling, which cancels
        return _solve(jax.hessian(F)(simplex.interior(p, 0.5)), q, s, q * r, jnp.zeros_like(r[0]))

    return jax.vmap(one, in_axes=1, out_axes=1)(p, s, r)
