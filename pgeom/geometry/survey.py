"""One search of the simplex for the values, curvature and kinks of a function F.

Curvature is evaluated along random directions at many points, in every direction at the most
conspicuous ones, and followed uphill; segments are scanned for what isolated points miss.

>>> import jax, jax.numpy as jnp
>>> with jax.enable_x64(True):
...     seen = survey(lambda p: jnp.sum(p**2) + jnp.maximum(p[0] - 0.7, 0), 3)
>>> round(float(seen.m_tangent.min()), 4), bool(seen.suspects.jump.max() > 0.1)
(2.0, True)
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from pgeom.compilation import quick_jit
from pgeom.geometry import sampling, simplex
from pgeom.geometry.closed_forms import as_pytree
from pgeom.geometry.sampling import inward, map_points
from pgeom.geometry.segments import Suspects, derivatives_along, no_suspects, scan
from pgeom.geometry.spectrum import DENSE, Extremes, extremes
from pgeom.types import Generator

SPECTRA = 40_000  # classes × points at which curvature is evaluated in every direction
ASCENTS = 24  # for each of the four extremes
REFINED, REFINED_STEPS = 4, 128  # points per extreme, and Lanczos steps, if not dense
GLANCE = 24_000  # the same where only convexity is asked for


class Survey(NamedTuple):
    """The results of the search, in float64.

    Attributes:
      points: where spectra were computed.
      values: F there.
      m, M, m_tangent, M_tangent: the extreme eigenvalues there.
      flattest: the tangent direction of least curvature.
      suspects: intervals that may have kinks.
      spacing: the distance within which 95% of the simplex has a point that was evaluated.
    """

    points: Float[np.ndarray, "n K"]
    values: Float[np.ndarray, " n"]
    m: Float[np.ndarray, " n"]
    M: Float[np.ndarray, " n"]
    m_tangent: Float[np.ndarray, " n"]
    M_tangent: Float[np.ndarray, " n"]
    flattest: Float[np.ndarray, "n K"]
    suspects: Suspects
    spacing: float


def survey(F: Generator, K: int, *, margin: float = sampling.INSIDE) -> Survey:
    """Evaluate F all over the simplex of K classes, in the precision of JAX's default dtype.

    Args:
      F: any function `F(p[K]) -> scalar` of JAX operations.
      K: the number of classes.
      margin: the distance to keep from the boundary; 0 if F has derivatives on it.
    """
    F, rng = as_pytree(F), np.random.default_rng(0)
    many, suspects = inward(sampling.many_points(K, rng), margin), scan(F, K)
    spread = many[:: max(1, len(many) * K // SPECTRA)]
    conspicuous = many[_conspicuous(F, many, rng)]
    landmarks = inward(sampling.landmarks(K), margin)
    points = np.concatenate([landmarks, spread, conspicuous, suspects.middle])
    values, spectra = map_points(_spectrum, F, points)
    points, values, spectra = _joined(
        (points, values, spectra), _climbed(F, points, spectra, margin)
    )
    if K > DENSE:
        best = points[_best(spectra, REFINED)]
        points, values, spectra = _joined(
            (points, values, spectra), (best, *map_points(_refined, F, best))
        )
    return Survey(
        points,
        values,
        m=spectra.m,
        M=spectra.M,
        m_tangent=spectra.m_tangent,
        M_tangent=spectra.M_tangent,
        flattest=spectra.flattest,
        suspects=suspects,
        spacing=sampling.spacing(many[:20_000], rng),
    )


def glance(F: Generator, K: int, *, margin: float = sampling.INSIDE) -> Survey:
    """A survey for convexity alone, in a fraction of the time: at some points, with no ascents.

    What bends the wrong way in a small part of the simplex only may be missed; kinks are not
    looked for. The arguments are those of `survey`.
    """
    F, rng = as_pytree(F), np.random.default_rng(0)
    many = sampling.many_points(K, rng)
    few = many[:: max(1, len(many) * K // GLANCE)]
    points = inward(np.concatenate([sampling.landmarks(K), few]), margin)
    values, spectra = map_points(_spectrum, F, points)
    return Survey(points, values, *spectra[:5], suspects=no_suspects(K), spacing=np.nan)


def _spectrum(F, p):
    return F(p), extremes(F, p)


def _refined(F, p):
    return F(p), extremes(F, p, steps=REFINED_STEPS)


def _joined(first, second):
    return jax.tree.map(lambda x, y: np.concatenate([x, y]), first, second)


def _best(spectra: Extremes, count: int) -> np.ndarray:
    """The indices of the best points for −m, then for M, −m_T and M_T."""
    signed = [-spectra.m, spectra.M, -spectra.m_tangent, spectra.M_tangent]
    return np.concatenate([np.argsort(-np.nan_to_num(x, nan=-np.inf))[:count] for x in signed])


def _conspicuous(F, points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The indices of points with the smallest and largest curvature along random directions."""
    directions = rng.standard_normal(points.shape)
    directions -= directions.mean(axis=1, keepdims=True)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    curvature = map_points(lambda F, p, v: derivatives_along(F, p, v)[2], F, points, directions)
    order = np.argsort(np.nan_to_num(curvature, nan=-np.inf))
    few = max(16, min(512, SPECTRA // (8 * points.shape[1])))
    return np.concatenate([order[:few], order[-few // 4 :]])


def _climbed(F, points: np.ndarray, spectra: Extremes, margin: float):
    """The best points on ascents of −m, M, −m_T and M_T, with F and its extremes there."""
    count = ASCENTS if points.shape[1] <= DENSE else ASCENTS // 4
    which = np.repeat(np.arange(4), count)
    return jax.tree.map(np.asarray, _ascend(F, points[_best(spectra, count)], which, margin))


@quick_jit
def _ascend(F, points, which, margin):
    """Projected ascents along the slope of an eigenvalue, each with the best point on its way.

    The slope of vᵀHv at a fixed eigenvector v is that of the eigenvalue.
    """
    count = 32 if points.shape[1] <= DENSE else 10

    def evaluate(p, which):
        value, here = _spectrum(F, p)
        v = jnp.where(which % 2 == 0, here.flattest, here.steepest)
        slope = jax.grad(lambda p: derivatives_along(F, p, v)[2])(p)
        objective = jnp.stack([-here.m, here.M, -here.m_tangent, here.M_tangent])[which]
        return objective, (p, value, here), jnp.where(which % 2 == 0, -slope, slope)

    def keep_better(better, new, old):
        return jax.tree.map(lambda x, y: jnp.where(better, x, y), new, old)

    def ascend(state, length):
        here, objective, best = state
        objectives, spectra, slopes = jax.vmap(evaluate)(here, which)
        better = ~(objectives <= objective)  # true also if either is NaN
        best = jax.vmap(keep_better)(better, spectra, best)
        slopes = jnp.nan_to_num(slopes - jnp.mean(slopes, axis=1, keepdims=True))
        norms = jnp.linalg.norm(slopes, axis=1, keepdims=True)
        onward = simplex.project(here + length * slopes / jnp.where(norms > 0, norms, 1.0))
        return (inward(onward, margin), jnp.where(better, objectives, objective), best), None

    shapes = jax.eval_shape(jax.vmap(evaluate), points, which)[1]
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    start = (points, jnp.full(len(points), -jnp.inf), nothing)
    lengths = 0.1 * 0.001 ** (jnp.arange(count) / count)
    return jax.lax.scan(ascend, start, lengths)[0][2]
