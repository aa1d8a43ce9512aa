"""Links that one number per example decides, and what tells that a point is optimal.

How far a point of the simplex is from maximising ⟨z, p⟩ − F(p), for a batch `[K, n]`.

With the residual r = z − ∇F(p), a convex F has

    F*(z) − ⟨z, p⟩ + F(p) ≤ max_j r_j − ⟨r, p⟩ = Σ_j p_j s_j,    s_j = max_k r_k − r_j ≥ 0,

and p is the maximiser if and only if this gap is zero: s are the multipliers of p ≥ 0.

>>> import jax.numpy as jnp
>>> from pgeom.generators import squared_norm
>>> z, p = jnp.array([[1.0], [0.0]]), jnp.array([[0.75], [0.25]])
>>> gap_and_rounding(p, z, slopes(squared_norm, p))[0]
Array([[0.]], dtype=float32)

Points of the simplex that depend on one number, the threshold, found by safeguarded Newton.

If the entries of p decrease in a threshold θ, so does their sum, and p is on the simplex where the
sum crosses one. Arrays are class-major here, `[K, n]` with one example per column: XLA adds up a
few rows several times faster than a few columns.

>>> import jax.numpy as jnp
>>> project(jnp.array([[0.9], [0.5], [-2.0]])).p
Array([[0.7],
       [0.3],
       [0. ]], dtype=float32)

The canonical link of a separable generator, F(p) = Σ_k f(p_k), from one threshold per example.

The maximiser has f′(p_k) = z_k − θ where that has a solution p_k > 0, and p_k = 0 elsewhere, with
the θ for which the entries sum to one. For Tsallis entropies, of which sparsemax and entmax are
the links, f′ has an inverse by formula; for a sum of separable generators p_k is found by Newton
steps within a bracket. Arrays are class-major, `[K, n]`.

>>> import jax.numpy as jnp
>>> from pgeom.generators import shannon, squared_norm
>>> maximise(squared_norm, jnp.array([[0.0], [-1.0], [-9.0]])).p
Array([[0.75],
       [0.25],
       [0.  ]], dtype=float32)
>>> maximise(squared_norm + shannon, jnp.array([[0.0], [0.0]])).p
Array([[0.5],
       [0.5]], dtype=float32)
"""

from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from pgeom import simplex
from pgeom.generators import (
    SeparableGenerator,
    Shannon,
    Spherical,
    SquaredNorm,
    Tsallis,
    parts,
    sum_over_parts,
)
from pgeom.special import tempered_log
from pgeom.types import AnyArray, Generator

ACCEPTED = 1e4  # units of rounding up to which a gap is an answer
UNITS = 2  # of rounding of its terms, below which a gap cannot be told from zero


def slopes(F: Generator, p: Float[Array, "K n"]) -> Float[Array, "K n"]:
    """∇F at each column."""
    return jax.vmap(jax.grad(F), in_axes=1, out_axes=1)(p)


def unit(F: Generator, z: Float[Array, "K n"]) -> Float[Array, ""]:
    """The size of the slopes of F, as a power of two, by which F and z are divided exactly.

    With F and z in this unit no tolerance depends on the units of the user. Of z only the type is
    used: in a `shard_map`, F must be evaluated at points that vary over devices as z does.
    """
    K, dtype = z.shape[0], z.dtype
    centre = jnp.full_like(jnp.sum(z, axis=1), 1 / K)
    first, last = ((centre + simplex.vertex(k, K, dtype)) / 2 for k in (0, K - 1))
    middle, *others = (jax.grad(F)(p) for p in (centre, first, last))
    largest = jnp.maximum(*(jnp.max(jnp.abs(other - middle)) for other in others))
    size = jax.lax.stop_gradient(jnp.max(jnp.abs(middle)) + largest)
    usual = (size > 0) & (size < jnp.inf)
    return jnp.exp2(jnp.floor(jnp.log2(jnp.where(usual, size, 1.0))))


def slack(residual: Float[Array, "K n"]) -> Float[Array, "K n"]:
    """s_j = max_k r_k − r_j."""
    return jnp.max(residual, axis=0, keepdims=True) - residual


