"""One search over the simplex for all that can be seen of a function F: values, curvature, kinks.

Curvature is looked at along random directions in many points, in every direction in the most
conspicuous of them, and followed uphill; segments are scanned for what points miss.

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

from pgeom.compilation import quick_jit
from pgeom.geometry import sampling, simplex
from pgeom.geometry.closed_forms import as_pytree
from pgeom.geometry.sampling import inward, map_points
from pgeom.geometry.segments import Suspects, along, scan
from pgeom.geometry.spectrum import DENSE, Extremes, extremes
from pgeom.types import Generator

SPECTRA = 40_000  # classes × points that are looked at in every direction
ASCENTS = 24  # for each of the four extremes
REFINED, REFINED_STEPS = 4, 128  # points for each extreme, and Lanczos steps, beyond the dense


class Survey(NamedTuple):
    """What was seen, as NumPy arrays in float64.

    Attributes:
      points: `[n, K]`, where spectra were taken.
      values: `[n]`, F there.
      m, M, m_tangent, M_tangent: `[n]`, the extreme eigenvalues there.
      flattest: `[n, K]`, the tangent direction of least curvature.
      suspects: intervals that may have kinks.
      spacing: the distance within which 95% of the simplex has a point that was looked at.
    """

    points: np.ndarray
    values: np.ndarray
    m: np.ndarray
    M: np.ndarray
    m_tangent: np.ndarray
    M_tangent: np.ndarray
    flattest: np.ndarray
    suspects: Suspects
    spacing: float


def survey(F: Generator, K: int, *, margin: float = sampling.INSIDE) -> Survey:
    """Look at F all over the simplex of K classes, in the precision of JAX's default dtype.

    Args:
      F: any function `F(p[K]) -> scalar` of JAX operations.
      K: the number of classes.
      margin: how far to keep from the boundary; 0 where F has derivatives on it.
    """
    F, rng = as_pytree(F), np.random.default_rng(0)
    many, suspects = inward(sampling.many_points(K, rng), margin), scan(F, K)
    spread = many[:: max(1, len(many) * K // SPECTRA)]
    conspicuous = many[_conspicuous(F, many, rng)]
    landmarks = inward(sampling.landmarks(K), margin)
    points = np.concatenate([landmarks, spread, conspicuous, suspects.middle])
    values, seen = map_points(_spectrum, F, points)
    points, values, seen = _joined((points, values, seen), _climbed(F, points, seen, margin))
    if K > DENSE:
        best = points[_best(seen, REFINED)]
        points, values, seen = _joined(
            (points, values, seen), (best, *map_points(_refined, F, best))
        )
    return Survey(
        points,
        values,
        *seen[:5],
        suspects,
        sampling.spacing(many[:20_000], rng),
    )


def _spectrum(F, p):
    return F(p), extremes(F, p)


def _refined(F, p):
    return F(p), extremes(F, p, steps=REFINED_STEPS)


def _joined(first, second):
    return jax.tree.map(lambda x, y: np.concatenate([x, y]), first, second)


def _best(seen: Extremes, count: int) -> np.ndarray:
    """The indices of the points best for each of −m, M, −m_T and M_T, one after the other."""
    signed = [-seen.m, seen.M, -seen.m_tangent, seen.M_tangent]
    return np.concatenate([np.argsort(-np.nan_to_num(x, nan=-np.inf))[:count] for x in signed])


def _conspicuous(F, points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The indices of points with the least and the largest curvature along random directions."""
    directions = rng.standard_normal(points.shape)
    directions -= directions.mean(axis=1, keepdims=True)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    curvature = map_points(lambda F, p, v: along(F, p, v)[2], F, points, directions)
    order = np.argsort(np.nan_to_num(curvature, nan=-np.inf))
    few = max(16, min(512, SPECTRA // (8 * points.shape[1])))
    return np.concatenate([order[:few], order[-few // 4 :]])


def _climbed(F, points: np.ndarray, seen: Extremes, margin: float):
    """Where ascents of −m, M, −m_T and M_T from the best points led, with F and its extremes."""
    count = ASCENTS if points.shape[1] <= DENSE else ASCENTS // 4
    which = np.repeat(np.arange(4), count)
    return jax.tree.map(np.asarray, _ascend(F, points[_best(seen, count)], which, margin))


@quick_jit
def _ascend(F, points, which, margin):
    """Projected ascents along the slope of an eigenvalue; the best that each meets is kept.

    The slope of vᵀHv at a fixed eigenvector v is that of the eigenvalue.
    """
    count = 32 if points.shape[1] <= DENSE else 10

    def look(p, which):
        value, found = _spectrum(F, p)
        v = jnp.where(which % 2 == 0, found.flattest, found.steepest)
        slope = jax.grad(lambda p: along(F, p, v)[2])(p)
        objective = jnp.stack([-found.m, found.M, -found.m_tangent, found.M_tangent])[which]
        return objective, (p, value, found), jnp.where(which % 2 == 0, -slope, slope)

    def keep_better(better, new, old):
        return jax.tree.map(lambda x, y: jnp.where(better, x, y), new, old)

    def ascend(state, length):
        here, objective, best = state
        objectives, seen, slopes = jax.vmap(look)(here, which)
        better = ~(objectives <= objective)  # also the first time, and never back from a NaN
        best = jax.vmap(keep_better)(better, seen, best)
        slopes = jnp.nan_to_num(slopes - jnp.mean(slopes, axis=1, keepdims=True))
        norms = jnp.linalg.norm(slopes, axis=1, keepdims=True)
        onward = simplex.project(here + length * slopes / jnp.where(norms > 0, norms, 1.0))
        return (inward(onward, margin), jnp.where(better, objectives, objective), best), None

    shapes = jax.eval_shape(jax.vmap(look), points, which)[1]
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    start = (points, jnp.full(len(points), -jnp.inf), nothing)
    lengths = 0.1 * 0.001 ** (jnp.arange(count) / count)
    return jax.lax.scan(ascend, start, lengths)[0][2]
