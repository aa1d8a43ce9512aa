"""What a mean score is made of: miscalibration, discrimination and uncertainty.

With a recalibration c of the forecasts p, fitted to the same data, and the base rate r,

    mean S(p, y) = [mean S(p) − mean S(c)] − [mean S(r) − mean S(c)] + mean S(r)
                 =     miscalibration      −      discrimination     +  uncertainty

for the score of any generator. Isotonic recalibration is, for two classes, the CORP decomposition
(Dimitriadis, Gneiting and Jordan, 2021): the same c is optimal for every proper score, so that
neither miscalibration nor discrimination is negative. For more classes no such c exists. There,
"isotonic" fits each class against the rest and divides by the sum over classes; "temperature" is
softmax(log p / T), with T as by `pgeom.calibration.fit_temperature(..., prior=1.0)`, for any
number of classes. Either may leave a small negative part.

>>> import jax.numpy as jnp
>>> import pgeom
>>> p = jnp.array([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.2, 0.8]])
>>> parts = pgeom.decompose(pgeom.generators.squared_norm, p, jnp.array([0, 0, 1, 1]))
>>> [round(float(part), 4) for part in parts[:4]]  # two of the three forecasts of .9 are right
[0.435, 0.1017, 0.1667, 0.5]
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Float, Int

from pgeom import checks
from pgeom.evaluation.isotonic import isotonic
from pgeom.evaluation.metrics import Values, align_probabilities, one_hot
from pgeom.scores import BregmanScore
from pgeom.temperature import fit_temperature
from pgeom.types import Generator


class Decomposition(NamedTuple):
    """The parts of a mean score: mean_score = miscalibration − discrimination + uncertainty.

    Attributes:
      mean_score: `[...]`.
      miscalibration: how much recalibration would lower it, `[...]`.
      discrimination: how much the recalibrated forecasts are better than the base rate, `[...]`.
      uncertainty: the mean score of the base rate, `[...]`.
      low: the lower ends of bootstrap intervals for the four parts; None without resamples.
      high: the upper ends.
      debiased: the parts, less the bias that the bootstrap estimates.
    """

    mean_score: Float[Array, "*runs"]
    miscalibration: Float[Array, "*runs"]
    discrimination: Float[Array, "*runs"]
    uncertainty: Float[Array, "*runs"]
    low: "Decomposition | None" = None
    high: "Decomposition | None" = None
    debiased: "Decomposition | None" = None


def decompose(
    F: Generator,
    probabilities: Values,
    labels: Values,
    recalibrate: str = "isotonic",
    *,
    resamples: int = 0,
    level: float = 0.95,
    seed: int = 0,
) -> Decomposition:
    """Decompose the mean score of a generator.

    A recalibration fits its own sample too well, which makes miscalibration and discrimination too
    large. The bootstrap, with θ* from samples drawn from the examples, estimates by how much, about
    half of it where the recalibration is isotonic: `debiased` is 2θ − mean θ*, and the intervals
    are bias-corrected percentiles of θ* (Efron, 1981). All runs share the draws.

    Args:
      F: `F(p[K]) -> scalar`, convex and hashable.
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.
      recalibrate: "isotonic" or "temperature"; see the module.
      resamples: how many bootstrap samples; none by default.
      level: of the intervals.
      seed: of the draws.

    Returns:
      The `Decomposition`, one per leading index.
    """
    if recalibrate not in RECALIBRATIONS:
        names = " or ".join(map(repr, RECALIBRATIONS))
        raise ValueError(f"recalibrate must be {names}, got {recalibrate!r}")
    checks.require(resamples >= 0, "resamples", "at least 0", resamples)
    checks.require(0 < level < 1, "level", "between 0 and 1", level)
    scores, labels, dtype = align_probabilities(probabilities, labels)
    *runs, n, K = scores.shape
    data = (scores.reshape(-1, n, K), labels.reshape(-1, n).astype(int))

    def shaped(value):
        return value.reshape(runs).astype(dtype)

    point = [part[0] for part in _parts(F, recalibrate, *data, jnp.ones((1, n), scores.dtype))[:4]]
    result = Decomposition(*map(shaped, point))
    if not resamples:
        return result
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), resamples)
    drawn = _parts(F, recalibrate, *data, jnp.asarray(counts, scores.dtype))
    pairs = [*zip(point, drawn[:4], strict=True)]
    ends = [_interval(one, many, level) for one, many in pairs]
    return result._replace(
        low=Decomposition(*(shaped(low) for low, _ in ends)),
        high=Decomposition(*(shaped(high) for _, high in ends)),
        debiased=Decomposition(*(shaped(2 * one - jnp.mean(many, axis=0)) for one, many in pairs)),
    )


def _interval(
    value: Float[Array, " R"], drawn: Float[Array, "B R"], level: float
) -> tuple[Float[Array, " R"], Float[Array, " R"]]:
    """The quantiles Φ(2 z₀ ± z) of what was drawn, with Φ(z₀) the share of it below the value."""
    below = jnp.mean(drawn < value[None], axis=0) + jnp.mean(drawn == value[None], axis=0) / 2
    smallest = 1 / (drawn.shape[0] + 1)
    shift = 2 * ndtri(jnp.clip(below.astype(value.dtype), smallest, 1 - smallest))
    z = ndtri(jnp.asarray((1 + level) / 2, value.dtype))
    ends = (ndtr(shift - z), ndtr(shift + z))
    low, high = (jax.vmap(jnp.quantile, in_axes=(1, 0))(drawn, end) for end in ends)
    return low, high


@partial(jax.jit, static_argnums=(0, 1))
def _parts(
    F: Generator,
    recalibrate: str,
    p: Float[Array, "R n K"],
    labels: Int[Array, "R n"],
    weights: Float[Array, "B n"],
) -> Decomposition:
    """The parts `[B, R]` of R runs under B weightings of their examples."""
    score, outcomes = BregmanScore(F), one_hot(labels, p)

    def scored(forecasts: Float[Array, "R n K"]) -> Float[Array, "R n"]:
        flat = forecasts.reshape(-1, p.shape[-1])
        return score.score_labels(flat, labels.reshape(-1)).reshape(labels.shape)

    raw = scored(p)

    def one_weighting(weighting: Float[Array, " n"]) -> Decomposition:
        w = jnp.broadcast_to(weighting, labels.shape)
        present, shares = w > 0, w / jnp.sum(weighting)

        def mean(values: Float[Array, "R n"]) -> Float[Array, " R"]:
            return jnp.sum(jnp.where(present, shares * values, 0.0), axis=-1)

        rate = jnp.sum(shares[..., None] * outcomes, axis=1)
        recalibrated = mean(scored(RECALIBRATIONS[recalibrate](p, outcomes, w)))
        total = mean(raw)
        uncertainty = jnp.where(jnp.isnan(total), jnp.nan, score.score_targets(rate, rate))
        parts = (total - recalibrated, uncertainty - recalibrated, uncertainty)
        return Decomposition(total, *parts)

    return jax.lax.map(one_weighting, weights)


def _by_class(
    p: Float[Array, "R n K"], outcomes: Float[Array, "R n K"], w: Float[Array, "R n"]
) -> Float[Array, "R n K"]:
    """Each class against the rest, isotonic in its own probability, then divided by the sum."""
    if p.shape[-1] == 2:  # where the second class says it all
        second = isotonic(p[..., 1], outcomes[..., 1], w)
        return jnp.stack([1 - second, second], axis=-1)
    one_class = jax.vmap(isotonic, in_axes=(-1, -1, None), out_axes=-1)
    fitted = one_class(p, outcomes, w)
    total = jnp.sum(fitted, axis=-1, keepdims=True)
    # An example of weight zero may have no class left; what it gets does not count.
    return jnp.where(total > 0, fitted / jnp.where(total > 0, total, 1.0), p)


def _by_temperature(
    p: Float[Array, "R n K"], outcomes: Float[Array, "R n K"], w: Float[Array, "R n"]
) -> Float[Array, "R n K"]:
    """softmax(log p / T), where a probability of zero counts as the smallest number above it."""
    logits = jnp.log(jnp.maximum(p, jnp.finfo(p.dtype).tiny))
    fit = fit_temperature(logits, jnp.argmax(outcomes, axis=-1), weights=w)
    return jax.nn.softmax(logits / fit.temperature[:, None, None], axis=-1)


RECALIBRATIONS: dict[str, Callable[..., Float[Array, "R n K"]]] = {
    "isotonic": _by_class,
    "temperature": _by_temperature,
}
