"""Tempered logarithm and exponential, with their ordinary namesakes as exact limits.

    log_t(x) = (x^{1−t} − 1)/(1 − t),   exp_t(x) = [1 + (1 − t)x]₊^{1/(1−t)}

Both use expm1 and log1p, so that no digits are lost as t → 1.

>>> import jax.numpy as jnp
>>> tempered_log(jnp.array([0.25]), jnp.array([1.0]))
Array([-1.3863], dtype=float32)
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pgeom.geometry.derivatives import sum_of_slopes
from pgeom.types import Number


@jax.custom_jvp
def expm1(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """eˣ − 1."""
    return jnp.expm1(x)


@expm1.defjvp
def _expm1_jvp(primals, tangents):
    # By hand because JAX computes the derivative as expm1(x) + 1, which is all rounding for x ≪ 0.
    (x,), (x_dot,) = primals, tangents
    return expm1(x), jnp.exp(x) * x_dot


def expm1_ratio(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """(eˣ − 1)/x, smooth through 0."""
    small = jnp.abs(x) < 0.5
    series = jnp.ones_like(x)
    for k in range(16, 1, -1):  # Σ xⁿ/(n+1)!, to float64 precision on |x| < 1/2
        series = 1 + series * x / k
    safe = jnp.where(small, 1.0, x)  # the second where, so that no gradient sees 0/0
    return jnp.where(small, series, expm1(safe) / safe)


@jax.custom_jvp
def tempered_log(x: Float[Array, "*shape"], t: Float[Array, "..."]) -> Float[Array, "*shape"]:
    """log_t(x) for x > 0, smooth in x and in t, through t = 1 too."""
    return _tempered_log(x, t)


@partial(tempered_log.defjvp, symbolic_zeros=True)
def _tempered_log_jvp(primals, tangents):
    # By hand because x^{−t} is right at x = 0 as well, where the chain rule through log x is 0·∞.
    # The slope in t is that next to zero, for the same reason.
    (x, t), (x_dot, t_dot) = primals, tangents
    out, above = tempered_log(x, t), jnp.maximum(x, jnp.finfo(x.dtype).tiny)

    def slope_in_t(dot):
        return jax.jvp(lambda t: _tempered_log(above, t), (t,), (dot,))[1]

    return out, sum_of_slopes(out, (x_dot, lambda dot: x ** (-t) * dot), (t_dot, slope_in_t))


def _tempered_log(x, t):
    log_x, s = jnp.log(x), 1 - t
    near_one = jnp.abs(s) < 1e-2
    safe = jnp.where(near_one, 1.0, s)  # the second where, so that no gradient sees 0/0
    return jnp.where(near_one, log_x * expm1_ratio(s * log_x), expm1(safe * log_x) / safe)


def log_tempered_exp(x: Float[Array, "*shape"], t: Number) -> Float[Array, "*shape"]:
    """log exp_t(x) = log1p((1 − t)x)/(1 − t), and −∞ outside the support."""
    if t == 1:
        return x
    inside = ~(1 + (1 - t) * x <= 0)  # NaN stays NaN
    safe = jnp.where(inside, x, 0.0)  # the second where, so that no gradient sees log of ≤ 0
    return jnp.where(inside, jnp.log1p((1 - t) * safe) / (1 - t), -jnp.inf)
