"""All that is known about a generator, from a formula or from one search, remembered.

>>> import jax.numpy as jnp
>>> def cubic(p): return jnp.sum(p**3)
>>> find(cubic, 3) is find(cubic, 3)
True
"""

import time
from collections import OrderedDict
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import edge
from pgeom.geometry.any_generator import scalar_function
from pgeom.geometry.closed_forms import ClosedGenerator, as_pytree
from pgeom.geometry.convexity import Verdict, judge
from pgeom.geometry.envelopes import Envelope, known_envelope
from pgeom.geometry.sampling import INSIDE, map_points
from pgeom.geometry.survey import Survey, survey
from pgeom.types import Generator

REMEMBERED = 32


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


_remembered: OrderedDict[tuple[int, int], tuple[Generator, Findings]] = OrderedDict()


def find(F: Generator, K: int) -> Findings:
    """The findings about F on K classes, by formula or search; a second call searches no more.

    An object of a user's class may change between two calls, and is searched again.
    """
    edge.check_num_classes(K)
    if not (hasattr(F, "__name__") or isinstance(F, ClosedGenerator)):
        return _find((lambda p: F(p)) if jax.tree_util.all_leaves([F]) else F, int(K))
    key = id(F), int(K)
    if key not in _remembered:
        _remembered[key] = F, _find(F, int(K))  # F with it, so that its id is not given away
    _remembered.move_to_end(key)
    if len(_remembered) > REMEMBERED:
        _remembered.popitem(last=False)
    return _remembered[key][1]


def _find(F: Generator, K: int) -> Findings:
    begun = time.perf_counter()
    if (known := known_envelope(F, K)) is not None and known.m_tangent > 1e-13 * known.M:
        verdict = Verdict(True, True, True, float(np.finfo(float).eps))
        how = f"{known.how}: the smallest tangent eigenvalue is at least {known.m_tangent:.6g}"
        return Findings(True, verdict, (), known, None, how, time.perf_counter() - begun)
    with jax.enable_x64(True):
        _refuse_unless_scalar(F, K)
        F = as_pytree(F)
        at_vertices, bounded = _at_vertices(F, K)
        seen = survey(F, K, margin=0.0 if bounded else INSIDE)
        verdict = judge(F, seen)
    kinks = _kinks(seen, verdict)
    envelope = _envelope(seen, bounded and not kinks, verdict)
    how = f"searched: {len(seen.points)} points in every direction, in float64, no proof"
    seconds = time.perf_counter() - begun
    return Findings(at_vertices, verdict, kinks, envelope, seen.spacing, how, seconds)


def _refuse_unless_scalar(F: Generator, K: int) -> None:
    jax.eval_shape(scalar_function(F), jax.ShapeDtypeStruct((K,), jnp.float64))


def _at_vertices(F: Generator, K: int) -> tuple[bool, bool]:
    """Whether F and its Hessian are finite at the vertices, of which 4096 at most are tried.

    The vertices are an argument because XLA takes 0 · log 0 for 0 where it knows the first.
    """
    vertices = np.eye(K)[:4096]
    directions = np.random.default_rng(3).standard_normal(vertices.shape)

    def look(F, vertex, direction):
        return F(vertex), jax.jvp(jax.grad(F), (vertex,), (direction,))[1]

    values, products = map_points(look, F, vertices, directions)
    return bool(np.all(np.isfinite(values))), bool(np.all(np.isfinite(products)))


def _kinks(seen: Survey, verdict: Verdict) -> tuple[Kink, ...]:
    """The sharpest kinks, ten at most."""
    suspects = seen.suspects
    smallest = suspects.smallest_kink(verdict.precision)
    sharp = np.flatnonzero(np.abs(suspects.jump) > smallest)
    order = sharp[np.argsort(-np.abs(suspects.jump[sharp]), kind="stable")][:10]
    return tuple(Kink(suspects.middle[i], float(suspects.jump[i])) for i in order)


def _envelope(seen: Survey, bounded: bool, verdict: Verdict) -> Envelope:
    """The extremes that were seen; what is negative by rounding alone in a convex F is zero."""
    m, M = float(np.nanmin(seen.m)), float(np.nanmax(seen.M))
    m_tangent, M_tangent = float(np.nanmin(seen.m_tangent)), float(np.nanmax(seen.M_tangent))
    if verdict.convex:
        m_tangent, M_tangent = max(m_tangent, 0.0), max(M_tangent, 0.0)
        m = 0.0 if abs(m) < 1e-13 * M else m
    if verdict.convex is False and m_tangent >= 0:
        m_tangent = -np.inf  # not by curvature: at a concave kink or a jump
    M, M_tangent = (max(M, M_tangent), M_tangent) if bounded else (np.inf, np.inf)
    return Envelope(min(m, m_tangent), M, m_tangent, M_tangent, "searched")
