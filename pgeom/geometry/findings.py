"""Everything known about a generator, by formula or from one search, cached.

>>> import jax.numpy as jnp
>>> def cubic(p): return jnp.sum(p**3)
>>> find(cubic, 3) is find(cubic, 3)
True
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import edge
from pgeom.geometry.any_generator import trace
from pgeom.geometry.closed_forms import ClosedGenerator, as_pytree
from pgeom.geometry.convexity import Verdict, judge
from pgeom.geometry.envelopes import Envelope, known_envelope
from pgeom.geometry.sampling import INSIDE, map_points
from pgeom.geometry.survey import Survey, glance, survey
from pgeom.types import Generator

CACHE_SIZE = 32
COMPARED = 500  # points at which F in float32 is compared with F in float64
DIFFERENT = 0.05  # of the largest value of F, beyond which it is another function
# What cannot change between two calls: an object of a user's class can, and is searched again.
IMMUTABLE = (FunctionType, jax.stages.Wrapped, jax.custom_jvp, jax.custom_vjp, ClosedGenerator)


class Kink(NamedTuple):
    """A point `[K]` where the slope of F jumps, and by how much along a unit direction."""

    point: np.ndarray
    jump: float


class Findings(NamedTuple):
    """What is known about F on K classes; see `pgeom.diagnose`."""

    finite_at_vertices: bool
    verdict: Verdict
    kinks: tuple[Kink, ...]
    envelope: Envelope
    spacing: float | None
    how: str
    seconds: float


_cache: OrderedDict[tuple[int, int], tuple[Generator, Findings]] = OrderedDict()


def find(F: Generator, K: int) -> Findings:
    """The findings about F on K classes, by formula or search; cached if F cannot change."""
    edge.check_num_classes(K)
    if not isinstance(F, IMMUTABLE):
        return _find(_searchable(F), int(K))
    key = id(F), int(K)
    if key not in _cache:
        _cache[key] = F, _find(F, int(K))  # with F itself, so that its id is not reused
    _cache.move_to_end(key)
    if len(_cache) > CACHE_SIZE:
        _cache.popitem(last=False)
    return _cache[key][1]


def glance_at_convexity(F: Generator, K: int) -> tuple[bool, Verdict]:
    """Whether F is finite at the vertices, and convex as far as a short search can tell.

    A False comes with its witness, as from `find`, of whose search this is a small part; what is
    not convex in a small part of the simplex only may be missed.
    """
    edge.check_num_classes(K)
    if (key := (id(F), int(K))) in _cache:
        return _cache[key][1].finite_at_vertices, _cache[key][1].verdict
    if (known := _by_formula(F, int(K))) is not None:
        return known.finite_at_vertices, known.verdict
    at_vertices, _, _, verdict = _search(_searchable(F), int(K), glance)
    return at_vertices, verdict


def _searchable(F: Generator) -> Generator:
    """F, or a function that calls it if it is an object that may change."""
    if isinstance(F, IMMUTABLE) or not jax.tree_util.all_leaves([F]):
        return F
    return lambda p: F(p)


def _by_formula(F: Generator, K: int) -> Findings | None:
    start = time.perf_counter()
    if (known := known_envelope(F, K)) is None or known.m_tangent <= 1e-13 * known.M:
        return None
    verdict = Verdict(True, True, True, float(np.finfo(float).eps))
    how = f"{known.how}: the smallest tangent eigenvalue is at least {known.m_tangent:.6g}"
    return Findings(True, verdict, (), known, None, how, time.perf_counter() - start)


def _search(F: Generator, K: int, look: Callable) -> tuple[bool, bool, Survey, Verdict]:
    """Whether F and its Hessian are finite at the vertices, what a survey saw, and the verdict."""
    with jax.enable_x64(True):
        trace(F, jax.ShapeDtypeStruct((K,), jnp.float64))  # raises if F is no generator
        F = as_pytree(F)
        at_vertices, bounded = _at_vertices(F, K)
        seen = look(F, K, margin=0.0 if bounded else INSIDE)
        _check_float32(F, seen.points)
        return at_vertices, bounded, seen, judge(F, seen)


def _find(F: Generator, K: int) -> Findings:
    if (known := _by_formula(F, K)) is not None:
        return known
    start = time.perf_counter()
    at_vertices, bounded, seen, verdict = _search(F, K, survey)
    kinks = _kinks(seen, verdict)
    envelope = _envelope(seen, bounded and not kinks, verdict)
    how = f"searched: {len(seen.points)} points in every direction, in float64, no proof"
    seconds = time.perf_counter() - start
    return Findings(at_vertices, verdict, kinks, envelope, seen.spacing, how, seconds)


def _check_float32(F: Generator, points: np.ndarray) -> None:
    """Raise if F, which is searched in float64, is another function in float32."""
    spread = points[:: 1 + len(points) // COMPARED].astype(np.float32)
    double, single = (map_points(lambda F, p: F(p), F, p) for p in (spread.astype(float), spread))
    apart = np.abs(single - double)
    both = np.isfinite(apart)  # what overflows in float32 alone is still the same function
    if np.any(both) and np.max(apart[both]) > DIFFERENT * np.max(np.abs(double[both])):
        i = np.argmax(np.where(both, apart, 0))
        at = np.array2string(spread[i], precision=4, separator=", ")
        raise ValueError(
            "F must be one function in float32 and in float64, "
            f"got {single[i]:.6g} and {double[i]:.6g} at p = {at}"
        )


def _at_vertices(F: Generator, K: int) -> tuple[bool, bool]:
    """Whether F and its Hessian are finite at the vertices, of which at most 4096 are tried.

    The vertices are an argument because XLA folds 0 · log 0 to 0 if the first factor is a constant.
    """
    vertices = np.eye(K)[:4096]
    directions = np.random.default_rng(3).standard_normal(vertices.shape)

    def look(F, vertex, direction):
        return F(vertex), jax.jvp(jax.grad(F), (vertex,), (direction,))[1]

    values, products = map_points(look, F, vertices, directions)
    return bool(np.all(np.isfinite(values))), bool(np.all(np.isfinite(products)))


def _kinks(seen: Survey, verdict: Verdict) -> tuple[Kink, ...]:
    """The sharpest kinks, at most ten."""
    suspects = seen.suspects
    smallest = suspects.smallest_kink(verdict.precision)
    sharp = np.flatnonzero(np.abs(suspects.jump) > smallest)
    order = sharp[np.argsort(-np.abs(suspects.jump[sharp]), kind="stable")][:10]
    return tuple(Kink(suspects.middle[i], float(suspects.jump[i])) for i in order)


def _envelope(seen: Survey, bounded: bool, verdict: Verdict) -> Envelope:
    """The extremes that were found; if F is convex, those negative only by rounding become zero."""
    m, M = float(np.nanmin(seen.m)), float(np.nanmax(seen.M))
    m_tangent, M_tangent = float(np.nanmin(seen.m_tangent)), float(np.nanmax(seen.M_tangent))
    if verdict.convex:
        m_tangent, M_tangent = max(m_tangent, 0.0), max(M_tangent, 0.0)
        m = 0.0 if abs(m) < 1e-13 * M else m
    if verdict.convex is False and m_tangent >= 0:
        m_tangent = -np.inf  # not by curvature: at a concave kink or a jump
    M, M_tangent = (max(M, M_tangent), M_tangent) if bounded else (np.inf, np.inf)
    return Envelope(min(m, m_tangent), M, m_tangent, M_tangent, "searched")
