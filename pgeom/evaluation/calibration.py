"""Temperature scaling, fitted to full convergence.

In the inverse temperature b the validation NLL is convex, so its derivative changes sign at most
once and bisection cannot stop early, as line searches do. When the best temperature is 0 (a
perfectly separated validation set) or ∞ (uninformative logits) the bound is returned, and the
result says so.

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
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from pgeom.evaluation.batch import Values, align
from pgeom.types import AnyArray

# Bounds of log T once the mean range of the logits is 1. Colder than the first, every softmax is
# one-hot; hotter than the second, float32 cannot tell the slope of the NLL from its value at T = ∞.
_COLDEST, _HOTTEST = -16.0, 12.0


class Temperature(NamedTuple):
    """A fitted temperature.

    Attributes:
      temperature: `[...]`.
      at_bound: whether it is a bound of the search rather than a minimum, `[...]`.
    """

    temperature: Float[Array, "*runs"]
    at_bound: Bool[Array, "*runs"]


def fit_temperature(logits: Values, labels: Values) -> Temperature:
    """The temperature that minimises the NLL of scaled logits.

    argmin_T −(1/n) Σ_i log softmax(z_i / T)_{y_i}

    Logits that are equal within every example have no best temperature: 1 is returned. Logits that
    are not finite, such as those of a diverged run, give NaN.

    Args:
      logits: those of the validation set, `[..., n, K]`.
      labels: integers, `[..., n]`.

    Returns:
      The `Temperature`, one per leading index.
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


def rescale(
    logits: Float[AnyArray, "*runs n K"], temperature: ArrayLike
) -> Float[Array, "*runs n K"]:
    """The logits at a temperature, z / T.

    Args:
      logits: `[..., n, K]`.
      temperature: positive, `[...]`.

    Returns:
      `[..., n, K]`.
    """
    return jnp.asarray(logits) / jnp.asarray(temperature)[..., None, None]


def _slope(gaps: Float[Array, "*runs n K"], log_t: Float[Array, "*runs"]) -> Float[Array, "*runs"]:
    """The derivative of the NLL in b = 1/T, from the gaps z_k − z_y.

    d/db NLL = (1/n) Σ_i Σ_k softmax(b z_i)_k (z_ik − z_iy)

    Written out, because its sign must be exact: where every label has the largest logit, each term
    is ≤ 0 even when it underflows, while autodiff would subtract two rounded means.
    """
    p = jax.nn.softmax(gaps * jnp.exp(-log_t)[..., None, None], axis=-1)
    return jnp.mean(jnp.sum(p * gaps, axis=-1), axis=-1)


class _Bracket(NamedTuple):
    """Gaps, and the log temperatures between which their slope changes sign."""

    gaps: Float[Array, "*runs n K"]
    cold: Float[Array, "*runs"]
    hot: Float[Array, "*runs"]


def _halve(_: ArrayLike, bracket: _Bracket) -> _Bracket:
    gaps, cold, hot = bracket
    middle = (cold + hot) / 2
    too_cold = _slope(gaps, middle) > 0
    return _Bracket(gaps, jnp.where(too_cold, middle, cold), jnp.where(too_cold, hot, middle))


def _bisect(
    gaps: Float[Array, "*runs n K"],
) -> tuple[Float[Array, "*runs"], Bool[Array, "*runs"]]:
    """The root in log T of the slope, which falls as T grows, and whether it is a bound instead."""
    coldest = jnp.full(gaps.shape[:-2], _COLDEST, gaps.dtype)
    hottest = jnp.full(gaps.shape[:-2], _HOTTEST, gaps.dtype)
    separated = _slope(gaps, coldest) <= 0
    uninformative = _slope(gaps, hottest) >= 0
    # The bracket is less than 2⁵ wide: this many halvings exhaust the mantissa.
    steps = int(jnp.finfo(gaps.dtype).nmant) + 5
    _, cold, hot = jax.lax.fori_loop(0, steps, _halve, _Bracket(gaps, coldest, hottest))
    root = (cold + hot) / 2
    log_t = jnp.where(separated, coldest, jnp.where(uninformative, hottest, root))
    return log_t, separated | uninformative
