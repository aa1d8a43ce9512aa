"""Strict convexity: proofs of it, and segments along which a function is affine.

A proof is a list of vectors v: strictly convex along every d with Σd = 0 and v·d ≠ 0 for one of
them, on the boundary of the simplex as well as inside. They suffice if they span all tangents.

Along a flat segment the second derivative is zero exactly, because every term of it is: the forms
that F is made of do not change along it, or F is piecewise affine there.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import fmpq, fmpq_mat

from pgeom.geometry.certificates.disproofs import rational_point, sample
from pgeom.geometry.certificates.expression import Node, is_affine, is_constant, reachable, terms
from pgeom.geometry.certificates.frames import Point, Rational, at_vertices, rational
from pgeom.geometry.certificates.matrices import nonnegative_on_tangents
from pgeom.geometry.certificates.quadratics import matrix
from pgeom.geometry.certificates.rules import Proof
from pgeom.geometry.certificates.series import second_derivative


def spans_tangents(vectors: list[Point], K: int) -> bool:
    """Whether v·d = 0 for all of them and Σd = 0 only for d = 0."""
    if len(vectors) < K - 1:
        return False
    rows = [[fmpq(1)] * K, *([rational(x) for x in v] for v in vectors)]
    return fmpq_mat(rows).rank() == K


def strict_directions(x: Node, proof: Proof, K: int) -> list[Point]:
    """The vectors of a node, from its proof."""
    rule = proof["rule"]
    if rule == "ridge":
        return [proof["w"]] if proof["strict"] else []
    if rule == "sum":
        return [v for part in proof["parts"] for v in _of_part(x, part, K)]
    if rule == "length" or (rule == "quadratic" and _bends_everywhere(x, K)):
        return [tuple(Fraction(int(j == k)) for j in range(K)) for k in range(K)]
    if rule == "mean":
        return _independent(proof["args"], x, K) + _inner(proof["args"], proof, K)
    if rule != "compose":
        return []
    if x.op in ("lse", "softplus"):
        parts = zip(x.args, proof["parts"], strict=False)  # softplus has a part for the 0, too
        return _gaps(x, K) + [v for y, one in parts for v in strict_directions(y, one, K)]
    return [] if x.op in ("max", "ramp") else _inner(x.args, proof, K)


def _bends_everywhere(x: Node, K: int) -> bool:
    """Whether ±pᵀQp, which is convex, is strictly so along all tangents."""
    Q = matrix(x, K)
    signed = [] if Q is None else [Q, -Q]
    return any(nonnegative_on_tangents(2 * one, fmpq(1, 10**6)) for one in signed)


def _inner(args: Sequence[Node], proof: Proof, K: int) -> list[Point]:
    """The vectors of the one argument that is not constant, if there is only one."""
    free = [pair for pair in zip(args, proof["parts"], strict=True) if not is_constant(pair[0])]
    return strict_directions(*free[0], K) if len(free) == 1 else []


def _independent(args: list[Node], x: Node, K: int) -> list[Point]:
    """Forms that span everything: Minkowski's inequality is strict unless all are proportional."""
    if x.data[0] < 0 or x.data[0] == 1:
        return []
    if not all(map(is_affine, args)) or len(args) != len(x.args[0].args):
        return []
    forms = [tuple(at_vertices(y, K)) for y in args]
    full = fmpq_mat([[rational(v) for v in form] for form in forms]).rank() == K
    return forms if full else []


def _of_part(x: Node, part: dict, K: int) -> list[Point]:
    first = terms(x)[part["terms"][0]][1]
    return strict_directions(first, part["proof"], K)


def _gaps(x: Node, K: int) -> list[Point]:
    """How the affine arguments of a log-sum-exp differ."""
    forms = [at_vertices(y, K) for y in x.args if is_affine(y)]
    forms += [[Fraction(0)] * K] if x.op == "softplus" else []
    return [tuple(a - b for a, b in zip(form, forms[0], strict=True)) for form in forms[1:]]


def flat_segment(root: Node, K: int) -> tuple[Rational, Rational] | None:
    """The ends of a segment on which F is affine, if one is found."""
    forms = [at_vertices(x, K) for x in reachable(root) if is_affine(x)]
    across = _kernel(forms, K)
    steps = [across] if across is not None else []
    steps += [
        [Fraction(int(i == 0)) - Fraction(int(i == j)) for i in range(K)] for j in range(1, K)
    ]
    for centre in (np.full(K, 1 / K), *sample(K)[1:8]):
        p = rational_point(centre)
        for step in steps[:4]:
            d = _fit(p, step)
            if is_flat(root, p, d):
                return p, tuple(a + b for a, b in zip(p, d, strict=True))
    return None


def is_flat(root: Node, p: Rational, d: Rational) -> bool:
    """Whether the second derivative from p to p + d is exactly zero."""
    end = tuple(a + b for a, b in zip(p, d, strict=True))
    return bool(second_derivative(root, [p, end], d) == 0)


def _kernel(forms: list[list[Fraction]], K: int) -> list[Fraction] | None:
    """A direction d ≠ 0 with Σd = 0 along which no form changes."""
    rows = [[fmpq(1)] * K, *([rational(v) for v in form] for form in forms)]
    reduced, rank = fmpq_mat(rows).rref()
    if rank == K:
        return None
    table = reduced.tolist()[:rank]
    leading = [next(j for j, v in enumerate(row) if v != 0) for row in table]
    free = next(j for j in range(K) if j not in leading)
    step = [Fraction(0)] * K
    step[free] = Fraction(1)
    for row, j in zip(table, leading, strict=True):
        step[j] = -Fraction(int(row[free].p), int(row[free].q))
    return step


def _fit(p: Rational, step: list[Fraction]) -> Rational:
    """A multiple of the step that stays inside the simplex."""
    d = [rational(x) for x in step]
    size = max(abs(x) for x in d)
    return tuple(x / size * min(p) / 4 for x in d)
