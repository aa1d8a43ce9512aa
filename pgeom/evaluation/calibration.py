"""Calibration: temperature scaling, isotonic regression, and reliability without bins.

The calibrated forecast is the softmax of the logits at the fitted temperature, which ranks the
classes as before. The plain fit minimises the NLL of the data. With `prior=1.0`, as in the records
of the experiments, it counts one pseudo-example of a uniform label beside them, so that a
validation set without an error does not ask for certainty. When the best temperature is 0 (a
perfectly separated set, plainly fitted) or ∞ (uninformative logits) the bound is returned, and the
result says so.

>>> import jax.numpy as jnp
>>> from pgeom.evaluation import calibration
>>> logits = 6.0 * jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
>>> labels = jnp.array([0, 0, 1, 0])  # three of four are right: log(3) is the calibrated logit
>>> plain = calibration.fit_temperature(logits, labels)
>>> round(float(plain.temperature * jnp.log(3.0)), 4), bool(plain.at_bound)
(6.0, False)
>>> fit = calibration.fit_temperature(logits, labels, prior=1.0)  # three and a half of five
>>> round(float(fit.temperature * jnp.log(3.5 / 1.5)), 4)
6.0
>>> calibration.rescale(logits, fit.temperature).shape
(4, 2)
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from pgeom import checks
from pgeom.evaluation.metrics import align, align_probabilities, bisect, top_label
from pgeom.types import AnyArray, Numbers

__all__ = ["ReliabilityCurve", "Temperature", "fit_temperature", "reliability_curve", "rescale"]


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


def fit_temperature(
    logits: Numbers, labels: Numbers, *, prior: float = 0.0, weights: Numbers | None = None
) -> Temperature:
    """The temperature that minimises the NLL of scaled logits, if asked for with a prior.

    argmin_T −Σ_i w_i log softmax(z_i / T)_{y_i} − prior · (1/K) Σ_k log softmax(m e_1 / T)_k

    The pseudo-example has every label with a share of 1/K, and the logits m e_1 = (m, 0, …, 0), m
    being the median range of the logits of an example. It is the usual mixture of n/(n+1) of the
    data and 1/(n+1) of the uniform forecast: if all examples have the range m and `right` of them
    are right, the forecast is (right + 1/K)/(n + 1). Mixing the forecasts instead of the data would
    leave a problem with several minima.

    In 1/T the objective is convex, so its derivative changes sign at most once and bisection cannot
    stop early, as line searches do.

    Args:
      logits: those of the validation set, `[..., n, K]`.
      labels: integers, `[..., n]`.
      prior: how many examples the pseudo-example counts for; 0 is the plain fit, which asks for
        T = 0 where every label has the largest logit.
      weights: how many examples each one counts for, `[..., n]`; one by default.

    Returns:
      The `Temperature`, one per leading index: 1 where the logits of every example are equal, which
      have no best one, and NaN where one is not finite, as in a diverged run.
    """
    checks.check_nonnegative("prior", prior)
    scores, labels, dtype = align(logits, labels)
    weights = jnp.ones_like(scores[..., 0]) if weights is None else jnp.asarray(weights)
    fit, at_bound = _minimise_nll(scores, labels, jnp.asarray(prior, scores.dtype), weights)
    return Temperature(fit.astype(dtype), at_bound)


@partial(jax.jit, inline=True)  # or the loop would be compiled at every call
@partial(jnp.vectorize, signature="(n,k),(n),(),(n)->(),()")
def _minimise_nll(logits, labels, prior, weights):
    """The temperature, and whether it is at a bound."""
    ranges = jnp.max(logits, axis=1) - jnp.min(logits, axis=1)
    spread = jnp.mean(ranges)
    unit = jnp.where(spread > 0, spread, 1.0)
    typical = jnp.nanmedian(jnp.where((ranges > 0) & (weights > 0), ranges, jnp.nan))
    chosen = jnp.take_along_axis(logits, labels[:, None], axis=1)
    gaps = (logits - chosen) / unit  # z_k − z_y
    margin, K = typical / unit, logits.shape[1]  # m

    def slope(log_t):
        """The derivative of the objective in b = 1/T.

        Σ_i w_i Σ_k softmax(b z_i)_k (z_ik − z_iy) + prior · m (softmax(b m e_1)_1 − 1/K)

        Written out, because its sign must be exact: where every label has the largest logit, each
        term of the data is ≤ 0 even when it underflows, while autodiff would subtract two rounded
        means.
        """
        b = jnp.exp(-log_t)
        data = jnp.sum(weights * jnp.sum(jax.nn.softmax(gaps * b) * gaps, axis=1))
        other = jnp.exp(-b * margin)
        pull = margin * (1 - 1 / K) * (1 - other) / (1 + (K - 1) * other)
        # Without a prior nothing is added, not even the NaN of a margin that does not exist.
        return data + jnp.where(prior > 0, prior * pull, 0.0)

    coldest, hottest = jnp.full_like(margin, COLDEST), jnp.full_like(margin, HOTTEST)
    separated, uninformative = slope(coldest) <= 0, slope(hottest) >= 0
    # The bracket is less than 2⁵ wide: this many halvings exhaust the mantissa.
    steps = int(jnp.finfo(margin.dtype).nmant) + 5
    best = bisect(lambda log_t: slope(log_t) > 0, coldest, hottest, steps)  # it falls as T grows
    log_t = jnp.where(separated, coldest, jnp.where(uninformative, hottest, best))
    temperature = jnp.where(spread > 0, unit * jnp.exp(log_t), 1.0)
    finite = jnp.isfinite(spread)
    at_bound = (separated | uninformative) & finite & (spread > 0)
    return jnp.where(finite, temperature, jnp.nan), at_bound


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


@partial(jax.jit, inline=True)  # or the loop would be compiled at every call
@partial(jnp.vectorize, signature="(n),(n),(n)->(n)")
def isotonic(
    forecast: Float[Array, " n"], outcome: Float[Array, " n"], weights: Float[Array, " n"]
) -> Float[Array, " n"]:
    """The nondecreasing function of the forecast that is nearest to the outcomes.

    argmin Σ_i w_i (y_i − c(f_i))²,  c nondecreasing

    For binary outcomes it also has the least mean of *every* proper score. First, equal forecasts
    are pooled; then all adjacent blocks whose means do not increase are pooled at the same
    time, until there are none. Two adjacent violators share a block of the solution, whatever else
    is pooled, so that the order does not matter. It is not SciPy's, because bootstraps are compiled
    with it.

    >>> forecast, outcome = jnp.array([0.1, 0.2, 0.3, 0.4]), jnp.array([0.0, 1.0, 0.0, 1.0])
    >>> isotonic(forecast, outcome, jnp.ones(4))
    Array([0. , 0.5, 0.5, 1. ], dtype=float32)

    Args:
      forecast: in any order, `[..., n]`.
      outcome: numbers, for example 0 and 1, `[..., n]`.
      weights: nonnegative, `[..., n]`.

    Returns:
      The value of the function at each forecast, `[..., n]`.
    """
    order = jnp.argsort(forecast)
    f, w = forecast[order], weights[order]
    masses = w * outcome[order]

    def block_means(begins):
        """The mean of each example's block, where `begins` marks the first example of a block."""
        block = jnp.cumsum(begins) - 1
        total, weight = (jnp.zeros_like(f).at[block].add(part) for part in (masses, w))
        return (total / jnp.where(weight > 0, weight, 1.0))[block]

    def violates(begins):
        """Whether an example begins a block that must be pooled with the one before it."""
        means = block_means(begins)
        before = jnp.roll(means, 1).at[0].set(-jnp.inf)
        return begins & (before >= means)

    def pool(state):
        begins = state[0] & ~state[1]
        return begins, violates(begins)

    distinct = jnp.concatenate([jnp.ones_like(f[:1], bool), f[1:] > f[:-1]])
    state = (distinct, violates(distinct))
    begins, _ = jax.lax.while_loop(lambda state: jnp.any(state[1]), pool, state)
    return jnp.zeros_like(f).at[order].set(block_means(begins))


