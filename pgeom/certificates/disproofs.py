"""Points that no convex, or no strictly convex, function admits.

Candidates are found in float64, where the curvature is negative and where D_F(η, p) < 0; a
candidate counts only if it is confirmed in ball arithmetic. Along a flat segment the second
derivative is zero exactly, because every term of it is.

>>> from pgeom.certificates.algebra import Graph
>>> g = Graph(3)
>>> bool(negative_pair(g.scale(-1, g.power(g.p(0), 2)), 3, [[0.2, 0.3, 0.5]]).divergence < 0)
True
>>> p, q = flat_segment(g.power(g.p(0), 2), 3)  # along which p_0 does not change
>>> p[0] == q[0]
True
"""

import itertools
from typing import NamedTuple

import numpy as np
from flint import arb, fmpq, fmpq_mat

from pgeom.certificates.arithmetics import (
    Series,
    affordable,
    gradients,
    second_derivative,
    spectra,
    values,
)
from pgeom.certificates.expression import (
    Direction,
    Point,
    at_vertices,
    difference,
    is_affine,
    reachable,
    unit,
)

MANY = 20  # classes, beyond which few points are tried
RECENT = 12  # operations, the last ones, whose kinks and extremes are tried
BITS = 40  # of the coordinates of a witness


class Pair(NamedTuple):
    """η and p; `divergence` encloses D_F(η, p)."""

    eta: Point
    p: Point
    divergence: arb


def divergence(root, eta, p):
    """F(η) − F(p) − ⟨∇F(p), η − p⟩; NaN at a kink."""
    d = difference(eta, p)
    start, end = Series([p], d)(root), Series([eta], d)(root)
    return end[0] - start[0] - start[1]


def negative_pair(root, K, extra) -> Pair | None:
    """A pair with D_F(η, p) < 0, if one is found; `extra` are points to try first."""
    for eta, p in _candidates(root, K, extra):
        try:
            exact = rational_point(eta), rational_point(p)
        except ValueError:
            continue
        if (value := divergence(root, *exact)) < 0:
            return Pair(*exact, value)
    return None


def rational_point(x) -> Point:
    """The point with coordinates rounded to multiples of 2^−40; the largest one makes up for it.

    Raises:
      ValueError: if it is not inside the simplex.
    """
    scaled = [round(float(v) * 2**BITS) or int(v > 0) for v in x]  # what is tiny is not nothing
    scaled[int(np.argmax(x))] += 2**BITS - sum(scaled)
    if min(scaled) <= 0:
        raise ValueError("a point outside the open simplex")
    return tuple(fmpq(v, 2**BITS) for v in scaled)


def _candidates(root, K, extra):
    """Pairs (η, p) for which float64 says D < 0: where the curvature is negative, then any."""
    points = np.concatenate([np.array(extra, float), sample(K), _peaks(root, K)])
    points = points[(points > 0).all(axis=1)]
    if K > MANY:
        points = points[: 4 * affordable(root, K)]
    known = spectra(root, points)
    negative = known.lowest < -1e-12 * np.abs(known.highest)
    order = np.argsort(known.lowest[negative])[:20]
    for p, d in zip(known.points[negative][order], known.down[negative][order], strict=True):
        for h in 10.0 ** -np.arange(1, 8):
            yield from ((p + h * d, p), (p - h * d, p))
    yield from _across_kinks(root, K)
    # pairs of any points, for jumps and kinks, which no Hessian shows
    rng = np.random.default_rng(0)
    points = points[rng.permutation(len(points))[:400]]
    others = points[rng.permutation(len(points))]
    yield from _lowest(root, others, points)


def _lowest(root, eta, points):
    """Up to five of the pairs for which D is lowest in float64, and negative."""
    start, slopes = values(root, points), gradients(root, points)
    with np.errstate(all="ignore"):  # outside the simplex, or where F is infinite
        gaps = values(root, eta) - start - np.sum(slopes * (eta - points), axis=1)
        distance = np.abs(eta - points).sum(axis=1)
        relative = gaps / (1e-300 + np.abs(start) + np.abs(slopes).max(axis=1) * distance)
    for i in np.argsort(np.where(np.isfinite(relative), relative, np.inf))[:5]:
        if relative[i] < -1e-13:
            yield eta[i], points[i]


