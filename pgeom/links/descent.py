"""Links of dense generators with bounded curvature, by accelerated descent and Newton steps.

Bounds on the curvature of sums of `quadratic`, `hyperbolic` and `squared_norm`.

>>> import jax.numpy as jnp
>>> from pgeom.generators import squared_norm
>>> m, M = curvature_limits(squared_norm, jnp.zeros((3, 1)))
>>> round(float(m), 3), round(float(M), 3)
(2.0, 2.04)

Canonical links of dense generators from the few classes that have any probability.

One product with the matrix of a `quadratic` costs K² per example, and logits that differ by more
than the slopes of F leave a few classes in the support. So maximise over the √K classes with the
largest logits, which takes O(K) time and memory per step, and look at all classes only then: where
a class left out has the larger residual, it joins, and the others leave. What is still not optimal
after that, or has too large a support, is only a start for a method over all classes. Arrays are
class-major, `[K, n]`.

>>> import jax.numpy as jnp
>>> from pgeom.generators import quadratic
>>> slope = restricted_slopes(quadratic(2 * jnp.eye(4)), jnp.array([[0], [3]]), 4)
>>> slope(jnp.array([[0.75], [0.25]]))
Array([[1.],
       [0.]], dtype=float32)

The canonical link of a generator with bounded curvature: projected gradients, then Newton.

Maximises ⟨z, p⟩ − F(p) over the simplex for sums of `quadratic`, `hyperbolic` and `squared_norm`.
Some twenty projected gradients with Nesterov's momentum are enough for the paper's generators, and
find the face that p(z) is on for any other; where they are slow, Newton steps along the face, by
conjugate gradients, follow. Where F has a dense matrix and there are many classes, `few_classes`
comes first. The iteration ends by the optimality gap. Memory is O(K) per example.
Arrays are class-major, `[K, n]`.

>>> import jax.numpy as jnp
>>> from pgeom.generators import quadratic
>>> F = quadratic(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
>>> p = maximise(F, jnp.array([[0.0], [-1.0]])).p
>>> float(p[0, 0]), float(p[1, 0])
(0.66667, 0.33333)
"""

from collections.abc import Callable
from functools import partial, singledispatch
from math import isqrt
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pgeom.generators import Hyperbolic, Quadratic, SquaredNorm, parts, sum_over_parts
from pgeom.links import implicit, threshold
from pgeom.links.threshold import Maximum, gap_and_rounding, row_sum, slack, slopes
from pgeom.types import Generator

POWER_STEPS = 12  # of power iterations: the ascent corrects estimates that are too small
SAFETY = 1.02


def curvature_limits(F: Generator, z: Float[Array, "K n"]) -> tuple[Array, Array]:
    """Estimates of m_T and M_T, the second at most slightly too small, by power iterations.

    Of z only the type is used, as by `optimality.unit`.
    """
    K, dtype = z.shape[0], z.dtype
    irregular = jnp.cos(jnp.arange(1, K + 1, dtype=dtype) ** 2)  # like no one's eigenvectors
    start = irregular + jnp.zeros_like(jnp.sum(z, axis=1))

    def product(which):
        def apply(v):
            v = v - jnp.mean(v)
            full = sum_over_parts(lambda part: _products(part, v)[which], F, dtype)
            return full - jnp.mean(full)

        return apply

    M = SAFETY * _largest(product(1), start)
    return M - _largest(lambda v: M * v - product(0)(v), start), M


def _largest(product, start: Float[Array, " K"]) -> Array:
    """The largest eigenvalue of a positive semidefinite matrix on the tangent space."""
    tiny = jnp.finfo(start.dtype).tiny

    def multiply(_, v):
        v = product(v - jnp.mean(v))
        return v / jnp.maximum(jnp.linalg.norm(v), tiny)

    v = jax.lax.fori_loop(0, POWER_STEPS, multiply, start)
    v = v - jnp.mean(v)
    return jnp.linalg.norm(product(v)) / jnp.maximum(jnp.linalg.norm(v), tiny)


@singledispatch
def _products(F: Generator, v: Float[Array, " K"]) -> tuple[Array, Array]:
    """H⁻v and H⁺v, where H⁻ ⪯ H(p) ⪯ H⁺ for every p."""
    raise TypeError(f"no bound on the curvature of {type(F).__name__} is known")


@_products.register
def _(F: SquaredNorm, v) -> tuple[Array, Array]:
    return 2 * v, 2 * v


@_products.register
def _(F: Quadratic, v) -> tuple[Array, Array]:
    product = jax.jvp(jax.grad(F), (v,), (v,))[1]  # its Hessian is the same everywhere
    return product, product


@_products.register
def _(F: Hyperbolic, v) -> tuple[Array, Array]:
    F = jax.tree.map(lambda leaf: jnp.asarray(leaf, v.dtype), F)
    flat = F.scale * F.lam * v
    return flat, flat + F.scale * jnp.dot(F.w.T, F.a * jnp.dot(F.w, v))


FEWEST = 16  # classes that are worth the search for them
ROUNDS = 4

Slopes = Callable[[Float[Array, "m n"]], Float[Array, "m n"]]


class Start(NamedTuple):
    """Points, whether each is the maximiser over all classes, and the number of steps taken."""

    p: Float[Array, "K n"]
    settled: Array
    steps: Int[Array, ""]


class _Restriction(NamedTuple):
    p: Array
    score: Array
    settled: Array
    crowded: Array
    steps: Array
    rounds: Array


