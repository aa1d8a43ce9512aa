"""Links that one number per example decides: those of separable generators, and of c‖p‖.

The maximiser of ⟨z, p⟩ − Σ_k f(p_k) has f′(p_k) = z_k − θ where that has a solution p_k > 0, and
p_k = 0 elsewhere. As θ grows the entries decrease, and so does their sum: p is on the simplex where
the sum crosses one. For Tsallis entropies, of which sparsemax and entmax are the links, f′ has an
inverse by formula; for a sum of separable generators p_k is a root within the search for θ.

Arrays are class-major, `[K, n]` with one example per column: XLA adds up a few rows several times
faster than a few columns.

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
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pgeom import simplex
from pgeom.generators import Shannon, Spherical, SquaredNorm, Tsallis, parts
from pgeom.special import tempered_log
from pgeom.types import Generator

Columns: TypeAlias = Float[Array, "K n"]
"""Logits or points, one example per column."""

STEPS = 200
PATIENCE = 12  # Newton steps, after which every second step halves the bracket


class Maximum(NamedTuple):
    """The maximiser of ⟨z, p⟩ − F(p) for each example, and the number of steps taken."""

    p: Columns
    steps: Array


def find_root(function: Callable, low, high, start=None, *, close=None) -> tuple[Array, Array]:
    """Where decreasing functions cross zero, elementwise, by Newton steps within a bracket.

    For convex functions Newton steps increase to the root; a step out of the bracket is replaced by
    its middle. An end is found where the function has its sign on the whole bracket.

    Args:
      function: `x -> (value, slope)`, arrays of one shape.
      low: where the values are positive or zero.
      high: where they are negative or zero.
      start: where to start, instead of `low`.
      close: up to which size a value counts as zero; by default the rounding of a few entries less
        their sum of one.

    Returns:
      x, and the number of steps taken.
    """
    eps = jnp.finfo(low.dtype).eps
    start, close = low if start is None else start, 2 * eps if close is None else close

    def refine(state):
        x, low, high, settled, steps = state
        value, slope = function(x)
        low = jnp.where(value >= 0, x, low)
        high = jnp.where(value <= 0, x, high)
        newton = x - value / slope
        halve = (steps > PATIENCE) & (steps % 2 == 0)
        inside = (newton > low) & (newton < high) & (slope < 0) & ~halve
        following = jnp.where(inside, newton, (low + high) / 2)
        narrow = (high - low) <= eps * jnp.maximum(jnp.abs(low), jnp.abs(high))
        settled |= narrow | (jnp.abs(value) <= close) | (following == x) | jnp.isnan(value)
        return jnp.where(settled, x, following), low, high, settled, steps + 1

    def unsettled(state):
        return (state[-1] < STEPS) & ~jnp.all(state[-2])

    first = start, low, high, start != start, jnp.zeros((), jnp.int32)
    x, *_, steps = jax.lax.while_loop(unsettled, refine, first)
    return x, steps


def row_sum(x):
    """Σ_k x_k of each column, `[1, n]`."""
    return jnp.sum(x, axis=0, keepdims=True)


def on_simplex(p):
    """Columns that sum to one but for rounding, made to sum to one."""
    return p / row_sum(p)


def maximise(F: Generator, z: Columns) -> Maximum:
    """The maximisers of ⟨z, p⟩ − F(p) for logits whose largest is zero.

    Args:
      F: separable, or a multiple of `spherical`.
      z: logits.
    """
    (c, part), *others = parts(F)
    link = None if others else FORMULAS.get(type(part))
    return _by_inversion(F, z) if link is None else link(part, z / jnp.asarray(c, z.dtype))


def _softmax(F: Shannon, z) -> Maximum:
    return Maximum(jax.nn.softmax(z, axis=0), jnp.zeros((), jnp.int32))


def _sparsemax(F: SquaredNorm, z) -> Maximum:
    return Maximum(on_simplex(simplex.project(z / 2, axis=0)), jnp.ones((), jnp.int32))


def _spherical(F: Spherical, z) -> Maximum:
    """p ∝ (z − θ)₊ with the θ for which ‖(z − θ)₊‖ = 1."""

    def excess(theta):
        above = jnp.maximum(z - theta, 0.0)
        return row_sum(above**2) - 1, -2 * row_sum(above)

    none = jnp.zeros_like(z[:1])
    theta, steps = find_root(excess, none - 1, none - len(z) ** -0.5)
    return Maximum(on_simplex(jnp.maximum(z - theta, 0.0)), steps)


def _entmax(F: Tsallis, z) -> Maximum:
    """p = [(1 + (α − 1)(z − θ))/α]₊^{1/(α−1)}, by logarithms: α = 1 is no exception."""
    alpha = jnp.asarray(F.alpha, z.dtype)
    beta, K = alpha - 1, jnp.asarray(1 / len(z), z.dtype)

    def log_entries(theta):
        x = z - theta
        inside = 1 + beta * x > 0
        log_p = x * _log1p_ratio(jnp.where(inside, beta * x, 0.0)) - _log1p_ratio(beta)
        return jnp.where(inside, log_p, -jnp.inf)

    def excess(theta):
        log_p = log_entries(theta)
        growth = jnp.where(log_p > -jnp.inf, jnp.exp((1 - beta) * log_p), 0.0) / alpha  # p^{2−α}/α
        return row_sum(jnp.exp(log_p)) - 1, -row_sum(growth)

    none = jnp.zeros_like(z[:1])
    highest = none - 1 - alpha * tempered_log(K, 2 - alpha)
    theta, steps = find_root(excess, none - 1, highest)

    p, more = jax.lax.cond(
        alpha > 2,
        lambda: _from_smallest(z, alpha, theta - 1 / beta),
        lambda: (jnp.exp(log_entries(theta)), jnp.zeros_like(steps)),
    )
    return Maximum(on_simplex(p), steps + more)


def _from_smallest(z, alpha, tau):
    """p of a Tsallis entropy of order α > 2, from its smallest entry that is not zero.

    From p^{α−1} = (z − τ)(α − 1)/α a small p would be the root of a difference that is all
    rounding. With q > 0 the smallest entry, at the logit r, and p^{α−1} = q^{α−1} +
    (z − r)(α − 1)/α, nothing cancels.
    """
    beta = alpha - 1

    def log_powers(above):
        return jnp.log(jnp.maximum(above, 0.0) * (beta / alpha))

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

    def log_entries(minus_log_q):
        powers_of_q = -beta * minus_log_q
        return powers_of_q, jnp.logaddexp(powers_of_q, powers) / beta

    def excess(minus_log_q):
        powers_of_q, log_p = log_entries(minus_log_q)
        growth = jnp.where(support, jnp.exp(powers_of_q - (beta - 1) * log_p), 0.0)
        return row_sum(jnp.where(support, jnp.exp(log_p), 0.0)) - 1, -row_sum(growth)

    least = jnp.log(row_sum(support.astype(z.dtype)))
    most = jnp.full_like(least, -jnp.log(jnp.finfo(z.dtype).tiny))
    minus_log_q, steps = find_root(excess, least, most)
    return jnp.where(support, jnp.exp(log_entries(minus_log_q)[1]), 0.0), steps


def _log1p_ratio(y):
    """log(1 + y)/y, one at zero."""
    return jnp.where(y == 0, 1.0, jnp.log1p(y) / y)


FORMULAS: dict[type, Callable] = {
    Shannon: _softmax,
    SquaredNorm: _sparsemax,
    Spherical: _spherical,
    Tsallis: _entmax,
}


def _by_inversion(F: Generator, z) -> Maximum:
    """With the root p of f′(p) = z − θ, in log p, for each θ."""
    slope_and_curvature = _derivatives(F)
    tiny = jnp.full_like(z, jnp.finfo(z.dtype).tiny)
    lowest, none = slope_and_curvature(tiny)[0], jnp.zeros_like(z)

    def entries(theta):
        present = z - theta > lowest

        def above(log_p):
            p = jnp.exp(log_p)
            slope, curvature = slope_and_curvature(p)
            return jnp.where(present, z - theta - slope, 0.0), -p * curvature

        log_p, _ = find_root(above, jnp.log(tiny), none, none - 0.7, close=0.0)
        return jnp.where(present, jnp.exp(log_p), 0.0)

    def excess(theta):
        p = entries(theta)
        _, curvature = slope_and_curvature(jnp.maximum(p, tiny))
        return row_sum(p) - 1, -row_sum(jnp.where(p > 0, 1 / curvature, 0.0))

    low, high = (-slope_and_curvature(jnp.full_like(z[:1], x))[0] for x in (1.0, 1 / len(z)))
    theta, steps = find_root(excess, low, high)
    return Maximum(on_simplex(entries(theta)), steps)


def _derivatives(F: Generator) -> Callable:
    """`p -> (f′(p_k), f″(p_k))`, entry by entry."""

    def slope(p):
        return jax.grad(F)(p.ravel()).reshape(p.shape)

    return lambda p: jax.jvp(slope, (p,), (jnp.ones_like(p),))


def respond(F: Generator, p: Columns, z: Columns, r: Columns) -> Columns:
    """How p moves where z − ∇F(p) moves by r: D(r − ⟨D, r⟩/ΣD), D = 1/f″(p) on the support."""
    support = p > 0
    at = jnp.where(support, simplex.interior(p), 0.5)
    # Where autodiff overflows on the way, as for p log p, through 1/p² long before 1/p does, f″ is
    # computed slightly inside the simplex and extrapolated to p like 1/p_k.
    derivatives, inside = _derivatives(F), simplex.interior(at, 0.5)
    direct, extrapolated = derivatives(at)[1], derivatives(inside)[1] * (inside / at)
    curvature = jnp.where(direct >= 0, direct, extrapolated)
    flattest = jnp.sqrt(jnp.finfo(p.dtype).tiny)  # where f″ vanishes, ΣD would overflow
    D = jnp.where(support, 1 / jnp.maximum(curvature, flattest), 0.0)
    share = D / row_sum(D)
    x = D * (r - row_sum(share * r))
    dominant = share > 0.5  # minus the sum of the others, or it would lose their digits
    return jnp.where(dominant, -row_sum(jnp.where(dominant, 0.0, x)), x)
