"""log cosh and its Bregman divergence, accurate at every scale.

>>> import jax.numpy as jnp
>>> divergence(jnp.array([0.0]), jnp.array([1e-4]))    # ½ h² for small h
Array([5.000e-09], dtype=float32)
"""

import math

import jax
import jax.numpy as jnp


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
    # By hand because 1 − tanh² is rounding on a saturated ridge; sech² as a product is exact.
    (v,), (v_dot,) = primals, tangents
    return _tanh(v), 4 * jax.nn.sigmoid(2 * v) * jax.nn.sigmoid(-2 * v) * v_dot


def divergence(v: jax.Array, h: jax.Array) -> jax.Array:
    """log cosh(v + h) − log cosh(v) − h tanh(v), elementwise.

    It is the cumulant generating function of a Bernoulli variable less its mean,

        log(1 − S + S e^κ) − Sκ,   S = σ(−2|v|) ≤ ½,   κ = −2h sign(v),

    which for small κ is S(e^κ − 1 − κ) − φ(S(e^κ − 1)) with φ(x) = x − log(1 + x): a difference
    that never cancels more than half, because S ≤ ½.
    """
    S = jax.nn.sigmoid(-2 * jnp.abs(v))
    kappa = jnp.where(v > 0, -2 * h, 2 * h)
    small = jnp.abs(kappa) < 0.5
    k = jnp.where(small, kappa, 0.0)
    near = S * _expm1_minus(k) - _minus_log1p(S * jnp.expm1(k))

    capped = jnp.clip(kappa, -60.0, 60.0)  # beyond, S e^κ may overflow and e^{−κ} is gone
    moderate = jnp.log1p(S * jnp.expm1(capped))
    log_S = -jax.nn.softplus(2 * jnp.abs(v))
    far = jnp.where(kappa < 60.0, moderate, jax.nn.softplus(log_S + kappa)) - S * kappa
    return jnp.where(small, near, far)


def _expm1_minus(x: jax.Array) -> jax.Array:
    """eˣ − 1 − x for |x| < ½, by its series."""
    series = jnp.ones_like(x)
    for k in range(14, 2, -1):
        series = 1 + series * x / k
    return series * x**2 / 2


def _minus_log1p(x: jax.Array) -> jax.Array:
    """φ(x) = x − log(1 + x) for −0.2 < x < 0.33.

    With s = x/(2 + x), log(1 + x) = 2 artanh s and x − 2s = xs, hence
    φ = xs − 2(s³/3 + s⁵/5 + …).
    """
    s = x / (2 + x)
    series = jnp.zeros_like(x)
    for k in range(19, 1, -2):
        series = (series + 1 / k) * s**2
    return s * (x - 2 * series)