def are_enough(F: Generator, K: int) -> bool:
    """Whether F has a dense matrix, and K is so large that √K classes may be enough."""
    return isqrt(K) >= FEWEST and any(isinstance(part, Quadratic) for _, part in parts(F))


def search(F: Generator, z: Float[Array, "K n"], *, solve: Callable, judge: Callable) -> Start:
    """Maximise over √K classes, exchanged until no class left out is missed.

    Args:
      F: a sum of `quadratic`, `hyperbolic` and `squared_norm`.
      z: logits, the largest zero.
      solve: `(slopes, z[m, n]) -> Maximum`, the maximiser over m classes.
      judge: `p[K, n] -> (residual[K, n], settled[1, n])`, over all classes.
    """
    m = isqrt(z.shape[0])

    def advance(state: _Restriction) -> _Restriction:
        classes = jax.lax.top_k(state.score.T, m)[1].T
        found = solve(restricted_slopes(F, classes, z.shape[0]), jnp.take_along_axis(z, classes, 0))
        p = jnp.put_along_axis(jnp.zeros_like(z), classes, found.p, axis=0, inplace=False)
        p = jnp.where(state.settled, state.p, p)
        residual, settled = judge(p)
        score = jnp.where(p > 0, jnp.inf, residual)
        crowded = jnp.sum(p > 0, axis=0, keepdims=True) == m
        return _Restriction(p, score, settled, crowded, state.steps + found.steps, state.rounds + 1)

    def unsettled(state: _Restriction):
        missed = jnp.any(~state.settled) & ~jnp.any(state.crowded & ~state.settled)
        return (state.rounds < ROUNDS) & missed

    none, zero = jnp.zeros_like(z[:1], bool), jnp.zeros((), jnp.int32)
    last = jax.lax.while_loop(unsettled, advance, _Restriction(z, z, none, none, zero, zero))
    return Start(last.p, last.settled, last.steps)


def restricted_slopes(F: Generator, classes: Int[Array, "m n"], K: int) -> Slopes:
    """∇F at points whose support is among some classes, in these classes alone."""
    terms = [(c, _restricted(part, classes, K)) for c, part in parts(F)]

    def slopes(p):
        first, *others = [jnp.asarray(c, p.dtype) * slope(p) for c, slope in terms]
        return sum(others, first)

    return slopes


@singledispatch
def _restricted(F: Generator, classes, K: int) -> Slopes:
    raise TypeError(f"{type(F).__name__} is not known to have bounded curvature")


@_restricted.register
def _(F: SquaredNorm, classes, K: int) -> Slopes:
    return lambda p: 2 * p


@_restricted.register
def _(F: Quadratic, classes, K: int) -> Slopes:
    A = (F.A + F.A.T) / 2
    block, centre = A[classes[:, None], classes[None]], jnp.mean(A, axis=1)[classes]
    return lambda p: jnp.sum(block.astype(p.dtype) * p[None], axis=1) - centre.astype(p.dtype)


@_restricted.register
def _(F: Hyperbolic, classes, K: int) -> Slopes:
    w = F.w[:, classes]  # [R, m, n]

    def slopes(p):
        G = jax.tree.map(lambda leaf: jnp.asarray(leaf, p.dtype), F)
        across = (jnp.sum(w.astype(p.dtype) * p[None], axis=1) - G.b[:, None]) / G.rho[:, None]
        pull = (G.a * G.rho)[:, None] * jnp.tanh(across)
        return G.scale * (G.lam * (p - 1 / K) + jnp.sum(w.astype(p.dtype) * pull[:, None], axis=0))

    return slopes


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
        p, zero = threshold.project(z / M).p, jnp.zeros((), jnp.int32)
        start = Start(p, jnp.zeros_like(z[:1], bool), zero) if start is None else start
        return _ascend(slopes, z, start._replace(p=jnp.where(start.settled, start.p, p)), m, M)

    if not are_enough(F, z.shape[0]):
        return solve(everywhere, z)
    return solve(everywhere, z, search(F, z, solve=solve, judge=judge(F, z, M)))


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
    return Maximum(threshold.on_simplex(last.best_p), last.steps)


def _project_near(x, theta):
    """max(x − θ, 0), by Newton steps from a θ that is close: one if the support stays the same."""
    theta = jnp.minimum(theta, jnp.max(x, axis=0, keepdims=True) - 0.5 / x.shape[0])

    def refine(state):
        theta, _, steps = state
        above = x > theta
        excess = row_sum(jnp.where(above, x - theta, 0.0)) - 1
        return theta + excess / row_sum(above.astype(x.dtype)), excess, steps + 1

    def unsettled(state):
        return (state[2] < NEWTON_STEPS) & jnp.any(jnp.abs(state[1]) > threshold.close(x.dtype))

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
    return threshold.on_simplex(moved), length > 0.99


def _error(p, z, slope, curvature) -> tuple[Array, Array]:
    """The gap, or a residual where that is larger, and the rounding of the gap."""
    gap, rounding = gap_and_rounding(p, z, slope)
    # the gap hardly sees an entry that is small and wrong, and this residual does
    wrong = jnp.max(jnp.minimum(slack(z - slope), curvature * p), axis=0, keepdims=True)
    return jnp.maximum(jnp.maximum(gap, wrong / 2), jnp.abs(row_sum(p) - 1)), rounding