PerExample = Float[Array, "*runs n"]


class ReliabilityCurve(NamedTuple):
    """How often the top class is right, as a nondecreasing function of its probability.

    Attributes:
      confidence: in ascending order, `[..., n]`.
      recalibrated: the value of the curve there, `[..., n]`.
      low: the lower end of the consistency band, `[..., n]`; None without resamples.
      high: its upper end.
    """

    confidence: PerExample
    recalibrated: PerExample
    low: PerExample | None = None
    high: PerExample | None = None


def reliability_curve(
    probabilities: Numbers,
    labels: Numbers,
    *,
    resamples: int = 0,
    level: float = 0.95,
    seed: int = 0,
) -> ReliabilityCurve:
    """The reliability curve of the top label without bins (CORP), with a consistency band.

    The curve is the isotonic regression of being right on the confidence (Dimitriadis, Gneiting and
    Jordan, 2021). If the forecasts were calibrated, labels drawn from them would give curves about
    the diagonal: the consistency band holds the curve, at each confidence, in 95% of such draws.

    >>> p = jnp.array([[0.6, 0.4], [0.7, 0.3], [0.8, 0.2], [0.9, 0.1]])
    >>> curve = reliability_curve(p, jnp.array([0, 1, 0, 0]), resamples=200)
    >>> curve.recalibrated.tolist(), bool(jnp.all(curve.low <= curve.high))
    ([0.5, 0.5, 1.0, 1.0], True)

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.
      resamples: how many draws the band is made of; none by default.
      level: of the band, at each confidence by itself.
      seed: of the draws.

    Returns:
      The `ReliabilityCurve`, one per leading index.
    """
    checks.require(resamples >= 0, "resamples", "at least 0", resamples)
    checks.require(0 < level < 1, "level", "between 0 and 1", level)
    aligned = align_probabilities(probabilities, labels)
    confidence, right = top_label(aligned)
    order = jnp.argsort(confidence, axis=-1)
    confidence, right = (jnp.take_along_axis(x, order, axis=-1) for x in (confidence, right))
    curve = (confidence, isotonic(confidence, right, jnp.ones_like(right)))
    if resamples:
        curve += _consistency_band(confidence, resamples, level, seed)
    return ReliabilityCurve(*(values.astype(aligned.dtype) for values in curve))


def _consistency_band(forecast, resamples, level, seed):
    """Quantiles of the isotonic regression of outcomes that are drawn from their forecasts."""
    n, dtype = forecast.shape[-1], forecast.dtype
    uniform = jax.random.uniform(jax.random.key(seed), (resamples, n), dtype)
    tails = jnp.array([(1 - level) / 2, (1 + level) / 2], dtype)

    def one_run(f):
        outcomes = (uniform < f[None]).astype(dtype)
        curves = isotonic(jnp.broadcast_to(f, uniform.shape), outcomes, jnp.ones_like(uniform))
        return jnp.quantile(curves, tails, axis=0)

    low, high = jnp.moveaxis(jax.lax.map(one_run, forecast.reshape(-1, n)), 1, 0)
    return low.reshape(forecast.shape), high.reshape(forecast.shape)
