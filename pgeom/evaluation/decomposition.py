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

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import checks
from pgeom.evaluation.calibration import fit_temperature, isotonic
from pgeom.evaluation.metrics import PerRun, align_probabilities
from pgeom.evaluation.significance import corrected_quantiles
from pgeom.scores import bregman_score
from pgeom.types import Generator, Numbers


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

    mean_score: PerRun
    miscalibration: PerRun
    discrimination: PerRun
    uncertainty: PerRun
    low: "Decomposition | None" = None
    high: "Decomposition | None" = None
    debiased: "Decomposition | None" = None


def decompose(
    F: Generator,
    probabilities: Numbers,
    labels: Numbers,
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
    aligned = align_probabilities(probabilities, labels)
    *runs, n, K = aligned.scores.shape
    data = aligned.scores.reshape(-1, n, K), aligned.labels.reshape(-1, n)

    def mean_scores(weights):
        return _mean_scores(F, recalibrate, *data, jnp.asarray(weights, aligned.scores.dtype))

    def result(parts):
        return Decomposition(*(part.reshape(runs).astype(aligned.dtype) for part in parts.T))

    (parts,) = mean_scores(np.ones((1, n)))
    if not resamples:
        return result(parts)
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), resamples)
    drawn = mean_scores(counts)
    moved = np.asarray(drawn - parts[None]).reshape(resamples, -1).T
    ends = corrected_quantiles(moved, level).reshape(2, *parts.shape)
    low, high = parts[None] + jnp.asarray(ends, parts.dtype)
    return result(parts)._replace(
        low=result(low),
        high=result(high),
        debiased=result(2 * parts - jnp.mean(drawn, axis=0)),
    )


@partial(jax.jit, static_argnums=(0, 1))
def _mean_scores(F, recalibrate, p, labels, weights):
    """The parts `[B, R, 4]` of R runs `[R, n, K]` under B weightings `[B, n]` of their examples."""
    score = bregman_score(F)

    def one_run(p, labels, raw, w):
        shares, outcomes = w / jnp.sum(w), jax.nn.one_hot(labels, p.shape[1], dtype=p.dtype)

        def mean(values):  # what counts for nothing may be infinite
            return jnp.sum(jnp.where(w > 0, shares * values, 0.0))

        rate, total = jnp.sum(shares[:, None] * outcomes, axis=0), mean(raw)
        best = mean(score(RECALIBRATIONS[recalibrate](p, outcomes, w), labels))
        uncertainty = jnp.where(jnp.isnan(total), jnp.nan, score(rate, rate))
        return jnp.stack([total, total - best, uncertainty - best, uncertainty])

    every_run, raw = jax.vmap(one_run, in_axes=(0, 0, 0, None)), score(p, labels)
    return jax.lax.map(lambda w: every_run(p, labels, raw, w), weights)


def _by_class(p, outcomes, w):
    """Each class against the rest, isotonic in its own probability, then divided by the sum."""
    if p.shape[1] == 2:  # where the second class says it all
        second = isotonic(p[:, 1], outcomes[:, 1], w)
        return jnp.stack([1 - second, second], axis=1)
    fitted = jax.vmap(isotonic, in_axes=(1, 1, None), out_axes=1)(p, outcomes, w)
    total = jnp.sum(fitted, axis=1, keepdims=True)
    # An example of weight zero may have no class left; what it gets does not count.
    return jnp.where(total > 0, fitted / jnp.where(total > 0, total, 1.0), p)


def _by_temperature(p, outcomes, w):
    """softmax(log p / T), where a probability of zero counts as the smallest number above it."""
    logits = jnp.log(jnp.maximum(p, jnp.finfo(p.dtype).tiny))
    fit = fit_temperature(logits, jnp.argmax(outcomes, axis=1), prior=1.0, weights=w)
    return jax.nn.softmax(logits / fit.temperature)


RECALIBRATIONS = {"isotonic": _by_class, "temperature": _by_temperature}
