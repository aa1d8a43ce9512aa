"""Proved bounds on the values of a function on the simplex.

`upper_bound` is by bisection. `extremes` is for convex and concave functions: one extreme is at a
vertex, the other one is bounded by the tangent plane at a point.

>>> import jax.numpy as jnp
>>> round(upper_bound(lambda p: p[0] * p[1], 2, gap=1e-6), 5)
0.25
>>> [round(x, 5) for x in extremes(lambda p: jnp.sum(p**2), 4, at=[0.25] * 4)]
[0.25, 1.0]
"""

import heapq
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

from flint import arb, ctx

from pgeom.geometry.certificates.enclosures import Undefined
from pgeom.geometry.certificates.expression import reachable
from pgeom.geometry.certificates.frames import Cell, Rational, Segment, rational, unit
from pgeom.geometry.certificates.jets import Jets
from pgeom.geometry.certificates.reader import Reading, read
from pgeom.geometry.certificates.ridges import direction_of
from pgeom.geometry.certificates.rules import Rules
from pgeom.types import Generator

PRECISION = 128  # bits


def upper_bound(
    F: Generator, K: int, *, gap: float = 1e-4, target: float = -math.inf, cells: int = 5000
) -> float:
    """A number that F never exceeds on the simplex of K classes.

    Args:
      F: any function of JAX operations.
      K: the number of classes.
      gap: how far above the largest value found the bound may be.
      target: a bound that suffices.
      cells: the most cells that the simplex is cut into.
    """
    with ctx.workprec(PRECISION):
        reading, count = _checked(F, K), itertools.count()
        first = Cell(_vertices(reading))
        queue = [(-_above(reading, first), next(count), first)]
        largest = -math.inf
        while len(queue) < cells:
            bound, _, cell = queue[0]
            largest = max(largest, float(_at(reading, cell.centre()).hi))
            if -bound <= max(target, largest + gap):
                break
            heapq.heappop(queue)
            for half in cell.split(*cell.longest_edge()):
                heapq.heappush(queue, (-_above(reading, half), next(count), half))
        return -queue[0][0]


def extremes(F: Generator, K: int, *, at: Sequence[float | Fraction]) -> tuple[float, float]:
    """Numbers that a convex or concave F lies between, tight if F is extreme `at` this point.

    Raises:
      ValueError: if no rule proves F convex or concave.
    """
    with ctx.workprec(PRECISION):
        reading = _checked(F, K)
        rules = Rules(reading.ranges)
        sign = next((s for s in (1, -1) if rules.prove(reading.root, s) is not None), None)
        if sign is None:
            raise ValueError("F must be convex or concave by the curvature rules")
        corners = [_at(reading, unit(k, K)) for k in range(K)]
        x = tuple(rational(Fraction(v)) for v in at)
        planes = []
        for k in range(K):
            step = tuple(a - b for a, b in zip(unit(k, K), x, strict=True))
            jet = Jets(Segment(x, step, 0), reading.ranges)(reading.root)
            planes.append(jet.value + jet.slope)
        below, above = (planes, corners) if sign == 1 else (corners, planes)
        return _down(min(v.lo for v in below)), -_down(-max(v.hi for v in above))


def _checked(F: Generator, K: int) -> Reading:
    reading = read(F, K)
    for x in reachable(reading.root):
        reading.ranges.require_domain(x)
    return reading


def _vertices(reading: Reading) -> list[Rational]:
    """Of the simplex; of an edge is enough for a function of one direction."""
    K = reading.ranges.K
    along = direction_of(reading.root, K)
    classes = range(K) if along is None else (along.w.index(0), along.w.index(1))
    return [unit(k, K) for k in classes]


def _at(reading: Reading, x: Rational):
    return Jets(Cell([x]))(reading.root).value


def _above(reading: Reading, cell: Cell) -> float:
    """The upper end of the range, or of the value at the centre plus slopes to the vertices."""
    plain = Jets(cell)(reading.root).value.hi
    centre = cell.centre()
    try:
        slopes = []
        for v in cell.vertices:
            d = tuple(a - b for a, b in zip(v, centre, strict=True))
            slopes.append(Jets(Cell(cell.vertices, d), reading.ranges)(reading.root).slope.hi)
        mean = (_at(reading, centre).hi + max(slopes)).upper()
    except Undefined:
        return -_down(-plain)
    return -_down(-min(plain, mean)) if mean.is_finite() else -_down(-plain)


def _down(x: arb) -> float:
    """A float that does not exceed an exact number."""
    value = float(x)
    return value if math.isinf(value) or arb(value) <= x else math.nextafter(value, -math.inf)
