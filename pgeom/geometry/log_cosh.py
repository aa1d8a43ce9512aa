"""log cosh and its Bregman divergence, accurate at every scale.

>>> import jax.numpy as jnp
>>> divergence(jnp.array([0.0]), jnp.array([1e-4]))    # ½ h² for small h
Array([5.000e-09], dtype=float32)
"""

import math

import jax
import jax.numpy as jnp

SMALL = 1.0  # |κ| below which the divergence is taken from series


@jax.custom_jvp
def log_cosh(v: jax.Array) -> jax.Array:
    """log cosh v, elementwise, without overflow."""
    return jnp.logaddexp(v, -v) - math.log(2)


@log_cosh.defjvp
def _log_cosh_jvp(primals, tangents):
    # By hand because autodiff of logaddexp takes two more exponentials than tanh.
    (v,), (v_dot,) = primals, tangents
    return log_cosh(v), _tanh(v) * v_dot


@jax.custom_jvp
def _tanh(v: jax.Array) -> jax.Array:
    return jnp.tanh(v)


@_tanh.defjvp
def _tanh_jvp(primals, tangents):
    # By hand because 1 − tanh² is rounding on a saturated ridge; sech² as a quotient is exact.
    (v,), (v_dot,) = primals, tangents
    E = jnp.exp(-2 * jnp.abs(v))
    return _tanh(v), 4 * E / (1 + E) ** 2 * v_dot


def divergence(v: jax.Array, h: jax.Array) -> jax.Array:
    """log cosh(v + h) − log cosh(v) − h tanh(v), elementwise.

    It is the cumulant generating function of a Bernoulli variable less its mean,

        log(1 − S + S e^κ) − Sκ,   S = σ(−2|v|) ≤ ½,   κ = −2h sign(v),

    which for small κ is S(e^κ − 1 − κ) − φ(S(e^κ − 1)) with φ(x) = x − log(1 + x): a difference
    that never cancels more than two thirds, because S ≤ ½.
    """
    a = 2 * jnp.abs(v)
    E = jnp.exp(-a)
    inverse = 1 / (1 + E)
    S = E * inverse
    kappa = jnp.where(v > 0, -2 * h, 2 * h)
    small, moderate = jnp.abs(kappa) < SMALL, kappa < 60.0
    k = jnp.where(small, kappa, 0.0)
    excess = _expm1_minus(k)
    near = S * excess - _minus_log1p(S * (k + excess))
    # where S e^κ may overflow, log(1 − S + S e^κ) = log(1 + e^c) − log(1 + E) with c = κ − a
    c = kappa - a
    power = jnp.exp(jnp.where(moderate, kappa, -jnp.abs(c)))
    grown = jnp.where(moderate, S * (power - 1), (power - E) * inverse)
    far = jnp.where(moderate, 0.0, jnp.maximum(c, 0.0)) + jnp.log1p(grown) - S * kappa
    return jnp.where(small, near, far)


def _expm1_minus(x: jax.Array) -> jax.Array:
    """eˣ − 1 − x for |x| < 1, by its series."""
    series = jnp.ones_like(x)
    for k in range(_terms(x, single=10, double=18), 2, -1):
        series = 1 + series * x * (1 / k)
    return series * x**2 / 2


def _minus_log1p(x: jax.Array) -> jax.Array:
    """φ(x) = x − log(1 + x) for −0.32 < x < 0.86.

    With s = x/(2 + x), log(1 + x) = 2 artanh s and x − 2s = xs, hence
    φ = xs − 2(s³/3 + s⁵/5 + …).
    """
    s = x / (2 + x)
    square = s**2
    series = jnp.zeros_like(x)
    for k in range(_terms(x, single=13, double=29), 1, -2):
        series = (series + 1 / k) * square
    return s * (x - 2 * series)


def _terms(x: jax.Array, *, single: int, double: int) -> int:
    """How far a series goes until its next term is below the rounding of x."""
    return double if x.dtype == jnp.float64 else single
