"""Special functions, accurate at every scale: log cosh, powers, tempered logarithms.

>>> import jax.numpy as jnp
>>> log_cosh_divergence(jnp.array([0.0]), jnp.array([1e-4]))    # ½ h² for small h
Array([5.000e-09], dtype=float32)
>>> q, p = jnp.array([1.0]), jnp.array([0.999])
>>> power_divergence(q, q - p, jnp.log(p), 1.0)    # −log 0.999 − 0.001
Array([5.003e-07], dtype=float32)
"""

import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from pgeom.derivatives import derivative_of
from pgeom.types import Entries, Number

SMALL = 0.5  # |κ| below which the divergence of log cosh is computed by series
LARGE = 40.0  # κ above which e^κ is avoided
CLOSE = 0.5  # |1 − p/q| below which log(q/p) is computed from the difference


# exponentials and their series -------------------------------------------------------------------


@jax.custom_jvp
def sigmoid(u: Entries) -> Entries:
    """σ(u) = 1/(1 + e^{−u}), elementwise."""
    return jax.nn.sigmoid(u)


# By hand because JAX computes σ(1 − σ), where 1 − σ is all rounding for u ≫ 0.
sigmoid.defjvps(lambda dot, out, u: out * sigmoid(-u) * dot)


@jax.custom_jvp
def softplus(u: Entries) -> Entries:
    """log(1 + eᵘ), elementwise."""
    return jax.nn.softplus(u)


# By hand because the second derivative is σ(u)σ(−u), as above.
softplus.defjvps(lambda dot, out, u: sigmoid(u) * dot)


@jax.custom_jvp
def expm1(x: Entries) -> Entries:
    """eˣ − 1."""
    return jnp.expm1(x)


# By hand because JAX computes the derivative as expm1(x) + 1, which is all rounding for x ≪ 0.
expm1.defjvps(lambda dot, out, x: jnp.exp(x) * dot)


def expm1_ratio(x: Entries) -> Entries:
    """(eˣ − 1)/x, smooth through 0."""
    small = jnp.abs(x) < 0.5
    series = jnp.ones_like(x)
    for k in range(16, 1, -1):  # Σ xⁿ/(n+1)!, to float64 precision on |x| < 1/2
        series = 1 + series * x / k
    safe = jnp.where(small, 1.0, x)  # the second where, so that no gradient sees 0/0
    return jnp.where(small, series, expm1(safe) / safe)


def minus_log1p(x: Entries) -> Entries:
    """φ(x) = x − log(1 + x) for −0.2 < x < 0.33, by its series."""
    return x**2 * _polynomial(-x, [1 / k for k in range(2, _last(x, 14, 32) + 1)])


def _expm1_minus(x):
    """eˣ − 1 − x for |x| < ½, by its series."""
    return x**2 * _polynomial(x, [1 / math.factorial(k) for k in range(2, _last(x, 8, 14) + 1)])


def _polynomial(x, coefficients: list[float]):
    """c₀ + c₁x + c₂x² + …, by Horner's rule."""
    total = jnp.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _last(x, single: int, double: int) -> int:
    """The last exponent of a series whose next term is below the rounding of x."""
    return double if x.dtype == jnp.float64 else single


# log cosh ----------------------------------------------------------------------------------------


@jax.custom_jvp
def log_cosh(v: Entries) -> Entries:
    """log cosh v, elementwise, without overflow."""
    return jnp.logaddexp(v, -v) - math.log(2)


@jax.custom_jvp
def _tanh(v):
    return jnp.tanh(v)


def _sech2(v):
    S = _smaller_probability(v)
    return 4 * S * (1 - S)


def _smaller_probability(v):
    """S = σ(−2|v|) ≤ ½."""
    E = jnp.exp(-2 * jnp.abs(v))
    return E / (1 + E)


# By hand because autodiff of logaddexp computes two more exponentials than tanh.
log_cosh.defjvps(lambda dot, out, v: _tanh(v) * dot)
# By hand because 1 − tanh² is all rounding on a saturated ridge; as a product, sech² is exact.
_tanh.defjvps(lambda dot, out, v: _sech2(v) * dot)


def log_cosh_divergence(
    v: Float[Array, "*#shape"], h: Float[Array, "*#shape"]
) -> Float[Array, "*#shape"]:
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
def log_cosh_divergence_to(m: Entries, h: Entries) -> Entries:
    """The divergence from v = m − h to m, elementwise. Its slope in h is h sech² v."""
    return log_cosh_divergence(m - h, h)


@derivative_of(log_cosh_divergence_to)
def _log_cosh_divergence_to_rules(out, m, h):
    # By hand because the other terms of the slope in h cancel in exact arithmetic only.
    def rule_of_m(dot):
        return jax.jvp(lambda v: log_cosh_divergence(v, h), (m - h,), (dot,))[1]

    return rule_of_m, lambda dot: _sech2(m - h) * h * dot


# powers ------------------------------------------------------------------------------------------


