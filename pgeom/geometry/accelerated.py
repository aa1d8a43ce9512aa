"""The canonical link of a generator with bounded curvature: projected gradients, then Newton.

Maximises ⟨z, p⟩ − F(p) over the simplex for sums of `quadratic`, `hyperbolic` and `squared_norm`.
Some twenty projected gradients with Nesterov's momentum are enough for the paper's generators, and
find the face that p(z) is on for any other; where they are slow, Newton steps along the face, by
conjugate gradients, follow. Where F has a dense matrix and there are many classes, `few_classes`
comes first. The iteration ends by the optimality gap. Memory is O(K) per example.
Arrays are class-major, `[K, n]`.

>>> import jax.numpy as jnp
>>> from pgeom.geometry.generators import quadratic
>>> F = quadratic(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
>>> p = maximise(F, jnp.array([[0.0], [-1.0]])).p
>>> float(p[0, 0]), float(p[1, 0])
(0.66667, 0.33333)
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pgeom.geometry import few_classes, implicit, thresholds
from pgeom.geometry.closed_forms import parts
from pgeom.geometry.curvature_limits import curvature_limits
from pgeom.geometry.few_classes import Slopes, Start
from pgeom.geometry.generators import Hyperbolic, Quadratic, SquaredNorm
from pgeom.geometry.optimality import gap_and_rounding, slack, slopes
from pgeom.geometry.thresholds import Maximum, row_sum
from pgeom.types import Generator

EVERY = 6  # steps between two looks at the optimality gap
SLOW = 48  # steps after which each look takes a Newton step
STEPS = 6_000
NEWTON_STEPS = 100  # of a projection
NEAR = 8  # units of rounding, within which a point that improves no more has settled
FAR = 64  # units of rounding, beyond which a step that ascends counts as progress
HALVINGS = 24  # of a Newton step
FACES = 32  # Newton steps between two looks
PATIENCE = 32  # looks without progress, after which the gap is all rounding


class _State(NamedTuple):
    p: Array
    ahead: Array
    best_p: Array
    theta: Array
    curvature: Array
    best: Array
    idle: Array
    steps: Array


def has_bounded_curvature(F: Generator) -> bool:
    """Whether F is a sum of generators whose curvature is bounded by formula."""
    return all(isinstance(part, (Quadratic, Hyperbolic, SquaredNorm)) for _, part in parts(F))


def maximise(F: Generator, z: Float[Array, "K n"]) -> Maximum:
    """The maximisers of ⟨z, p⟩ − F(p) over the simplex, for logits whose largest is zero."""
    m, M = curvature_limits(F, z)
    everywhere = partial(slopes, F)

    def solve(slopes: Slopes, z, start=None) -> Maximum:
        """From the projection of z/M, but for columns that have settled at the start."""
        p, zero = thresholds.project(z / M).p, jnp.zeros((), jnp.int32)
        start = Start(p, jnp.zeros_like(z[:1], bool), zero) if start is None else start
        return _ascend(slopes, z, start._replace(p=jnp.where(start.settled, start.p, p)), m, M)

    if not few_classes.are_enough(F, z.shape[0]):
        return solve(everywhere, z)
    return solve(everywhere, z, few_classes.search(F, z, solve=solve, judge=judge(F, z, M)))


def judge(F: Generator, z: Float[Array, "K n"], M: Float[Array, ""]) -> Callable:
    """`p[K, n] -> (residual[K, n], settled[1, n])`, over all classes."""

    def residual_and_verdict(p):
        slope = slopes(F, p)
        error, rounding = _error(p, z, slope, M)
        return z - slope, error <= NEAR * rounding

    return residual_and_verdict


def _ascend(slope: Slopes, z, start: Start, m, M) -> Maximum:
    """The maximisers for the columns that are not settled, by steps from a start."""
    root = jnp.sqrt(jnp.clip(m / M, 1e-8, 1.0))
    momentum = (1 - root) / (1 + root)

    def descend(_, state: _State) -> _State:
        uphill = z - slope(state.ahead)
        p, theta = _project_near(state.ahead + uphill / state.curvature, state.theta)
        moving, step = state.idle < PATIENCE, p - state.p
        # momentum that leads down again is lost
        ahead = p + jnp.where(row_sum(uphill * step) > 0, momentum, 0.0) * step
        ahead = jnp.where(moving, ahead, state.ahead)
        return state._replace(p=jnp.where(moving, p, state.p), ahead=ahead, theta=theta)

    def advance(state: _State) -> _State:
        state = jax.lax.fori_loop(0, EVERY, descend, state)
        return _look(slope, z, state)._replace(steps=state.steps + EVERY)

    def unsettled(state: _State):
        return (state.steps < STEPS) & jnp.any(state.idle < PATIENCE)

    none = jnp.zeros_like(z[:1])
    idle = jnp.where(start.settled, PATIENCE, 0)
    first = _State(start.p, start.p, start.p, none - 1, none + M, none + jnp.inf, idle, start.steps)
    last = jax.lax.while_loop(unsettled, advance, first)
    return Maximum(thresholds.on_simplex(last.best_p), last.steps)


def _project_near(x, theta):
    """max(x − θ, 0), by Newton steps from a θ that is close: one if the support stays the same."""
    theta = jnp.minimum(theta, jnp.max(x, axis=0, keepdims=True) - 0.5 / x.shape[0])

    def refine(state):
        theta, _, steps = state
        above = x > theta
        excess = row_sum(jnp.where(above, x - theta, 0.0)) - 1
        return theta + excess / row_sum(above.astype(x.dtype)), excess, steps + 1

    def unsettled(state):
        return (state[2] < NEWTON_STEPS) & jnp.any(jnp.abs(state[1]) > thresholds.close(x.dtype))

    start = refine((theta, theta, jnp.zeros((), jnp.int32)))
    theta, _, _ = jax.lax.while_loop(unsettled, refine, start)
    return jnp.maximum(x - theta, 0.0), theta


def _look(slopes: Slopes, z, state: _State) -> _State:
    """Judge each example by its gap, and its step by the curvature along the last one."""
    slope = slopes(state.p)
    gap, rounding = _error(state.p, z, slope, state.curvature)
    p, gap = jax.lax.cond(
        state.steps >= SLOW,
        lambda: _newton(slopes, z, state, gap),
        lambda: (state.p, gap),
    )
    idle = jnp.where(gap < 0.9 * state.best, 0, state.idle + 1)
    settled = (gap <= rounding) | ((gap <= NEAR * rounding) & (idle > 1)) | jnp.isnan(gap)
    idle = jnp.where(settled, PATIENCE, idle)
    travel = state.ahead - state.p
    rise = row_sum(travel * (slopes(state.ahead) - slope))
    steep = rise > state.curvature * row_sum(travel**2) + rounding**2
    curvature = jnp.where(steep, 1.5 * state.curvature, state.curvature)
    ahead = jnp.where(p == state.p, state.ahead, p)
    best_p, best = jnp.where(gap < state.best, p, state.best_p), jnp.minimum(gap, state.best)
    return _State(p, ahead, best_p, state.theta, curvature, best, idle, state.steps)


def _newton(slopes: Slopes, z, state: _State, error) -> tuple[Array, Array]:
    """p and its error after Newton steps along the faces that p meets, until one is a whole step.

    A step that meets the boundary drops a class, and gradients alone bring one back: if they came
    after each step, the two could undo each other for ever.
    """

    def advance(carry):
        p, whole, count = carry
        moved, complete = _newton_step(slopes, z, p)
        return jnp.where(whole, p, moved), whole | complete, count + 1

    def unfinished(carry):
        return (carry[2] < FACES) & ~jnp.all(carry[1])

    first = state.p, state.idle >= PATIENCE, jnp.zeros((), jnp.int32)
    moved, _, _ = jax.lax.while_loop(unfinished, advance, first)
    moved_error, rounding = _error(moved, z, slopes(moved), state.curvature)
    better = (moved_error < error) | (error > FAR * rounding)
    return jnp.where(better, moved, state.p), jnp.where(better, moved_error, error)


def _newton_step(slopes: Slopes, z, p) -> tuple[Array, Array]:
    """p after a Newton step along its face, as long as it ascends, and whether it was a whole one.

    Where F bends sharply, a whole step may overshoot by far. On the way ⟨z, p⟩ − F(p) is concave,
    so that its derivative, which bisection follows, changes its sign once.
    """
    step = implicit.solve_on_face(slopes, p, z - slopes(p))
    room = jnp.where(step < 0, p / jnp.where(step < 0, -step, 1.0), jnp.inf)
    farthest = jnp.minimum(jnp.min(room, axis=0, keepdims=True), 1.0)

    def ascends(length):
        return row_sum(step * (z - slopes(p + length * step))) >= 0

    def halve(_, bracket):
        low, high = bracket
        middle = (low + high) / 2
        onward = ascends(middle)
        return jnp.where(onward, middle, low), jnp.where(onward, high, middle)

    low = jnp.where(ascends(farthest), farthest, 0.0)
    length, _ = jax.lax.fori_loop(0, HALVINGS, halve, (low, farthest))
    moved = jnp.where(room <= length, 0.0, jnp.maximum(p + length * step, 0.0))
    return thresholds.on_simplex(moved), length > 0.99


def _error(p, z, slope, curvature) -> tuple[Array, Array]:
    """The gap, or a residual where that is larger, and the rounding of the gap."""
    gap, rounding = gap_and_rounding(p, z, slope)
    # the gap hardly sees an entry that is small and wrong, and this residual does
    wrong = jnp.max(jnp.minimum(slack(z - slope), curvature * p), axis=0, keepdims=True)
    return jnp.maximum(jnp.maximum(gap, wrong / 2), jnp.abs(row_sum(p) - 1)), rounding
