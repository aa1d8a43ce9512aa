"""Isotonic regression by pooling adjacent violators, for many samples at once.

Of all nondecreasing functions of the forecast it is the one with the least squared error, and, for
binary outcomes, with the least mean of *every* proper score. Blocks of equal forecasts are pooled
first; then all adjacent blocks whose means do not increase are pooled at the same time, until there
are none. Two adjacent violators share a block of the solution, whatever else is pooled, so that the
order does not matter.

>>> import jax.numpy as jnp
>>> forecast, outcome = jnp.array([0.1, 0.2, 0.3, 0.4]), jnp.array([0.0, 1.0, 0.0, 1.0])
>>> isotonic(forecast, outcome)
Array([0. , 0.5, 0.5, 1. ], dtype=float32)
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def isotonic(
    forecast: Float[Array, "*runs n"],
    outcome: Float[Array, "*runs n"],
    weights: Float[Array, "*runs n"] | None = None,
) -> Float[Array, "*runs n"]:
    """The nondecreasing function of the forecast that is nearest to the outcomes.

    argmin Σ_i w_i (y_i − c(f_i))²,  c nondecreasing

    Args:
      forecast: in any order.
      outcome: numbers, for example 0 and 1.
      weights: nonnegative; one by default.

    Returns:
      The value of the function at each forecast.
    """
    weights = jnp.ones_like(forecast) if weights is None else weights
    one_sample = jnp.vectorize(_pool, signature="(n),(n),(n)->(n)")
    return one_sample(forecast, outcome, weights)


def _pool(
    forecast: Float[Array, " n"], outcome: Float[Array, " n"], weights: Float[Array, " n"]
) -> Float[Array, " n"]:
    order = jnp.argsort(forecast)
    f, w = forecast[order], weights[order]
    masses = w * outcome[order]

    def block_means(begins: Bool[Array, " n"]) -> Float[Array, " n"]:
        """The mean of each example's block, where `begins` marks the first example of a block."""
        block = jnp.cumsum(begins) - 1
        total, weight = (jnp.zeros_like(f).at[block].add(part) for part in (masses, w))
        return (total / jnp.where(weight > 0, weight, 1.0))[block]

    def violates(begins: Bool[Array, " n"]) -> Bool[Array, " n"]:
        """Whether an example begins a block that must be pooled with the one before it."""
        means = block_means(begins)
        before = jnp.concatenate([jnp.full_like(means[:1], -jnp.inf), means[:-1]])
        return begins & (before >= means)

    def pool(state):
        begins = state[0] & ~state[1]
        return begins, violates(begins)

    distinct = jnp.concatenate([jnp.ones_like(f[:1], bool), f[1:] > f[:-1]])
    state = (distinct, violates(distinct))
    begins, _ = jax.lax.while_loop(lambda state: jnp.any(state[1]), pool, state)
    return jnp.zeros_like(f).at[order].set(block_means(begins))
