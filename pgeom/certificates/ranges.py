"""The range of a function on the simplex as a certificate.

A convex F is largest at a vertex and lies above its tangents. Any other F is bounded on cells: on
the hull of v_0, …, v_n it is at least F(v_0) plus the least of its slopes towards a v_i.

>>> import jax.numpy as jnp
>>> found = prove_range(lambda p: jnp.sum(p**2), 3)
>>> float(found.least), float(found.largest)
(0.333333333332, 1.000000000002)
"""

import math
import time
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from flint import ctx, fmpq

from pgeom.certificates.arithmetics import Series, values
from pgeom.certificates.certificate import jaxpr_hash, seal, write_document
from pgeom.certificates.disproofs import rational_point, sample
from pgeom.certificates.expression import (
    Point,
    as_fraction,
    difference,
    nearby,
    unit,
)
from pgeom.certificates.hessians import bisect
from pgeom.certificates.prover import node_rows
from pgeom.certificates.reader import read
from pgeom.certificates.rules import span_tangents

PRECISION = 128  # bits
CELLS = 20_000  # of a cover, if F is not convex by rules
LOWEST = 3  # vertices, and other points, whose tangents are tried
ROUNDING = 1e-12  # by which bounds are widened, so that other roundings confirm them
RADII = 1e-7  # the same for bounds on cells: balls have radii of 30 bits


class RangeCertificate(NamedTuple):
    """What is proved about the values of F on K classes.

    Attributes:
      K: the number of classes.
      least, largest: F is never below and never above.
      lowest, highest: F takes a value of at most `lowest`, and one of at least `highest`.
      seconds: the time taken.
      document: the certificate as it is written.
    """

    K: int
    least: Fraction
    largest: Fraction
    lowest: Fraction
    highest: Fraction
    seconds: float
    document: dict[str, Any]

    def write(self, path: str | Path):
        """Write the certificate as JSON, for `python -m proofs_numeric.checker PATH`."""
        write_document(self.document, path)


class _Extreme(NamedTuple):
    """sign·F ≥ bound everywhere, by a cover, and sign·F ≤ value at a point."""

    bound: fmpq
    cover: dict[str, Any]
    point: Point
    value: fmpq


def prove_range(F, K, *, gap: float = 1e-3) -> RangeCertificate:
    """Bounds on the least and the largest value of F on the simplex, and points that attain them.

    Args:
      F: any function `F(p[K]) -> scalar` of JAX operations.
      K: the number of classes.
      gap: how far a bound may be from the value at a point, relative to it or to a tenth of the
        size of F. That of a convex F is as close as a tangent or a vertex gives it.

    Raises:
      ValueError: if F uses an operation that cannot be read.
    """
    start = time.perf_counter()
    with ctx.workprec(PRECISION):
        root, rules, jaxpr = read(F, K)
        tree = rules.prove(root, 1)
        low, high = (_extreme(root, K, sign, tree, gap) for sign in (1, -1))
        document = _document(root, K, tree, jaxpr_hash(jaxpr), low, high)
    seconds = time.perf_counter() - start
    ends = (low.bound, -high.bound, low.value, -high.value)
    least, largest, lowest, highest = map(as_fraction, ends)
    return RangeCertificate(K, least, largest, lowest, highest, seconds, document)


def _extreme(root, K, sign, tree, gap):
    if tree is None:
        return _on_cells(root, K, sign, gap)
    return _by_tangent(root, K) if sign == 1 else _by_vertices(root, K)


def _by_vertices(root, K):
    ends = [-_value(root, unit(k, K)) for k in range(K)]
    k = int(np.argmin([float(x.mid()) for x in ends]))
    lowest = min((x.lower() for x in ends), key=float)
    cover = {"at": rational_point(np.full(K, 1 / K))}
    return _Extreme(_outside(lowest, -1), cover, unit(k, K), _outside(ends[k].upper(), 1))


def _by_tangent(root, K):
    """The best of the tangents at a few points: the centre, and the lowest vertices and others."""
    points, vertices = sample(K), np.eye(K)
    points = points[(points > 0).all(axis=1)]
    lowest = points[np.argsort(values(root, points))[:LOWEST]]
    tried = [unit(int(k), K) for k in np.argsort(values(root, vertices))[:LOWEST]]
    tried += [tuple([fmpq(1, K)] * K), *map(rational_point, lowest)]
    best, at = -math.inf, tried[0]
    for p in tried:
        lines = [Series([p], difference(unit(k, K), p))(root) for k in range(K)]
        ends = [float((line[0] + line[1]).lower()) for line in lines]  # one step away
        if all(end > best for end in ends):  # and none is NaN
            best, at = min(ends), p
    return _Extreme(_outside(best, -1), {"at": at}, at, _outside(_value(root, at).upper(), 1))


def _on_cells(root, K, sign, gap):
    """The cell with the lowest bound is halved until that is close to a value."""
    best, place = math.inf, unit(0, K)
    size = float(np.nanmax(np.abs(values(root, sample(K)))))

    def bound(cell, leaf):
        nonlocal best, place
        p = cell.vertices[0]
        start = _value(root, p)
        if (top := float((sign * start).upper())) < best:
            best, place = top, p
        steps = (difference(v, p) for v in cell.vertices)
        ends = [sign * (start + Series(cell.vertices, d)(root)[1]) for d in steps]
        return min(-math.inf if x.is_nan() else float(x.lower()) for x in ends), None

    def done(lowest, count):
        return lowest >= best - gap * max(abs(best), size / 10) or count >= CELLS

    tree, leaves = bisect(K, bound, done)
    return _Extreme(_outside(leaves[0][0], -1, RADII), tree, place, _outside(best, 1))


def _document(root, K, tree, jaxpr, low, high):
    strict = tree is not None and span_tangents(tree.strict, K)
    rules = None if tree is None else {"bound": 0, "proof": tree.document(), "cover": {}}
    return seal(
        {
            "K": K,
            "jaxpr": jaxpr,
            "nodes": node_rows(root, K),
            "convex": "unknown" if tree is None else "proved",
            "strictly_convex": "proved" if strict else "unknown",
            "m_tangent": None if tree is None else 0,
            "M_tangent": None,
            "least": low.bound,
            "largest": -high.bound,
            "method": "bisection" if tree is None else "rules",
            "evidence": {
                "m_tangent": rules,
                "least": {"bound": low.bound, "cover": low.cover},
                "largest": {"bound": high.bound, "cover": high.cover},
            },
            "segment": None,
            "attained": {
                "least": {"p": low.point, "d": [], "value": low.value},
                "largest": {"p": high.point, "d": [], "value": -high.value},
            },
        }
    )


def _value(root, p):
    return Series([p], (fmpq(0),) * len(p))(root)[0]


def _outside(x, sign, slack=ROUNDING):
    """A rational number a little above x (sign 1) or below it."""
    value = float(x)
    return nearby(value + sign * slack * (1 + abs(value)), 10**15)
