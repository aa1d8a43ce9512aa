"""Curvature of compositions: a tree of rules that proves a node convex or concave on the simplex.

Independent of K: sums, functions of one direction (φ″ ≥ 0 by bisection), quadratic functions,
lengths √(pᵀQp), log-sum-exp, maxima, and functions of convex functions. A proof is a dictionary,
ready to be written.

>>> from pgeom.geometry.certificates.algebra import Graph
>>> from pgeom.geometry.certificates.ranges import Ranges
>>> ranges = Ranges(3)
>>> g = Graph(3, ranges.sign)
>>> squares = g.add(*(g.power(g.p(k), 2) for k in range(3)))
>>> Rules(ranges).prove(g.exp(squares), 1)["rule"]
'compose'
"""

from fractions import Fraction
from typing import Any

from flint import fmpq_mat

from pgeom.geometry.certificates.enclosures import Undefined
from pgeom.geometry.certificates.expression import Node, is_affine, reachable, terms
from pgeom.geometry.certificates.frames import Direction
from pgeom.geometry.certificates.matrices import is_semidefinite, nonnegative_on_tangents
from pgeom.geometry.certificates.quadratics import matrix
from pgeom.geometry.certificates.ranges import Ranges
from pgeom.geometry.certificates.ridges import Ridges, direction_of
from pgeom.geometry.certificates.series import is_positive

Proof = dict[str, Any]
NO_RIDGES = ("max", "ramp", "quadratic")  # operations
AFFINE: Proof = {"rule": "affine"}
BENT = {"exp": 1, "ramp": 1, "log": -1}  # increasing functions: the sign of f″


class Rules:
    """Proves nodes convex (sign 1) or concave (sign −1), each of them once."""

    def __init__(self, ranges: Ranges):
        self.ranges, self.K = ranges, ranges.K
        self.ridges = Ridges(ranges)
        self._proofs: dict[tuple[Node, int], Proof | None] = {}

    def prove(self, x: Node, sign: int) -> Proof | None:
        """A proof that sign·x is convex, or None if no rule gives one."""
        if (x, sign) not in self._proofs:
            try:
                proof = self._prove(x, sign)
            except Undefined:
                proof = None
            self._proofs[x, sign] = proof
        return self._proofs[x, sign]

    def _prove(self, x: Node, sign: int) -> Proof | None:
        if is_affine(x):
            return AFFINE
        if x.op == "lin":
            return self._sum(x, sign)
        along = ridge_direction(x, self.K)
        if along is not None and (ridge := self._ridge([(Fraction(sign), x)], along)) is not None:
            return ridge
        if x.op == "quadratic":
            Q = matrix(x, self.K)
            return {"rule": x.op} if Q is not None and nonnegative_on_tangents(sign * Q) else None
        if x.op in ("max", "lse", "softplus"):
            return self._largest(x) if sign == 1 else None
        return self._length(x, sign) or self._compose(x, sign)

    def _ridge(self, summands: list[tuple[Fraction, Node]], along: Direction) -> Proof | None:
        if not self.ridges.is_convex(summands, along):
            return None
        return {"rule": "ridge", "w": along.w, "strict": self.ridges.is_strict(summands, along)}

    def _sum(self, x: Node, sign: int) -> Proof | None:
        """Functions of the same direction are taken together."""
        parts = []
        for along, indices in group(x, self.K):
            chosen = [(sign * terms(x)[i][0], terms(x)[i][1]) for i in indices]
            together = self._ridge(chosen, along) if along is not None else None
            if together is not None:
                parts.append({"terms": indices, "proof": together})
                continue
            proofs = [self.prove(y, 1 if c > 0 else -1) for c, y in chosen]
            if None in proofs:
                return None
            parts += [{"terms": [i], "proof": p} for i, p in zip(indices, proofs, strict=True)]
        return {"rule": "sum", "parts": parts}

    def _largest(self, x: Node) -> Proof | None:
        proofs = [self.prove(y, 1) for y in x.args]
        if None in proofs:
            return None
        if x.op == "softplus":  # the log-sum-exp of x and 0
            return {"rule": "lse", "parts": [*proofs, AFFINE]}
        return {"rule": x.op, "parts": proofs}

    def _length(self, x: Node, sign: int) -> Proof | None:
        """√(pᵀQp) with Q ≻ 0."""
        Q = length_form(x, self.K) if sign == 1 else None
        return {"rule": "length"} if Q is not None else None

    def _compose(self, x: Node, sign: int) -> Proof | None:
        """f(y): f convex, and y affine, or convex where f increases, or concave where it falls."""
        if len(x.args) != 1 or x.op not in (*BENT, "mono"):
            return None
        (y,) = x.args
        r = x.data[0] if x.op == "mono" else Fraction(1)
        if BENT.get(x.op, r * (r - 1)) * sign <= 0:
            return None
        if x.op in ("log", "mono") and not is_positive(y, self.K):
            return None
        proof = self.prove(y, sign if r > 0 else -sign)
        return None if proof is None else {"rule": "compose", "parts": [proof]}


def ridge_direction(x: Node, K: int) -> Direction | None:
    """The direction that x is a function of, if that is smooth or max(·, 0)^r itself."""
    inner = x.args if x.op == "ramp" and is_affine(x.args[0]) else (x,)
    smooth = all(z.op not in NO_RIDGES for y in inner for z in reachable(y))
    return direction_of(x, K) if smooth else None


def group(x: Node, K: int) -> list[tuple[Direction | None, list[int]]]:
    """The terms of a sum that are functions of one direction, by index, and the others one by one.

    Affine terms are left out.
    """
    groups: dict[Any, list[int]] = {}
    for i, (_, y) in enumerate(terms(x)):
        if not is_affine(y):
            along = ridge_direction(y, K)
            groups.setdefault(i if along is None else along, []).append(i)
    return [(key if isinstance(key, Direction) else None, found) for key, found in groups.items()]


def length_form(x: Node, K: int) -> fmpq_mat | None:
    """Q ≻ 0 with x = √(pᵀQp) on the simplex, or None if x is no such thing."""
    if x.op != "mono" or x.data != (Fraction(1, 2),):
        return None
    Q = matrix(x.args[0], K)
    return Q if Q is not None and is_semidefinite(Q) and Q.det() != 0 else None
