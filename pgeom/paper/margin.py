"""The smoothed probability margin, its bounded penalty and their exact ranges, Theorem (apms).

>>> import jax.numpy as jnp
>>> low, high = margin_range(3, tau=0.1)
>>> bool(low <= smooth_margin(jnp.array([0.5, 0.3, 0.2]), jnp.array(0), tau=0.1) <= high)
True
"""

import math
import warnings

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from pgeom import checks
from pgeom.simplex import argmax_mask
from pgeom.types import Labels, Values, Vectors


def smooth_margin(p: Vectors, y: Labels, *, tau: ArrayLike) -> Values:
    """m_τ(p, y) = p_y − τ log Σ_{j≠y} exp(p_j/τ).

    Args:
      p: `[..., K]`.
      y: labels, `[...]`.
      tau: τ > 0.

    Returns:
      `[...]`.
    """
    checks.check_positive("tau", tau)

    def example(p, label):
        _warn_if_never_positive(p.shape[-1], tau)
        mine = jnp.arange(p.shape[-1]) == label
        competitors = jax.nn.logsumexp(jnp.where(mine, -jnp.inf, p / tau))
        return jnp.sum(jnp.where(mine, p, 0.0)) - tau * competitors

    return checks.lift_examples(example, name="p")(p, y)


def margin_range(K: int, *, tau: ArrayLike) -> tuple[Values, Values]:
    """The exact (lowest, highest) smoothed margin over the simplex, Eq. (margin-minimum).

    m_min = −1 − τ log(1 + (K − 2)e^{−1/τ}) at a wrong vertex, written so that e^{1/τ} cannot
    overflow; m_max = 1 − τ log(K − 1) at the right one.
    """
    checks.check_num_classes(K)
    checks.check_positive("tau", tau)
    _warn_if_never_positive(K, tau)
    return -1 - jnp.log1p((K - 2) * jnp.exp(-1 / tau)) * tau, 1 - jnp.log(K - 1.0) * tau


def penalty(p: Vectors, y: Labels, *, tau: ArrayLike, kappa: ArrayLike, nu: ArrayLike) -> Values:
    """r(p, y) = ν softplus((κ − m_τ(p, y))/ν), convex in p, Eq. (apms-penalty).

    Args:
      p: `[..., K]`.
      y: labels, `[...]`.
      tau, kappa, nu: τ > 0, κ, ν > 0.

    Returns:
      `[...]`.
    """
    return _margin_penalty(smooth_margin(p, y, tau=tau), kappa, nu)


def expected_penalty(
    p: Vectors, eta: Vectors, *, tau: ArrayLike, kappa: ArrayLike, nu: ArrayLike
) -> Values:
    """E_{Y∼η} r(p, Y), convex in p."""
    checks.check_positive("tau", tau)

    def pair(p, eta):
        margins = p - tau * _log_sums_of_others(p / tau)
        return jnp.sum(eta * _margin_penalty(margins, kappa, nu))

    return checks.lift_pairs(jax.vmap(pair), ("p", "eta"))(p, eta)


def penalty_range(
    K: int, *, tau: ArrayLike, kappa: ArrayLike, nu: ArrayLike
) -> tuple[Values, Values]:
    """The exact (lowest, highest = C_r) penalty over the simplex, Eq. (penalty-bound)."""
    low, high = margin_range(K, tau=tau)
    return _margin_penalty(high, kappa, nu), _margin_penalty(low, kappa, nu)


def anneal(
    step: ArrayLike, *, beta0: ArrayLike, horizon: ArrayLike, power: ArrayLike = 1.0
) -> Values:
    """β_t = β₀ (1 − min(t/T_s, 1))^q, Eq. (apms-loss).

    Args:
      step: t, any shape.
      beta0, horizon, power: β₀ ≥ 0, T_s > 0, q > 0.
    """
    checks.check_nonnegative("beta0", beta0)
    checks.check_positive("horizon", horizon)
    checks.check_positive("power", power)
    left = 1 - jnp.minimum(jnp.asarray(step, float) / jnp.asarray(horizon, float), 1.0)
    return left**power * beta0


def _log_sums_of_others(x):
    """log Σ_{j≠y} exp(x_j) for every y, `[K]`.

    Subtracting e^{x_y} from the whole sum loses no digits as long as the largest term remains; the
    sum without the largest term is computed separately.
    """
    top = argmax_mask(x)
    largest = jnp.max(x)
    terms = jnp.exp(x - largest)
    without = largest + jnp.log(jnp.sum(terms) - jnp.where(top, 0.0, terms))
    return jnp.where(top, jax.nn.logsumexp(jnp.where(top, -jnp.inf, x)), without)


def _margin_penalty(m, kappa, nu):
    checks.check_positive("nu", nu)
    return nu * jax.nn.softplus((kappa - m) / nu)


def _warn_if_never_positive(K: int, tau) -> None:
    if (known := checks.concrete(tau)) is not None and known * math.log(K - 1) > 1:
        warnings.warn(
            f"tau = {float(known):g} exceeds 1/log(K − 1) for K = {K}: even a certain and correct "
            "prediction has a negative margin",
            stacklevel=2,
        )