@jax.custom_jvp
def power_divergence(
    q: Entries,
    d: Entries,
    log_p: Entries,
    alpha: ArrayLike,
) -> Entries:
    """The Bregman divergence of the powers, x ↦ (x^α − x)/(α − 1), elementwise.

        D_α(q, p) = [q^α − p^α − α p^{α−1}(q − p)]/(α − 1)

    It is the contribution of one class to the divergence of the Tsallis entropy; at α = 1, where
    x ↦ x log x, to that of Shannon's. As written, the formula cancels where p is close to q and
    where α is close to 1. With L = log(q/p), β = α − 1 and R(x) = (eˣ − 1)/x it is

        p^α Σ_{n≥2} α(1 + α + … + α^{n−2}) Lⁿ/n!     for small |L|, all terms of one sign for q > p
        q^α [L R(−βL) − e^{−βL}(1 − e^{−L})]         for p < q and α ≥ 1
        q^α [α L R(−βL) − (1 − e^{−αL})]             for p < q and α < 1
        p^α [e^L L R(βL) − (e^L − 1)]                for p > q
        p^α [(1 − e^{αL}) − α(1 − e^L)]/(1 − α)      for p > q and α < ½

    Args:
      q: ≥ 0.
      d: q − p, which the caller may know more accurately than the difference.
      log_p: log p; −∞ where p is zero, and finite where p has underflowed.
      alpha: α > 0, a scalar.

    Returns:
      The divergence; where α < 1 and p is so small that p^{α−1} comes close to overflow, that of
      the smallest p for which it does not.
    """
    return _power_divergence(q, d, log_p, jnp.broadcast_to(jnp.asarray(alpha, q.dtype), q.shape))


@derivative_of(power_divergence)
def _power_divergence_rules(out, q, d, log_p, alpha):
    # By hand because the other terms of the slope in p cancel in exact arithmetic only: it is
    # −α p^{α−2} d. d moves with q and p and has no slope of its own.
    wide, floored = jnp.broadcast_to(jnp.asarray(alpha, q.dtype), q.shape), _floored(log_p)
    L = _log_ratio(jnp.where(q > 0, q, jnp.finfo(q.dtype).tiny), d, floored, wide)
    capped = _capped(floored, wide)

    def rule_of_q(dot):
        # α(q^β − p^β)/β, from the larger power: the ratio to the smaller one may overflow
        x = (wide - 1) * L
        larger = jnp.exp((wide - 1) * capped + jnp.maximum(x, 0.0))
        return wide * larger * L * expm1_ratio(-jnp.abs(x)) * dot

    def rule_of_log_p(dot):
        power = jnp.exp((wide - 1) * capped)  # p^{α−1}
        return jnp.where(q > 0, -wide * power * d, wide * jnp.exp(wide * floored)) * dot

    def rule_of_alpha(dot):
        dots = jnp.broadcast_to(jnp.asarray(dot, q.dtype), q.shape)
        return jax.jvp(lambda a: _power_divergence(q, d, log_p, a), (wide,), (dots,))[1]

    return rule_of_q, None, rule_of_log_p, rule_of_alpha


def _power_divergence(q, d, log_p, alpha):
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
    near = jnp.abs(ratio) < CLOSE
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


# tempered logarithm and exponential, with their ordinary namesakes as exact limits ---------------


@jax.custom_jvp
def tempered_log(x: Entries, t: Float[Array, "..."]) -> Entries:
    """log_t(x) = (x^{1−t} − 1)/(1 − t) for x > 0, smooth in x and in t, through t = 1 too."""
    return _tempered_log(x, t)


@derivative_of(tempered_log)
def _tempered_log_rules(out, x, t):
    # By hand because x^{−t} is right at x = 0 as well, where the chain rule through log x is 0·∞.
    # The slope in t is that next to zero, for the same reason.
    def rule_of_t(dot):
        above = jnp.maximum(x, jnp.finfo(x.dtype).tiny)
        return jax.jvp(lambda t: _tempered_log(above, t), (t,), (dot,))[1]

    return lambda dot: x ** (-t) * dot, rule_of_t


def _tempered_log(x, t):
    log_x, s = jnp.log(x), 1 - t
    near_one = jnp.abs(s) < 1e-2
    safe = jnp.where(near_one, 1.0, s)  # the second where, so that no gradient sees 0/0
    return jnp.where(near_one, log_x * expm1_ratio(s * log_x), expm1(safe * log_x) / safe)


def log_tempered_exp(x: Entries, t: Number) -> Entries:
    """log exp_t(x) = log1p((1 − t)x)/(1 − t), and −∞ outside the support: the inverse of log_t."""
    if t == 1:
        return x
    inside = ~(1 + (1 - t) * x <= 0)  # NaN stays NaN
    safe = jnp.where(inside, x, 0.0)  # the second where, so that no gradient sees log of ≤ 0
    return jnp.where(inside, jnp.log1p((1 - t) * safe) / (1 - t), -jnp.inf)
