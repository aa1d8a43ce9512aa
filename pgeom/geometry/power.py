"""The Bregman divergence of the powers, x ↦ (x^α − x)/(α − 1), accurate at every scale.

    D_α(q, p) = [q^α − p^α − α p^{α−1}(q − p)]/(α − 1)

It is the contribution of one class to the divergence of the Tsallis entropy; at α = 1, where
x ↦ x log x, to that of Shannon's. As written, the formula cancels where p is close to q and where
α is close to 1. With L = log(q/p), β = α − 1 and R(x) = (eˣ − 1)/x it is

    p^α Σ_{n≥2} α(1 + α + … + α^{n−2}) Lⁿ/n!        for small |L|, all terms of one sign for q > p
    q^α [L R(−βL) − e^{−βL}(1 − e^{−L})]            for p < q and α ≥ 1
    q^α [α L R(−βL) − (1 − e^{−αL})]                for p < q and α < 1
    p^α [e^L L R(βL) − (e^L − 1)]                   for p > q
    p^α [(1 − e^{αL}) − α(1 − e^L)]/(1 − α)         for p > q and α < ½

>>> import jax.numpy as jnp
>>> q, p = jnp.array([1.0]), jnp.array([0.999])
>>> divergence(q, q - p, jnp.log(p), 1.0)    # −log 0.999 − 0.001
Array([5.003e-07], dtype=float32)
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from pgeom.geometry.derivatives import sum_of_slopes
from pgeom.geometry.tempered_exponential import expm1, expm1_ratio

NEAR = 0.5  # |1 − p/q| below which log(q/p) is computed from the difference


@jax.custom_jvp
def divergence(
    q: Float[Array, "*shape"],
    d: Float[Array, "*shape"],
    log_p: Float[Array, "*shape"],
    alpha: ArrayLike,
) -> Float[Array, "*shape"]:
    """D_α(q, p), elementwise.

    Args:
      q: ≥ 0.
      d: q − p, which the caller may know more accurately than the difference.
      log_p: log p; −∞ where p is zero, and finite where p has underflowed.
      alpha: α > 0, a scalar.

    Returns:
      The divergence; where α < 1 and p is so small that p^{α−1} comes close to overflow, that of
      the smallest p for which it does not.
    """
    return _value(q, d, log_p, jnp.broadcast_to(jnp.asarray(alpha, q.dtype), q.shape))


@partial(divergence.defjvp, symbolic_zeros=True)
def _divergence_jvp(primals, tangents):
    # By hand because the other terms of the slope in p cancel in exact arithmetic only: it is
    # −α p^{α−2} d. d moves with q and p and has no slope of its own.
    (q, d, log_p, alpha), (q_dot, _, log_p_dot, alpha_dot) = primals, tangents
    wide = jnp.broadcast_to(jnp.asarray(alpha, q.dtype), q.shape)
    out, floored = divergence(q, d, log_p, alpha), _floored(log_p)
    L = _log_ratio(jnp.where(q > 0, q, jnp.finfo(q.dtype).tiny), d, floored, wide)
    capped = _capped(floored, wide)
    power = jnp.exp((wide - 1) * capped)  # p^{α−1}

    def slope_in_log_p(dot):
        return jnp.where(q > 0, -wide * power * d, wide * jnp.exp(wide * floored)) * dot

    def slope_in_q(dot):
        # α(q^β − p^β)/β, from the larger power: the ratio to the smaller one may overflow
        x = (wide - 1) * L
        larger = jnp.exp((wide - 1) * capped + jnp.maximum(x, 0.0))
        return wide * larger * L * expm1_ratio(-jnp.abs(x)) * dot

    def slope_in_alpha(dot):
        dots = jnp.broadcast_to(jnp.asarray(dot, q.dtype), q.shape)
        return jax.jvp(lambda a: _value(q, d, log_p, a), (wide,), (dots,))[1]

    return out, sum_of_slopes(
        out,
        (log_p_dot, slope_in_log_p),
        (q_dot, slope_in_q),
        (alpha_dot, slope_in_alpha),
    )


def _value(q, d, log_p, alpha):
    absent = q <= 0
    present = jnp.where(absent, 1.0, q)
    L = _log_ratio(present, d, _floored(log_p), alpha)
    small = jnp.abs(L) * jnp.maximum(alpha, 1.0) < 1
    above = L >= 0  # q ≥ p
    # a second where, so that no derivative sees the branch that is not taken
    S, beta = jnp.where(small, 1.0, jnp.abs(L)), alpha - 1
    R, E = expm1_ratio(-beta * S), expm1(-S)
    tall = jnp.where(alpha < 1, alpha * S * R + expm1(-alpha * S), S * R + (1 - beta * S * R) * E)
    low = -jnp.exp(-S) * S * R - E  # 1 + E would have lost e^{−S}
    slight = jnp.minimum(alpha, 0.5)
    low = jnp.where(alpha < 0.5, (slight * E - expm1(-slight * S)) / (1 - slight), low)
    far = jnp.where(above, tall, low)
    near = _series(jnp.where(small, L, 0.0), alpha)
    log_scale = jnp.where(above & ~small, jnp.log(present), jnp.where(absent, 0.0, log_p))
    value = jnp.exp(alpha * log_scale) * jnp.where(small, near, far)
    mass = jnp.where(log_p == -jnp.inf, 0.0, jnp.exp(alpha * _floored(log_p)))  # p^α
    return jnp.where(absent, mass, value)


def _series(L, alpha):
    """Σ_{n≥2} α(1 + α + … + α^{n−2}) Lⁿ/n!, for |L| max(1, α) < 1."""
    last = 20 if L.dtype == jnp.float64 else 13
    total, sums, term = jnp.zeros_like(L), jnp.ones_like(L), L**2 / 2
    for n in range(2, last + 1):
        total = total + sums * term
        sums, term = 1 + alpha * sums, term * L / (n + 1)
    return alpha * total


def _log_ratio(q, d, log_p, alpha):
    """log(q/p), computed from the difference where the two are close."""
    ratio = d / q
    near = jnp.abs(ratio) < NEAR
    close = -jnp.log1p(-jnp.where(near, ratio, 0.0))
    return jnp.where(near, close, jnp.log(q) - _capped(log_p, alpha))


def _floored(log_p):
    """log p, with the smallest normal number in place of an exact zero."""
    return jnp.where(log_p == -jnp.inf, jnp.log(jnp.finfo(log_p.dtype).tiny), log_p)


def _capped(log_p, alpha):
    """log p, but no lower than where the divergence nears overflow; the bound counts as a constant.

    For α < 1 it grows like p^{α−1} max(α/(1 − α), 1): up to the largest number over e³.
    """
    beta = jnp.maximum(1 - alpha, 1e-6)
    room = jnp.log(jnp.finfo(log_p.dtype).max) - 3 - jnp.log(jnp.maximum(alpha / beta, 1.0))
    return log_p + jax.lax.stop_gradient(jnp.maximum(-room / beta - log_p, 0.0))