def _across_kinks(root, K):
    """Pairs on either side of where two affine arguments of a maximum are equal."""
    kinks = [x for x in reachable(root) if x.op == "max" and all(map(is_affine, x.args))]
    for x in kinks[-RECENT:]:
        gap = difference(*(at_vertices(y, K) for y in x.args[:2]))
        low, high = min(gap), max(gap)
        if low < 0 < high:
            along = Direction(tuple((v - low) / (high - low) for v in gap))
            on = [inside(along, -low / (high - low), fmpq(1, n)) for n in (3, 50, 10**3, 10**5)]
            points, step = np.array(on, float), np.array(along.step(), float)
            for h in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
                yield from _lowest(root, points + h * step / 2, points - h * step / 2)


def sample(K) -> np.ndarray:
    """Points near and far from the centre, the vertices and the faces."""
    rng = np.random.default_rng([0, K])
    spread = [rng.dirichlet(np.full(K, c), 150) for c in (0.2, 1.0, 5.0)]
    edges = [0.999 * rng.dirichlet(np.full(K, c), 50) + 0.001 / K for c in (0.05, 0.5)]
    pairs = np.array([[t, 1 - t] + [0.0] * (K - 2) for t in np.linspace(0.02, 0.98, 25)])
    pairs = 0.99 * np.roll(pairs, 1, axis=1) + 0.01 / K
    return np.concatenate([np.full((1, K), 1 / K), *spread, *edges, pairs])


def inside(along, u, share) -> Point:
    """A point with w·p = u between an edge of the simplex and the centre, which has this share."""
    K = len(along.w)
    between = along.point((u - share * sum(along.w) / K) / (1 - share))
    return tuple((1 - share) * x + share / K for x in between)


def _peaks(root, K):
    """Points around where a node is extreme, by random ascent: narrow dents are where some peak."""
    rng, found = np.random.default_rng(1), []
    nodes = [x for x in reachable(root) if not is_affine(x) and x.op not in ("lin", "max")]
    for x, sign in itertools.product(nodes[-RECENT:], (1, -1)):
        p = np.full((1, K), 1 / K)
        for width in 0.5 ** np.arange(1, 14):
            cloud = np.abs(p + width * rng.normal(size=(50, K)))
            cloud = np.concatenate([p, cloud / cloud.sum(axis=1, keepdims=True)])
            heights = sign * values(x, cloud)
            p = cloud[[np.argmax(np.where(np.isfinite(heights), heights, -np.inf))]]
            found.append(cloud[:2])
    return np.concatenate(found or [np.empty((0, K))])


def flat_segment(root, K) -> tuple[Point, Point] | None:
    """The ends of a segment on which F is affine, if one is found."""
    unchanged = _unchanged_direction(root, K)
    steps = [] if unchanged is None else [unchanged]
    steps += [difference(unit(0, K), unit(j, K)) for j in range(1, K)]
    for centre in (np.full(K, 1 / K), *sample(K)[1:8]):
        p = rational_point(centre)
        for step in steps[:4]:
            scale = min(p) / 4 / max(abs(x) for x in step)  # inside the simplex
            d = tuple(scale * x for x in step)
            q = tuple(a + b for a, b in zip(p, d, strict=True))
            if second_derivative(root, [p, q], d) == 0:
                return p, q
    return None


def _unchanged_direction(root, K):
    """A direction d ≠ 0 with Σd = 0 along which no affine function that F is made of changes."""
    forms = [at_vertices(x, K) for x in reachable(root) if is_affine(x)]
    rows = fmpq_mat([[fmpq(1)] * K, *forms])
    kernel, dimension = rows.numer_denom()[0].nullspace()
    return tuple(fmpq(kernel[k, 0]) for k in range(K)) if dimension else None
