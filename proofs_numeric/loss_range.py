"""Props. (capm, hpg): 0 ≤ ℓ_F(p, y) ≤ M.

Sharper: for CAPM the exact maximum, at a pair of vertices; for HPG each ridge at its own worst
vertex. The loss of HPG grows along rays from e_y, so that its supremum lies on the face p_y = 0,
but not always at a vertex of it; the module `ridge_range` shows both.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import simplex
from pgeom.compilation import quick_jit
from pgeom.diagnosis import bounds, curvature
from pgeom.scores import bregman_score
from proofs_numeric import configurations, exact_range, probes, ridge_range
from proofs_numeric.check import Check, attainment, check_each, lower_bound, upper_bound
from proofs_numeric.configurations import Configurations

LABEL = "Props. (capm, hpg)"
EXACT = "beyond the paper: the exact range of a quadratic score"
FACES = "beyond the paper: the largest HPG loss need not be at a vertex"
OFF_VERTEX = 1.5  # the least ratio of supremum and vertex maximum in the regression case
FACE = 2001  # grid points on the edge p_y = 0 of three classes


def searched_supremum(F, starts: jax.Array) -> jax.Array:
    """The largest ℓ_F(p, y) that ascents over p find, for each y; `[K]`, of one generator."""
    score = bregman_score(F)
    labels = jnp.arange(starts.shape[1])
    return jax.vmap(lambda y: probes.maximise_inside(lambda p: score(p, y), starts).value)(labels)


def probed_supremum(F, starts: jax.Array) -> jax.Array:
    """The largest ℓ_F(p, y) at the starts themselves, for each y; `[K]`."""
    labels = jnp.arange(starts.shape[1])
    over_points = jax.vmap(lambda p, y: bregman_score(F)(p, y), in_axes=(0, None))
    return jnp.max(jax.vmap(over_points, in_axes=(None, 0))(starts, labels), axis=1)


def checks(
    K: int,
    *,
    bound: Callable = bounds.loss_range,
    supremum: Callable = searched_supremum,
    exact: Callable = exact_range.largest_loss,
    origin: Callable = simplex.vertex,
    envelope: Callable = curvature.envelope,
) -> list[Check]:
    """Every check of the range on K classes, with bounds, searches and rays under test."""
    ridges = configurations.hyperbolics(K)
    extremes = _extremes(ridges, supremum)
    return [
        *check_capm(K, bound=bound),
        *check_ridges(ridges, bound, extremes),
        *ridge_range.checks(ridges, extremes[2], exact=exact, origin=origin, envelope=envelope),
    ]


def check_capm(K: int, *, bound: Callable = bounds.loss_range) -> list[Check]:
    """CAPM: within its range, which is the vertex maximum; the pair metric attains M.

    The loss is convex in p, so that the probes, vertices among them, find what an ascent would.
    """
    cases = configurations.quadratics(K)
    extremes = _extremes(cases, probed_supremum)
    paper, sharp = cases.evaluate(bound, "paper", "sharp")
    vertices, how = extremes[1], "all pairs of vertices"
    claim = "CAPM: exact range is the vertex maximum"
    return [
        *_check_range(cases, paper, sharp, extremes),
        *check_each(attainment, claim, EXACT, cases, how, observed=vertices, sharp=sharp),
        *_check_attained(cases, "extremal: pair metric", vertices, paper),
    ]


def check_ridges(cases: Configurations, bound, extremes) -> list[Check]:
    """HPG: within its range; a wide ridge attains M; the off-vertex supremum is found."""
    paper, sharp = cases.evaluate(bound, "paper", "sharp")
    rows = _check_range(cases, paper, sharp, extremes)
    rows += _check_attained(cases, "extremal: wide ridge", extremes[1], paper)
    return rows + (_check_off_vertex(cases, extremes) if cases.K == 3 else [])


def _check_range(cases: Configurations, paper, sharp, extremes) -> list[Check]:
    lowest, vertices, highest = extremes
    how = f"ascents and probes, {len(_starts(cases.K))} starts for each label"
    columns = {"observed": np.maximum(vertices, highest), "paper": paper, "sharp": sharp}
    return [
        *check_each(upper_bound, "−ℓ(p,y) ≤ 0", LABEL, cases, how, observed=-lowest, paper=0.0),
        *check_each(upper_bound, "ℓ(p,y) ≤ M", LABEL, cases, how, **columns),
    ]


def _check_attained(cases: Configurations, name: str, vertices, paper) -> list[Check]:
    i, one = cases.names.index(name), cases.select(name)
    columns = {"observed": vertices[i], "paper": paper[i]}
    return check_each(attainment, "range M is attained", LABEL, one, "p = e₂, y = 1", **columns)


def _check_off_vertex(cases: Configurations, extremes) -> list[Check]:
    """The regression case: the supremum is off-vertex, and no point of the face exceeds it."""
    one = cases.select("off vertex")
    i = cases.names.index(one.names[0])
    vertices, highest = extremes[1][i], extremes[2][i]
    t = np.linspace(0, 1, FACE)
    edge = np.stack([np.zeros(FACE), t, 1 - t], axis=1)
    face = np.max(_face_losses(cases.generators[i], edge))
    how, compared = f"{FACE} points of each face", f"{highest:.6f} against {vertices:.6f}"
    claims = (
        "HPG: supremum ≥ every loss on a face",
        f"HPG: supremum ≥ {OFF_VERTEX} vertex maximum",
    )
    return [
        *check_each(upper_bound, claims[0], FACES, one, how, observed=face, sharp=highest),
        *check_each(
            lower_bound,
            claims[1],
            FACES,
            one,
            compared,
            observed=highest / vertices,
            sharp=OFF_VERTEX,
        ),
    ]


def _starts(K: int) -> np.ndarray:
    return np.concatenate([np.eye(K)[:2], probes.draws(K, count=2, seed=5)])


def _extremes(cases: Configurations, supremum):
    """The least loss at probe points, the largest at vertices and the supremum, `[c]` each."""
    points, starts = probes.points(cases.K, count=8), _starts(cases.K)
    results = _losses(cases.stacked, points, starts, supremum=supremum)
    return tuple(np.asarray(result) for result in results)


@partial(quick_jit, static_argnames="supremum")
def _losses(stacked, points, starts, *, supremum):
    K = points.shape[1]

    def one(F):
        table = jax.vmap(lambda y: jax.vmap(lambda p: bregman_score(F)(p, y))(points))
        losses = table(jnp.arange(K))
        vertices = losses[:, 1 : K + 1]  # where `probes.points` has them
        return jnp.min(losses), jnp.max(vertices), jnp.max(supremum(F, starts))

    return jax.vmap(one)(stacked)


@quick_jit
def _face_losses(F, edge):
    """The losses `[3, n]` on the faces p_y = 0 of three classes, given as (0, t, 1 − t)."""

    def losses(y):
        return bregman_score(F)(jnp.roll(edge, y, axis=1), jnp.full(edge.shape[0], y))

    return jnp.stack([losses(y) for y in range(3)])