def gap_and_rounding(
    p: Float[Array, "K n"], z: Float[Array, "K n"], slope: Float[Array, "K n"]
) -> tuple[Float[Array, "1 n"], Float[Array, "1 n"]]:
    """The optimality gap of each column, and a few units of rounding of its terms.

    Args:
      p: points of the simplex.
      z: logits, the largest zero, in the `unit` of F.
      slope: ∇F(p), in that unit too.
    """
    s, sizes = slack(z - slope), jnp.abs(slope) - z
    gap = jnp.sum(jnp.where(p == 0, 0.0, p * s), axis=0, keepdims=True)
    terms = jnp.sum(jnp.where(p == 0, 0.0, p * sizes), axis=0, keepdims=True)
    # the largest residual is in every s_j, and may be that of a tiny entry with a steep slope
    largest = jnp.max(jnp.where((s == 0) & (p > 0), sizes, 0.0), axis=0, keepdims=True)
    return gap, UNITS * jnp.finfo(p.dtype).eps * (1 + terms + largest)


STEPS = 200
PATIENCE = 12  # Newton steps, after which every second step halves the bracket


class Crossing(NamedTuple):
    """The threshold of each example, and the number of steps taken to find it."""

    theta: Float[Array, "1 n"]
    steps: Int[Array, ""]


class Maximum(NamedTuple):
    """The maximiser of ⟨z, p⟩ − F(p) for each example, and the number of steps taken."""

    p: Float[Array, "K n"]
    steps: Int[AnyArray, ""]


class _State(NamedTuple):
    theta: Array
    low: Array
    high: Array
    done: Array
    steps: Array


def row_sum(x: Float[Array, "K n"]) -> Float[Array, "1 n"]:
    """Σ_k x_k of each column."""
    return jnp.sum(x, axis=0, keepdims=True)


def project(x: Float[Array, "K n"]) -> Maximum:
    """The nearest point of the simplex to each column: max(x − θ, 0)."""

    def total(theta):
        above = x > theta
        count = row_sum(above.astype(x.dtype))
        return row_sum(jnp.where(above, x - theta, 0.0)), -count

    top = jnp.max(x, axis=0, keepdims=True)
    found = crossing(total, low=top - 1, high=top - 1 / x.shape[0])
    return Maximum(on_simplex(jnp.maximum(x - found.theta, 0.0)), found.steps)


def close(dtype: DTypeLike) -> float:
    """How much a sum of a few entries that should be one may differ from it by rounding."""
    return 2 * float(jnp.finfo(dtype).eps)


def on_simplex(p: Float[Array, "K n"]) -> Float[Array, "K n"]:
    """Columns that sum to one but for rounding, made to sum to one."""
    return p / row_sum(p)


def crossing(
    total: Callable[[Array], tuple[Array, Array]],
    *,
    low: Float[Array, "1 n"],
    high: Float[Array, "1 n"],
) -> Crossing:
    """Where a decreasing function of θ crosses one, to the last digit.

    Newton steps, which for sums of convex functions increase to the crossing; a step out of the
    bracket is replaced by its middle.

    Args:
      total: `theta[1, n] -> (value[1, n], slope[1, n])`.
      low: where the value is at least one.
      high: where it is at most one.
    """
    eps = jnp.finfo(low.dtype).eps

    def refine(state: _State) -> _State:
        theta = state.theta
        value, slope = total(theta)
        low = jnp.where(value >= 1, theta, state.low)
        high = jnp.where(value <= 1, theta, state.high)
        newton = theta - (value - 1) / jnp.where(slope < 0, slope, -1.0)
        halve = (state.steps > PATIENCE) & (state.steps % 2 == 0)
        inside = (newton > low) & (newton < high) & (slope < 0) & ~halve
        following = jnp.where(inside, newton, (low + high) / 2)
        narrow = (high - low) <= eps * jnp.maximum(jnp.abs(low), jnp.abs(high))
        settled = narrow | (jnp.abs(value - 1) <= close(low.dtype)) | (following == theta)
        done = state.done | settled | jnp.isnan(value)
        return _State(jnp.where(done, theta, following), low, high, done, state.steps + 1)

    def unsettled(state: _State):
        return (state.steps < STEPS) & ~jnp.all(state.done)

    first = _State(low, low, high, low != low, jnp.zeros((), jnp.int32))
    last = jax.lax.while_loop(unsettled, refine, first)
    return Crossing(last.theta, last.steps)


INNER_STEPS = 60


def has_threshold(F: Generator) -> bool:
    """Whether one threshold per example gives the link: F is separable, or c‖p‖."""
    (_, part), *others = parts(F)
    return is_separable(F) or (isinstance(part, Spherical) and not others)


