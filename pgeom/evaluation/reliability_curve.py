"""The reliability curve without bins (CORP), and the band that chance alone would give it.

The curve is the isotonic regression of being right on the confidence (Dimitriadis, Gneiting and
Jordan, 2021). If the forecasts were calibrated, labels drawn from them would give curves about the
diagonal: the consistency band holds the curve, at each confidence, in 95% of such draws.

>>> import jax.numpy as jnp
>>> p = jnp.array([[0.6, 0.4], [0.7, 0.3], [0.8, 0.2], [0.9, 0.1]])
>>> curve = reliability_curve(p, jnp.array([0, 1, 0, 0]), resamples=200)
>>> curve.recalibrated.tolist(), bool(jnp.all(curve.low <= curve.high))
([0.5, 0.5, 1.0, 1.0], True)
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pgeom import edge
from pgeom.evaluation.batch import Values, align_probabilities, hits
from pgeom.evaluation.isotonic import isotonic


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
    edge.require(resamples >= 0, "resamples", "at least 0", resamples)
    edge.require(0 < level < 1, "level", "between 0 and 1", level)
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
