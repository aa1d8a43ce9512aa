"""Links of generators with bounded curvature, by projected gradients and Newton steps.

Maximises ⟨z, p⟩ − F(p) over the simplex for sums of `quadratic`, `hyperbolic` and `squared_norm`,
in O(K) memory per example. The length of a step is that of Barzilai and Borwein, the inverse of the
curvature along the last one: some ten steps are enough for the paper's generators, and find the
face that p(z) is on for most others. Where curvature jumps, as at narrow ridges, Newton steps along
the face, by conjugate gradients, follow.

What tells that a point is optimal is here too. With the residual r = z − ∇F(p), a convex F has

    F*(z) − ⟨z, p⟩ + F(p) ≤ max_j r_j − ⟨r, p⟩ = Σ_j p_j s_j,    s_j = max_k r_k − r_j ≥ 0,

and p is the maximiser if and only if this gap is zero: s are the multipliers of p ≥ 0.

>>> import jax.numpy as jnp
>>> from pgeom.generators import quadratic
>>> F, z = quadratic(jnp.array([[2.0, 0.0], [0.0, 4.0]])), jnp.array([[0.0], [-1.0]])
>>> p = maximise(F, z).p
>>> float(p[0, 0]), float(p[1, 0])
(0.66667, 0.33333)
>>> gap, rounding = gap_and_rounding(p, z, slopes(F, p))
>>> bool(gap[0] <= rounding[0])
True
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from pgeom import simplex
from pgeom.links.threshold import Columns, Maximum, find_root, on_simplex, row_sum
from pgeom.types import Generator

UNITS = 2  # of rounding of its terms, below which a gap cannot be told from zero
NOISE = 16  # units of rounding, below which a multiplier cannot be told from zero


def slopes(F: Generator, p: Columns) -> Columns:
    """∇F at each column."""
    return jax.vmap(jax.grad(F), in_axes=1, out_axes=1)(p)


def slack(residual):
    """s_j = max_k r_k − r_j."""
    return jnp.max(residual, axis=0, keepdims=True) - residual


def gap_and_rounding(p, z, slope) -> tuple[Array, Array]:
    """The optimality gap of each column, or of one vector, and a few units of its rounding.

    Args:
      p: points of the simplex.
      z: logits, the largest zero, in the unit of F.
      slope: ∇F(p), in that unit too.
    """
    s, sizes = slack(z - slope), jnp.abs(slope) - z
    gap = jnp.sum(jnp.where(p == 0, 0.0, p * s), axis=0)
    terms = jnp.sum(jnp.where(p == 0, 0.0, p * sizes), axis=0)
    # the largest residual is in every s_j, and may be that of a tiny entry with a steep slope
    largest = jnp.max(jnp.where((s == 0) & (p > 0), sizes, 0.0), axis=0)
    return gap, UNITS * jnp.finfo(p.dtype).eps * (1 + terms + largest)


def multipliers(F: Generator, p: Columns, z: Columns) -> Columns:
    """s_j = ⟨r, p⟩ − r_j, r = z − ∇F(p); zero where it cannot be told from zero.

    At the maximiser ⟨r, p⟩ is the largest r_k. Of two numbers that rounding alone tells apart it is
    the better one: an entry counts by its probability, and one that is negligible may have a slope
    so large that its r_k is all rounding.
    """
    slope = slopes(F, simplex.interior(p))
    sizes = 1 + jnp.abs(slope) - z
    level, noise_of_level = (row_sum(jnp.where(p > 0, p * x, 0.0)) for x in (z - slope, sizes))
    s = level - (z - slope)
    noise = NOISE * jnp.finfo(z.dtype).eps * (sizes + noise_of_level)
    return jnp.where(s < noise, 0.0, s)


GRADIENT_PERIOD = 8  # steps between two by gradients, which alone bring a class back
NEWTON_AFTER = 48  # steps after which Newton steps begin
STEPS = 6_000
FLATTEST = 1e-6  # curvature, in the unit of F, below which one is taken for rounding
SETTLED = 8  # units of rounding, within which a point that improves no more has settled
PATIENCE = 200  # steps without progress, after which the gap is all rounding


class _State(NamedTuple):
    p: Array
    slope: Array
    curvature: Array
    best: Array
    best_error: Array
    idle: Array
    steps: Array


def maximise(F: Generator, z: Columns) -> Maximum:
    """The maximisers of ⟨z, p⟩ − F(p) for logits whose largest is zero.

    Args:
      F: a generator whose gradient is Lipschitz on the whole simplex, in its unit.
      z: logits.
    """

    def advance(state: _State) -> _State:
        uphill = z - state.slope
        onward = simplex.project(state.p + uphill / state.curvature, axis=0)
        slow = state.steps >= NEWTON_AFTER
        p = jax.lax.cond(slow, lambda: _careful_step(F, z, state, onward), lambda: onward)
        slope = slopes(F, p)
        step = p - state.p
        square, rise = row_sum(step**2), row_sum(step * (slope - state.slope))
        curvature = jnp.where((square > 0) & (rise > 0), rise / square, state.curvature)
        gap, rounding = gap_and_rounding(p, z, slope)
        # the gap hardly sees an entry that is small and wrong, and this residual does
        wrong = jnp.max(jnp.minimum(slack(z - slope), p), axis=0)
        error = jnp.maximum(gap, wrong / 2)
        idle = jnp.where(error < 0.9 * state.best_error, 0, state.idle + 1)
        settled = (error <= rounding) | ((error <= SETTLED * rounding) & (idle > 3))
        return _State(
            p,
            slope,
            jnp.maximum(curvature, FLATTEST),
            jnp.where((error < state.best_error)[None], p, state.best),
            jnp.minimum(error, state.best_error),
            jnp.where(settled | jnp.isnan(error) | (state.idle >= PATIENCE), PATIENCE, idle),
            state.steps + 1,
        )

    def unsettled(state: _State):
        return (state.steps < STEPS) & jnp.any(state.idle < PATIENCE)

    p = jnp.full_like(z, 1 / len(z))
    none, zero = jnp.zeros_like(z[0]), jnp.zeros((), jnp.int32)
    idle = none.astype(jnp.int32)
    curvature = jnp.ones_like(z[:1])
    first = _State(p, slopes(F, p), curvature, p, none + jnp.inf, idle, zero)
    last = jax.lax.while_loop(unsettled, advance, first)
    return Maximum(on_simplex(last.best), last.steps)


def _careful_step(F: Generator, z, state: _State, onward):
    """p after a step along its face by Newton's method, or now and then onward, while it ascends.

    Where F bends sharply, a whole step may overshoot by far. On the way ⟨z, p⟩ − F(p) is concave,
    so that its derivative changes its sign once.
    """
    p, uphill = state.p, z - state.slope
    newton = state.steps % GRADIENT_PERIOD > 0
    step = jax.lax.cond(newton, lambda: respond(F, p, z, uphill), lambda: onward - p)
    step = jnp.where(jnp.isfinite(step), step, 0.0)  # where all curvature is rounding
    room = jnp.where(step < 0, -p / step, jnp.inf)
    farthest = jnp.minimum(jnp.min(room, axis=0, keepdims=True), 1.0)

    def ascent(length):
        def along(length):
            return row_sum(step * (z - slopes(F, p + length * step)))

        return jax.jvp(along, (length,), (jnp.ones_like(length),))

    close = 0.1 * jnp.abs(row_sum(step * uphill))
    length, _ = find_root(ascent, jnp.zeros_like(farthest), farthest, farthest, close=close)
    return on_simplex(jnp.where(room <= length, 0.0, jnp.maximum(p + length * step, 0.0)))


def respond(F: Generator, p: Columns, z: Columns, r: Columns) -> Columns:
    """How p moves where z − ∇F(p) moves by r: x with Hx + t1 = r on the support of p, and Σx = 0.

    By products with the Hessian of F alone.
    """

    def one(p, r):
        support = (p > 0).astype(p.dtype)

        def centre(v):
            return support * (v - jnp.sum(support * v) / jnp.sum(support))

        def multiply(v):
            return centre(jax.jvp(jax.grad(F), (p,), (centre(v),))[1])

        def solve(_, b):
            size = jnp.max(jnp.abs(b))
            unit = jnp.where(size > 0, size, 1.0)  # squares of a tiny b would underflow
            # what rounding leaves along 1 cannot be solved for, and would be blown up
            return unit * _conjugate_gradients(multiply, centre(b / unit))

        return jax.lax.custom_linear_solve(multiply, centre(r), solve, symmetric=True)

    return jax.vmap(one, in_axes=1, out_axes=1)(p, r)


def _conjugate_gradients(multiply: Callable, b):
    """x with multiply(x) = b, to the rounding of b; that of JAX fails in a `shard_map`."""
    square = jnp.sum(b**2)
    smallest = (4 * jnp.finfo(b.dtype).eps) ** 2 * square

    def advance(state):
        x, residual, direction, square, steps = state
        product = multiply(direction)
        rise = jnp.sum(direction * product)
        length = jnp.where(rise > 0, square / rise, 0.0)
        residual = residual - length * product
        following = jnp.sum(residual**2)
        onward = residual + following / square * direction
        return x + length * direction, residual, onward, following, steps + 1

    def unsettled(state):
        return (state[-1] < 2 * len(b) + 20) & (state[-2] > smallest)

    first = jnp.zeros_like(b), b, b, square, jnp.zeros((), jnp.int32)
    return jax.lax.while_loop(unsettled, advance, first)[0]