def is_separable(F: Generator) -> bool:
    """Whether F is known to be separable."""
    return all(isinstance(part, SeparableGenerator) for _, part in parts(F))


def maximise(F: Generator, z: Float[Array, "K n"]) -> Maximum:
    """The maximisers of ⟨z, p⟩ − F(p) over the simplex, for logits whose largest is zero."""
    (c, part), *others = parts(F)
    if others:
        return _maximise_sum(F, z)
    return _maximise(part, z / jnp.asarray(c, z.dtype))


@singledispatch
def _maximise(F: Generator, z) -> Maximum:
    return _maximise_sum(F, z)


@_maximise.register
def _(F: Shannon, z) -> Maximum:
    return Maximum(jax.nn.softmax(z, axis=0), jnp.zeros((), jnp.int32))


@_maximise.register
def _(F: SquaredNorm, z) -> Maximum:
    return project(z / 2)


@_maximise.register
def _(F: Tsallis, z) -> Maximum:
    """p = [(1 + (α − 1)(z − θ))/α]₊^{1/(α−1)}, by logarithms: α = 1 is no exception."""
    alpha = jnp.asarray(F.alpha, z.dtype)
    beta, K = alpha - 1, jnp.asarray(1 / z.shape[0], z.dtype)

    def entries(theta):
        x = z - theta
        inside = 1 + beta * x > 0
        log_p = x * _log1p_ratio(jnp.where(inside, beta * x, 0.0)) - _log1p_ratio(beta)
        return jnp.where(inside, jnp.exp(log_p), 0.0), jnp.where(inside, log_p, -jnp.inf)

    def total(theta):
        p, log_p = entries(theta)
        growth = jnp.where(p > 0, jnp.exp((1 - beta) * log_p), 0.0) / alpha  # p^{2−α}/α
        return row_sum(p), -row_sum(growth)

    none = jnp.zeros_like(z[:1])
    highest = none + 1 + alpha * tempered_log(K, 2 - alpha)
    found = crossing(total, low=none - 1, high=-highest)

    def refined():
        p, more = _from_smallest(z, alpha, found.theta - 1 / beta)
        return on_simplex(p), found.steps + more

    def settled():
        return on_simplex(entries(found.theta)[0]), found.steps

    return Maximum(*jax.lax.cond(alpha > 2, refined, settled))


def _from_smallest(z, alpha, tau) -> Maximum:
    """p of a Tsallis entropy of order α > 2, from its smallest entry that is not zero.

    From p^{α−1} = (z − τ)(α − 1)/α a small p would be the root of a difference that is all
    rounding. With q > 0 the smallest entry, at the logit r, and p^{α−1} = q^{α−1} +
    (z − r)(α − 1)/α, nothing cancels, and Σp is convex in q.
    """
    beta = alpha - 1

    def log_powers(above):
        return jnp.where(above > 0, jnp.log(jnp.maximum(above, 0.0) * (beta / alpha)), -jnp.inf)

    # In the loop, and with z − r carried out of it, because a compiler may compute z twice and
    # round it in two ways: a logit that is its own r must be at zero exactly.
    def ascend(state):
        r, _, overfull = state
        following = jnp.min(jnp.where(z > r, z, jnp.inf), axis=0, keepdims=True)
        r = jnp.where(overfull, following, r)
        return r, z - r, row_sum(jnp.exp(log_powers(z - r) / beta)) > 1

    doubt = 64 * alpha * jnp.finfo(z.dtype).eps  # how far from right τ may be
    # A `vmap` over orders computes both branches for each; of one that is not above 2 the powers
    # never fit, and the loop would not end.
    first = tau - doubt, z, (tau == tau) & (alpha > 2)
    _, above, _ = jax.lax.while_loop(lambda state: jnp.any(state[2]), ascend, first)
    powers, support = log_powers(above), above >= 0

    def entries(q):
        log_q = jnp.log(simplex.interior(q))
        log_p = jnp.where(support, jnp.logaddexp(beta * log_q, powers) / beta, -jnp.inf)
        return jnp.exp(log_p), jnp.where(support, jnp.exp((beta - 1) * (log_q - log_p)), 0.0)

    def total(minus_q):
        p, growth = entries(-minus_q)
        return row_sum(p), -row_sum(growth)

    most = 1 / row_sum(support.astype(z.dtype))
    found = crossing(total, low=-most, high=jnp.zeros_like(most))
    return Maximum(entries(-found.theta)[0], found.steps)


