"""Temperature scaling, fitted to full convergence.

In the inverse temperature b the validation NLL is convex, so its derivative has one sign change at
most and bisection cannot stop early, as line-search recipes do. When the best temperature is 0 (a
perfectly separated validation set) or ∞ (logits no better than none) the bound is returned, and
the result says so.

>>> import jax.numpy as jnp
>>> from pgeom.evaluation import calibration
>>> logits = 6.0 * jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
>>> labels = jnp.array([0, 0, 1, 0])  # three of four are right: log(3) is the calibrated logit
>>> fit = calibration.fit_temperature(logits, labels)
>>> round(float(fit.temperature * jnp.log(3.0)), 4), bool(fit.at_bound)
(6.0, False)
>>> calibration.rescale(logits, fit.temperature).shape
(4, 2)
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from pgeom.evaluation.batch import align

# Bounds of log T once the mean range of the logits is 1. Colder than the first, every softmax is
# one-hot; hotter than the second, float32 cannot tell the slope of the NLL from its value at T = ∞.
_COLDEST, _HOTTEST = -16.0, 12.0


class Temperature(NamedTuple):
    """Fitted temperature [...] and whether it is a bound rather than a minimum [...] bool."""

    temperature: jax.Array
    at_bound: jax.Array


def fit_temperature(logits, labels):
    """Temperature that minimises the NLL of scaled logits.

    argmin_T −(1/n) Σ_i log softmax(z_i / T)_{y_i}

    Logits that are equal within every example have no best temperature: 1 is returned. Logits that
    are not finite, as of a diverged run, give NaN.

    Args:
      logits: [..., n, K], of the validation set.
      labels: [..., n] integers.

    Returns:
      The `Temperature`, one for each leading index.
    """
    scores, labels, dtype = align(logits, labels)
    spread = jnp.mean(jnp.max(scores, axis=-1) - jnp.min(scores, axis=-1), axis=-1)
    unit = jnp.where(spread > 0, spread, 1.0)
    chosen = jnp.take_along_axis(scores, labels[..., None], axis=-1)
    log_t, at_bound = _bisect((scores - chosen) / unit[..., None, None])
    temperature = jnp.where(spread > 0, unit * jnp.exp(log_t), 1.0)
    finite = jnp.isfinite(spread)
    temperature = jnp.where(finite, temperature, jnp.nan)
    return Temperature(temperature.astype(dtype), at_bound & finite & (spread > 0))


def rescale(logits, temperature):
    """Logits at a temperature.

    z / T

    Args:
      logits: [..., n, K].
      temperature: [...], positive.

    Returns:
      [..., n, K].
    """
    return logits / jnp.asarray(temperature)[..., None, None]


def _slope(gaps, log_t):
    """Derivative of the NLL in b = 1/T, from the gaps z_k − z_y [..., n, K].

    d/db NLL = (1/n) Σ_i Σ_k softmax(b z_i)_k (z_ik − z_iy)

    Written out, since it is needed to the last sign: where every label leads, each term is ≤ 0 even
    when it underflows, while autodiff would subtract two rounded means.
    """
    p = jax.nn.softmax(gaps * jnp.exp(-log_t)[..., None, None], axis=-1)
    return jnp.mean(jnp.sum(p * gaps, axis=-1), axis=-1)


class _Bracket(NamedTuple):
    """Gaps [..., n, K], and the log temperatures [...] between which their slope changes sign."""

    gaps: jax.Array
    cold: jax.Array
    hot: jax.Array


def _halve(_, bracket):
    gaps, cold, hot = bracket
    middle = (cold + hot) / 2
    too_cold = _slope(gaps, middle) > 0
    return _Bracket(gaps, jnp.where(too_cold, middle, cold), jnp.where(too_cold, hot, middle))


def _bisect(gaps):
    """Root in log T of the slope, which falls as T grows, and whether a bound stands in for it."""
    coldest = jnp.full(gaps.shape[:-2], _COLDEST, gaps.dtype)
    hottest = jnp.full(gaps.shape[:-2], _HOTTEST, gaps.dtype)
    separated = _slope(gaps, coldest) <= 0
    uninformative = _slope(gaps, hottest) >= 0
    # The bracket is less than 2⁵ wide: so many halvings exhaust the mantissa.
    steps = int(jnp.finfo(gaps.dtype).nmant) + 5
    _, cold, hot = jax.lax.fori_loop(0, steps, _halve, _Bracket(gaps, coldest, hottest))
    root = (cold + hot) / 2
    log_t = jnp.where(separated, coldest, jnp.where(uninformative, hottest, root))
    return log_t, separated | uninformative
