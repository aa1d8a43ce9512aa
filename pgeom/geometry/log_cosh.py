"""log cosh and its Bregman divergence, accurate at every scale.

>>> import jax.numpy as jnp
>>> divergence(jnp.array([0.0]), jnp.array([1e-4]))    # ½ h² for small h
Array([5.000e-09], dtype=float32)
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pgeom.geometry.derivatives import sum_of_slopes

SMALL = 0.5  # |κ| below which the divergence is computed by series
LARGE = 40.0  # κ above which e^κ is avoided


@jax.custom_jvp
def log_cosh(v: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """log cosh v, elementwise, without overflow."""
    return jnp.logaddexp(v, -v) - math.log(2)


@log_cosh.defjvp
def _log_cosh_jvp(primals, tangents):
    # By hand because autodiff of logaddexp computes two more exponentials than tanh.
    (v,), (v_dot,) = primals, tangents
    return log_cosh(v), _tanh(v) * v_dot


@jax.custom_jvp
def _tanh(v):
    return jnp.tanh(v)


@_tanh.defjvp
def _tanh_jvp(primals, tangents):
    # By hand because 1 − tanh² is all rounding on a saturated ridge; as a product, sech² is exact.
    (v,), (v_dot,) = primals, tangents
    S = _smaller_probability(v)
    return _tanh(v), 4 * S * (1 - S) * v_dot


def _smaller_probability(v):
    """S = σ(−2|v|) ≤ ½."""
    E = jnp.exp(-2 * jnp.abs(v))
    return E / (1 + E)


def divergence(v: Float[Array, "*#shape"], h: Float[Array, "*#shape"]) -> Float[Array, "*#shape"]:
    """log cosh(v + h) − log cosh(v) − h tanh(v), elementwise.

    It is the cumulant generating function of a Bernoulli variable less its mean,

        log(1 − S + S e^κ) − Sκ,   S = σ(−2|v|) ≤ ½,   κ = −2h sign(v),

    which for small κ is S(e^κ − 1 − κ) − φ(S(e^κ − 1)) with φ(x) = x − log(1 + x): a difference
    that never cancels more than half, because S ≤ ½.
    """
    S = _smaller_probability(v)
    kappa = jnp.where(v >= 0, -2 * h, 2 * h)  # the same sign at v = 0 as the slope of |v| there
    small, moderate = jnp.abs(kappa) < SMALL, kappa < LARGE
    k = jnp.where(small, kappa, 0.0)
    excess = _expm1_minus(k)
    near = S * excess - minus_log1p(S * (k + excess))
    # where e^κ or, in derivatives, its square may overflow:
    # log(1 − S + S e^κ) = log(1 + e^c) + log(1 − S) with c = κ − 2|v|
    c = kappa - 2 * jnp.abs(v)
    beyond = jnp.maximum(c, 0.0)
    power = jnp.exp(jnp.where(moderate, kappa, c - 2 * beyond))
    grown = jnp.where(moderate, S * (power - 1), power * (1 - S) - S)
    far = jnp.where(moderate, 0.0, beyond) + jnp.log1p(grown) - S * kappa
    return jnp.where(small, near, far)


@jax.custom_jvp
def divergence_to(m: Float[Array, "*shape"], h: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The divergence from v = m − h to m, elementwise. Its slope in h is h sech² v."""
    return divergence(m - h, h)


@partial(divergence_to.defjvp, symbolic_zeros=True)
def _divergence_to_jvp(primals, tangents):
    # By hand because the other terms of the slope in h cancel in exact arithmetic only.
    (m, h), (m_dot, h_dot) = primals, tangents
    out = divergence_to(m, h)

    def slope_in_h(dot):
        S = _smaller_probability(m - h)
        return 4 * S * (1 - S) * h * dot

    def slope_in_m(dot):
        return jax.jvp(lambda v: divergence(v, h), (m - h,), (dot,))[1]

    return out, sum_of_slopes(out, (h_dot, slope_in_h), (m_dot, slope_in_m))


def _expm1_minus(x):
    """eˣ − 1 − x for |x| < ½, by its series."""
    return x**2 * _polynomial(x, [1 / math.factorial(k) for k in range(2, _last(x, 8, 14) + 1)])


def minus_log1p(x):
    """φ(x) = x − log(1 + x) for −0.2 < x < 0.33, by its series."""
    return x**2 * _polynomial(-x, [1 / k for k in range(2, _last(x, 14, 32) + 1)])


def _polynomial(x, coefficients: list[float]):
    """c₀ + c₁x + c₂x² + …, by Horner's rule."""
    total = jnp.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _last(x, single: int, double: int) -> int:
    """The last exponent of a series whose next term is below the rounding of x."""
    return double if x.dtype == jnp.float64 else single
