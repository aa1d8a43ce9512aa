"""The canonical link of a generator with bounded curvature: projected gradients, then Newton.

Maximises ⟨z, p⟩ − F(p) over the simplex for sums of `quadratic`, `hyperbolic` and `squared_norm`.
Some twenty projected gradients with Nesterov's momentum are enough for the paper's generators, and
find the face that p(z) is on for any other; where they are slow, Newton steps along the face, by
conjugate gradients, follow. The iteration ends by the optimality gap. Memory is O(K) per example.
Arrays are class-major, `[K, n]`.

>>> import jax.numpy as jnp
>>> from pgeom.geometry.generators import quadratic
>>> F = quadratic(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
>>> maximise(F, jnp.array([[0.0], [-1.0]])).p
Array([[0.6666667 ],
       [0.33333334]], dtype=float32)
"""

from functools import singledispatch
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from pgeom.geometry import implicit, thresholds
from pgeom.geometry.closed_forms import parts, sum_over_parts
from pgeom.geometry.generators import Hyperbolic, Quadratic, SquaredNorm
from pgeom.geometry.optimality import gap_and_rounding, slack, slopes
from pgeom.geometry.thresholds import Maximum, row_sum
from pgeom.types import Generator

EVERY = 6  # steps between two looks at the optimality gap
SLOW = 48  # steps after which each look takes a Newton step
STEPS = 6_000
NEWTON_STEPS = 100  # of a projection
PATIENCE = 32  # looks without progress, after which the gap is all rounding
POWER_STEPS = 12  # of power iterations: the descent corrects estimates that are too small
SAFETY = 1.02


class _State(NamedTuple):
    p: Array
    ahead: Array
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
    m, M = curvature_limits(F, z.shape[0], z.dtype)
    root = jnp.sqrt(jnp.clip(m / M, 1e-8, 1.0))
    momentum = (1 - root) / (1 + root)

    def descend(_, state: _State) -> _State:
        x = state.ahead - (slopes(F, state.ahead) - z) / state.curvature
        p, theta = _project_near(x, state.theta)
        moving = state.idle < PATIENCE
        ahead = jnp.where(moving, p + momentum * (p - state.p), state.ahead)
        return state._replace(p=jnp.where(moving, p, state.p), ahead=ahead, theta=theta)

    def advance(state: _State) -> _State:
        state = jax.lax.fori_loop(0, EVERY, descend, state)
        return _look(F, z, state)._replace(steps=state.steps + EVERY)

    def unsettled(state: _State):
        return (state.steps < STEPS) & jnp.any(state.idle < PATIENCE)

    p, none = thresholds.project(z / M).p, jnp.zeros_like(z[:1])
    infinite, idle = none + jnp.inf, jnp.zeros_like(none, jnp.int32)
    first = _State(p, p, none - 1, none + M, infinite, idle, jnp.zeros((), jnp.int32))
    last = jax.lax.while_loop(unsettled, advance, first)
    return Maximum(thresholds.on_simplex(last.p), last.steps)


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


def _look(F: Generator, z, state: _State) -> _State:
    """Judge each example by its gap, and its step by the curvature along the last one."""
    slope = slopes(F, state.p)
    gap, rounding = _error(state.p, z, slope, state.curvature)
    p, gap = jax.lax.cond(
        state.steps >= SLOW,
        lambda: _newton(F, z, state, slope, gap),
        lambda: (state.p, gap),
    )
    idle = jnp.where(gap < 0.9 * state.best, 0, state.idle + 1)
    settled = (gap <= rounding) | ((gap <= 8 * rounding) & (idle > 1)) | jnp.isnan(gap)
    idle = jnp.where(settled, PATIENCE, idle)
    travel = state.ahead - state.p
    rise = row_sum(travel * (slopes(F, state.ahead) - slope))
    steep = rise > state.curvature * row_sum(travel**2) + rounding**2
    curvature = jnp.where(steep, 1.5 * state.curvature, state.curvature)
    ahead = jnp.where(p == state.p, state.ahead, p)
    best = jnp.minimum(gap, state.best)
    return state._replace(p=p, ahead=ahead, curvature=curvature, best=best, idle=idle)


def _newton(F: Generator, z, state: _State, slope, gap) -> tuple[Array, Array]:
    """p and its gap after a Newton step along the face that p is on, where that narrows the gap."""
    moved = state.p + implicit.conjugate_gradients(F, state.p, state.p, z - slope)
    moved = thresholds.on_simplex(jnp.maximum(moved, 0.0))
    moved_gap, _ = _error(moved, z, slopes(F, moved), state.curvature)
    better = moved_gap < gap
    return jnp.where(better, moved, state.p), jnp.where(better, moved_gap, gap)


def _error(p, z, slope, curvature) -> tuple[Array, Array]:
    """The gap, or a residual where that is larger, and the rounding of the gap."""
    gap, rounding = gap_and_rounding(p, z, slope)
    # the gap hardly sees an entry that is small and wrong, and this residual does
    wrong = jnp.max(jnp.minimum(slack(z - slope), curvature * p), axis=0, keepdims=True)
    return jnp.maximum(jnp.maximum(gap, wrong / 2), jnp.abs(row_sum(p) - 1)), rounding


def curvature_limits(F: Generator, K: int, dtype: DTypeLike) -> tuple[Array, Array]:
    """Estimates of m_T and M_T, the second at most slightly too small, by power iterations."""

    def product(which):
        def apply(v):
            v = v - jnp.mean(v)
            full = sum_over_parts(lambda part: _products(part, v)[which], F, dtype)
            return full - jnp.mean(full)

        return apply

    M = SAFETY * _largest(product(1), K, dtype)
    return M - _largest(lambda v: M * v - product(0)(v), K, dtype), M


def _largest(product, K: int, dtype: DTypeLike) -> Array:
    """The largest eigenvalue of a positive semidefinite matrix on the tangent space."""

    def multiply(_, v):
        v = product(v - jnp.mean(v))
        return v / jnp.maximum(jnp.linalg.norm(v), jnp.finfo(dtype).tiny)

    irregular = jnp.cos(jnp.arange(1, K + 1, dtype=dtype) ** 2)  # like no one's eigenvectors
    v = jax.lax.fori_loop(0, POWER_STEPS, multiply, irregular)
    v = v - jnp.mean(v)
    return jnp.linalg.norm(product(v)) / jnp.maximum(jnp.linalg.norm(v), jnp.finfo(dtype).tiny)


@singledispatch
def _products(F: Generator, v: Float[Array, " K"]) -> tuple[Array, Array]:
    """H⁻v and H⁺v, where H⁻ ⪯ H(p) ⪯ H⁺ for every p."""
    raise TypeError(f"no bound on the curvature of {type(F).__name__} is known")


@_products.register
def _(F: SquaredNorm, v) -> tuple[Array, Array]:
    return 2 * v, 2 * v


@_products.register
def _(F: Quadratic, v) -> tuple[Array, Array]:
    product = jax.grad(F)(v) - jax.grad(F)(jnp.zeros_like(v))
    return product, product


@_products.register
def _(F: Hyperbolic, v) -> tuple[Array, Array]:
    F = jax.tree.map(lambda leaf: jnp.asarray(leaf, v.dtype), F)
    flat = F.scale * F.lam * v
    return flat, flat + F.scale * jnp.dot(F.w.T, F.a * jnp.dot(F.w, v))
