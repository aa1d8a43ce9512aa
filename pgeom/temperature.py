"""Temperature scaling: the temperature of logits that minimises their NLL, found by bisection.

In the inverse temperature b the NLL is convex, so its derivative changes sign at most once and
bisection cannot stop early, as line searches do. Where every label has the largest logit, the NLL
alone falls for ever: one pseudo-example of a uniform label keeps the minimum finite, and the
problem convex.

>>> import jax.numpy as jnp
>>> logits = jnp.array([[4.0, 0.0, 0.0]] * 9)  # nine of nine are right
>>> fit = fit_temperature(logits, jnp.zeros(9, int))
>>> round(float(jax.nn.softmax(logits[0] / fit.temperature)[0]), 4)  # (9 + 1/3) / 10
0.9333
>>> bool(fit_temperature(logits, jnp.zeros(9, int), prior=0.0).at_bound)
True
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

# Bounds of log T once the mean range of the logits is 1. Colder than the first, every softmax is
# one-hot; hotter than the second, float32 cannot tell the slope of the NLL from its value at T = ∞.
COLDEST, HOTTEST = -16.0, 12.0


class Temperature(NamedTuple):
    """A fitted temperature.

    Attributes:
      temperature: `[...]`.
      at_bound: whether it is a bound of the search rather than a minimum, `[...]`.
    """

    temperature: Float[Array, "*runs"]
    at_bound: Bool[Array, "*runs"]


@partial(jax.jit, inline=True)  # or the loop would be compiled at every call
def fit_temperature(
    logits: Float[Array, "*runs n K"],
    labels: Int[Array, "*runs n"],
    *,
    prior: ArrayLike = 1.0,
    weights: Float[Array, "*runs n"] | None = None,
) -> Temperature:
    """argmin_T −Σ_i w_i log softmax(z_i / T)_{y_i} − prior · (1/K) Σ_k log softmax(m e_1 / T)_k

    The pseudo-example has the logits m e_1 = (m, 0, …, 0), m being the median range of the logits
    of an example, and every label with a share of 1/K. It is the usual mixture of n/(n+1) of the
    data and 1/(n+1) of the uniform forecast: if all examples have the range m and `right` of them
    are right, the forecast is (right + 1/K)/(n + 1). Mixing the forecasts instead of the data would
    leave a problem with several minima.

    Args:
      logits: of n examples.
      labels: theirs.
      prior: how many examples the pseudo-example counts for; 0 minimises the NLL alone.
      weights: how many examples each one counts for; one by default.

    Returns:
      The `Temperature`: 1 where the logits of every example are equal, NaN where one is not finite.
    """
    prior = jnp.asarray(prior, logits.dtype)
    weights = jnp.ones_like(logits[..., 0]) if weights is None else weights
    ranges = jnp.max(logits, axis=-1) - jnp.min(logits, axis=-1)
    spread = jnp.mean(ranges, axis=-1)
    unit = jnp.where(spread > 0, spread, 1.0)
    typical = jnp.nanmedian(jnp.where((ranges > 0) & (weights > 0), ranges, jnp.nan), axis=-1)
    chosen = jnp.take_along_axis(logits, labels[..., None], axis=-1)
    gaps = (logits - chosen) / unit[..., None, None]  # z_k − z_y
    margin, K = typical / unit, logits.shape[-1]  # m

    def slope(log_t):
        """The derivative of the objective in b = 1/T.

        Σ_i w_i Σ_k softmax(b z_i)_k (z_ik − z_iy) + prior · m (softmax(b m e_1)_1 − 1/K)

        Written out, because its sign must be exact: where every label has the largest logit, each
        term of the data is ≤ 0 even when it underflows, while autodiff would subtract two rounded
        means.
        """
        b = jnp.exp(-log_t)
        p = jax.nn.softmax(gaps * b[..., None, None], axis=-1)
        data = jnp.sum(weights * jnp.sum(p * gaps, axis=-1), axis=-1)
        other = jnp.exp(-b * margin)
        pull = margin * (1 - 1 / K) * (1 - other) / (1 + (K - 1) * other)
        # Without a prior nothing is added, not even the NaN of a margin that does not exist.
        return data + jnp.where(prior > 0, prior * pull, 0.0)

    def halve(_, bracket):
        cold, hot = bracket
        middle = (cold + hot) / 2
        too_cold = slope(middle) > 0  # it falls as T grows
        return jnp.where(too_cold, middle, cold), jnp.where(too_cold, hot, middle)

    coldest, hottest = jnp.full_like(margin, COLDEST), jnp.full_like(margin, HOTTEST)
    separated, uninformative = slope(coldest) <= 0, slope(hottest) >= 0
    # The bracket is less than 2⁵ wide: this many halvings exhaust the mantissa.
    steps = int(jnp.finfo(margin.dtype).nmant) + 5
    cold, hot = jax.lax.fori_loop(0, steps, halve, (coldest, hottest))
    log_t = jnp.where(separated, coldest, jnp.where(uninformative, hottest, (cold + hot) / 2))
    temperature = jnp.where(spread > 0, unit * jnp.exp(log_t), 1.0)
    finite = jnp.isfinite(spread)
    at_bound = (separated | uninformative) & finite & (spread > 0)
    return Temperature(jnp.where(finite, temperature, jnp.nan), at_bound)