def _log1p_ratio(y):
    """log(1 + y)/y, one at zero."""
    return jnp.where(y == 0, 1.0, jnp.log1p(y) / jnp.where(y == 0, 1.0, y))


@_maximise.register
def _(F: Spherical, z) -> Maximum:
    """p ∝ (z − θ)₊ with the θ for which ‖(z − θ)₊‖ = 1."""

    def total(theta):
        above = jnp.maximum(z - theta, 0.0)
        return row_sum(above**2), -2 * row_sum(above)

    none = jnp.zeros_like(z[:1])
    found = crossing(total, low=none - 1, high=none - z.shape[0] ** -0.5)
    return Maximum(on_simplex(jnp.maximum(z - found.theta, 0.0)), found.steps)


def curvatures(F: Generator, p: Float[Array, "K n"]) -> Float[Array, "K n"]:
    """f″(p_k), entry by entry.

    Where autodiff overflows on the way, as for p log p, through 1/p² long before 1/p does, it is
    computed slightly inside the simplex and extrapolated to p like 1/p_k.
    """
    slope = jax.grad(lambda p: jnp.sum(_terms(F, p)))

    def bends(p):
        return jax.jvp(slope, (p,), (jnp.ones_like(p),))[1]

    direct, inside = bends(p), simplex.interior(p, 0.5)
    return jnp.where(direct >= 0, direct, bends(inside) * (inside / p))


def _maximise_sum(F: Generator, z) -> Maximum:
    """With f′ inverted by Newton steps within a bracket, for each θ."""
    slope = jax.grad(lambda p: jnp.sum(_terms(F, p)))

    def both(p):
        return jax.jvp(slope, (p,), (jnp.ones_like(p),))

    tiny = jnp.full_like(z, jnp.finfo(z.dtype).tiny)
    lowest = slope(tiny)

    def total(theta):
        p = _invert(both, lowest, z - theta)
        _, curvature = both(jnp.maximum(p, tiny))
        return row_sum(p), -row_sum(jnp.where(p > 0, 1 / curvature, 0.0))

    at_one, at_centre = (slope(jnp.full_like(z[:1], x)) for x in (1.0, 1 / z.shape[0]))
    found = crossing(total, low=-at_one, high=-at_centre)
    p = _invert(both, lowest, z - found.theta)
    return Maximum(on_simplex(p), found.steps)


class _Bracket(NamedTuple):
    p: Array
    low: Array
    high: Array
    done: Array
    steps: Array


def _invert(both: Callable, lowest, x):
    """The p in [0, 1] with f′(p) = x, zero where x ≤ f′(0)."""
    eps = jnp.finfo(x.dtype).eps

    def refine(state: _Bracket) -> _Bracket:
        slope, curvature = both(state.p)
        low = jnp.where(slope <= x, state.p, state.low)
        high = jnp.where(slope >= x, state.p, state.high)
        newton = state.p + (x - slope) / curvature
        # far from a p that may be tiny, halve the bracket of log p instead
        near = (newton > state.p / 2) & (newton < 2 * state.p) & (newton > low) & (newton < high)
        following = jnp.where(near, newton, jnp.sqrt(low) * jnp.sqrt(high))
        # of the ratio, because the difference of two tiny numbers may underflow
        done = state.done | (jnp.abs(following / state.p - 1) <= eps)
        return _Bracket(jnp.where(done, state.p, following), low, high, done, state.steps + 1)

    def unsettled(state: _Bracket):
        return (state.steps < INNER_STEPS) & ~jnp.all(state.done)

    tiny = jnp.full_like(x, jnp.finfo(x.dtype).tiny)
    outside = ~(x > lowest)
    first = _Bracket(jnp.full_like(x, 0.5), tiny, jnp.ones_like(x), outside, jnp.zeros((), int))
    return jnp.where(outside, 0.0, jax.lax.while_loop(unsettled, refine, first).p)


def _terms(F: Generator, p):
    """f(p_k), entry by entry."""

    def terms(part):
        if not isinstance(part, SeparableGenerator):
            raise TypeError(f"{type(part).__name__} is not known to be separable")
        return part.terms(p)

    return sum_over_parts(terms, F, p.dtype)
