"""Points of the simplex that depend on one number, the threshold, found by safeguarded Newton.

If the entries of p decrease in a threshold θ, so does their sum, and p is on the simplex where the
sum crosses one. Arrays are class-major here, `[K, n]` with one example per column: XLA adds up a
few rows several times faster than a few columns.

>>> import jax.numpy as jnp
>>> project(jnp.array([[0.9], [0.5], [-2.0]])).p
Array([[0.7],
       [0.3],
       [0. ]], dtype=float32)
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from pgeom.types import AnyArray

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
