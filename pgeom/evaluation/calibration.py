"""Calibration: temperature scaling, of softmax and of any link, and reliability without bins.

Temperature scaling, fitted to full convergence.

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

Temperature scaling of any link, p(z/T): the T with the lowest NLL on validation examples.

A sparse link gives some classes the probability zero: the NLL of an example with such a label is
infinite, and so is that of every temperature at which there is one. Hotter forecasts have fewer
zeros. The NLL need not have one minimum only, so a grid is searched before the best of it is
refined.

>>> import jax.numpy as jnp
>>> logits = 6.0 * jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
>>> fit = fit_link_temperature(jax.nn.softmax, logits, jnp.array([0, 0, 1, 0]))
>>> round(float(fit.temperature * jnp.log(3.0)), 2)
6.0

The reliability curve without bins (CORP), and the band that chance alone would give it.

The curve is the isotonic regression of being right on the confidence (Dimitriadis, Gneiting and
Jordan, 2021). If the forecasts were calibrated, labels drawn from them would give curves about the
diagonal: the consistency band holds the curve, at each confidence, in 95% of such draws.

>>> import jax.numpy as jnp
>>> p = jnp.array([[0.6, 0.4], [0.7, 0.3], [0.8, 0.2], [0.9, 0.1]])
>>> curve = reliability_curve(p, jnp.array([0, 1, 0, 0]), resamples=200)
>>> curve.recalibrated.tolist(), bool(jnp.all(curve.low <= curve.high))
([0.5, 0.5, 1.0, 1.0], True)
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from pgeom import checks, temperature as nll_minimum
from pgeom.evaluation.isotonic import isotonic
from pgeom.evaluation.metrics import Values, align, align_probabilities, hits
from pgeom.temperature import Temperature
from pgeom.types import AnyArray

__all__ = ["ReliabilityCurve", "Temperature", "fit_temperature", "reliability_curve", "rescale"]


def fit_temperature(logits: Values, labels: Values, *, prior: float = 0.0) -> Temperature:
    """The temperature that minimises the NLL of scaled logits, if asked for with a prior.

    argmin_T −Σ_i log softmax(z_i / T)_{y_i} − prior · (1/K) Σ_k log softmax(m e_1 / T)_k

    The pseudo-example has every label with a share of 1/K, and the logits (m, 0, …, 0), m being the
    median range of the logits of an example: the usual mixture of n/(n+1) of the data and 1/(n+1)
    of the uniform forecast. In 1/T the objective is convex.

    Logits that are equal within every example have no best temperature: 1 is returned. Logits that
    are not finite, such as those of a diverged run, give NaN.

    Args:
      logits: those of the validation set, `[..., n, K]`.
      labels: integers, `[..., n]`.
      prior: how many examples the pseudo-example counts for; 0 is the plain fit, which asks for
        T = 0 where every label has the largest logit.

    Returns:
      The `Temperature`, one per leading index.
    """
    checks.check_nonnegative("prior", prior)
    scores, labels, dtype = align(logits, labels)
    fit = nll_minimum.fit_temperature(scores, labels, prior=prior)
    return fit._replace(temperature=fit.temperature.astype(dtype))


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


COLDEST, HOTTEST = -8.0, 8.0  # of log T, once the mean range of the logits is 1
POINTS, ROUNDS = 33, 6  # of the grid, and how often its best interval is searched again
FINER = 9  # points of each such search

Link = Callable[[Float[Array, "n K"]], Float[Array, "n K"]]


def link_nll(
    link: Link, logits: Float[Array, "n K"], labels: Int[Array, " n"]
) -> Float[Array, " n"]:
    """−log p(z)_y of each example, infinite where that probability is zero."""
    return -jnp.log(jnp.take_along_axis(link(logits), labels[:, None], axis=1)[:, 0])


def fit_link_temperature(
    link: Link, logits: Float[Array, "n K"], labels: Int[Array, " n"], *, prior: float = 0.0
) -> Temperature:
    """argmin_T −Σ_i log p(z_i/T)_{y_i} − prior · (1/K) Σ_k log p(m e_1/T)_k

    The pseudo-example is that of `calibration.fit_temperature`, with m the median range of the
    logits of an example.

    Args:
      link: `link(logits[n, K]) -> p[n, K]`.
      logits: those of the validation set.
      labels: theirs.
      prior: how many examples the pseudo-example counts for.
    """
    K = logits.shape[1]
    ranges = jnp.max(logits, axis=1) - jnp.min(logits, axis=1)
    unit = jnp.mean(ranges)
    unit = jnp.where(unit > 0, unit, 1.0)
    pseudo = jnp.median(ranges) * jnp.eye(1, K, dtype=logits.dtype)

    def objective(log_t):
        T = unit * jnp.exp(log_t)
        data = jnp.sum(link_nll(link, logits / T, labels))
        return data - prior * jnp.mean(jnp.log(link(pseudo / T))) if prior else data

    def search(low, high, points):
        grid = jnp.linspace(low, high, points)
        values = jax.lax.map(objective, grid)
        best = jnp.argmin(jnp.where(jnp.isnan(values), jnp.inf, values))
        width = (high - low) / (points - 1)
        return grid[best], grid[best] - width, grid[best] + width

    def refine(_, found):
        _, low, high = found
        return search(low, high, FINER)

    first = search(jnp.asarray(COLDEST), jnp.asarray(HOTTEST), POINTS)
    log_t, _, _ = jax.lax.fori_loop(0, ROUNDS, refine, first)
    at_bound = (first[0] <= COLDEST) | (first[0] >= HOTTEST)
    finite = jnp.all(jnp.isfinite(logits))
    return Temperature(jnp.where(finite, unit * jnp.exp(log_t), jnp.nan), at_bound & finite)


class ReliabilityCurve(NamedTuple):
    """How often the top class is right, as a nondecreasing function of its probability.

    Attributes:
      confidence: in ascending order, `[..., n]`.
      recalibrated: the value of the curve there, `[..., n]`.
      low: the lower end of the consistency band, `[..., n]`; None without resamples.
      high: its upper end.
    """

    confidence: Float[Array, "*runs n"]
    recalibrated: Float[Array, "*runs n"]
    low: Float[Array, "*runs n"] | None = None
    high: Float[Array, "*runs n"] | None = None


def reliability_curve(
    probabilities: Values,
    labels: Values,
    *,
    resamples: int = 0,
    level: float = 0.95,
    seed: int = 0,
) -> ReliabilityCurve:
    """The reliability curve of the top label, with a consistency band.

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
    scores, labels, dtype = align_probabilities(probabilities, labels)
    confidence, right = jnp.max(scores, axis=-1), hits(scores, labels)
    order = jnp.argsort(confidence, axis=-1)
    confidence, right = (jnp.take_along_axis(x, order, axis=-1) for x in (confidence, right))
    curve = ReliabilityCurve(confidence.astype(dtype), isotonic(confidence, right).astype(dtype))
    if not resamples:
        return curve
    low, high = consistency_band(confidence, resamples=resamples, level=level, seed=seed)
    return curve._replace(low=low.astype(dtype), high=high.astype(dtype))


def consistency_band(
    forecast: Float[Array, "*runs n"], *, resamples: int, level: float, seed: int
) -> tuple[Float[Array, "*runs n"], Float[Array, "*runs n"]]:
    """Quantiles of the isotonic regression of outcomes that are drawn from their forecasts."""
    *runs, n = forecast.shape
    uniform = jax.random.uniform(jax.random.key(seed), (resamples, n), forecast.dtype)
    tail = (1 - level) / 2

    def one_run(f: Float[Array, " n"]) -> Float[Array, "2 n"]:
        forecasts = jnp.broadcast_to(f, uniform.shape)
        curves = isotonic(forecasts, (uniform < forecasts).astype(f.dtype))
        return jnp.quantile(curves, jnp.array([tail, 1 - tail], f.dtype), axis=0)

    ends = jax.lax.map(one_run, forecast.reshape(-1, n))
    low, high = ends[:, 0].reshape(*runs, n), ends[:, 1].reshape(*runs, n)
    return low, high
