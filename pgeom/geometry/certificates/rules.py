"""Curvature of compositions: a tree of rules that proves a node convex or concave on the simplex.

Independent of K: sums, functions of one direction (φ″ ≥ 0 by bisection), log-sum-exp, maxima,
norms, monomials, and functions of convex functions. A proof is a dictionary, ready to be written.

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
from pgeom.geometry.certificates.expression import (
    Node,
    constant,
    factors,
    is_affine,
    terms,
)
from pgeom.geometry.certificates.frames import Direction
from pgeom.geometry.certificates.matrices import (
    is_bilinear,
    is_semidefinite,
    nonnegative_on_tangents,
    quadratic_form,
    quadratic_matrix,
)
from pgeom.geometry.certificates.ranges import Ranges
from pgeom.geometry.certificates.ridges import Ridges, direction_of
from pgeom.geometry.certificates.univariate import derivatives

Proof = dict[str, Any]
MOST = 30  # classes, up to which √(pᵀQp) is decided exactly


class Rules:
    """Proves nodes convex (sign 1) or concave (sign −1), each of them once."""

    def __init__(self, ranges: Ranges, *, analytic: bool = False):
        """`analytic`: whether there are no kinks anywhere in the expression."""
        self.ranges, self.K, self.analytic = ranges, ranges.K, analytic
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
            return {"rule": "affine"}
        if x.op == "lin":
            return self._sum(x, sign)
        along = direction_of(x, self.K)
        if along is not None and (ridge := self._ridge([(Fraction(sign), x)], along)) is not None:
            return ridge
        if x.op in ("max", "lse"):
            return self._all(x, x.args, 1) if sign == 1 else None
        if x.op == "mono" and len(x.args) > 1:
            return self._monomial(x, sign)
        return self._length(x, sign) or self._norm(x, sign) or self._compose(x, sign)

    def _ridge(self, summands: list[tuple[Fraction, Node]], along: Direction) -> Proof | None:
        if self.ridges.least_bend(summands, along) < 0:
            return None
        strict = self.ridges.strictly_convex(summands, along, analytic=self.analytic)
        return {"rule": "ridge", "w": along.w, "strict": strict}

    def _all(self, x: Node, args: tuple[Node, ...], sign: int, rule: str = "") -> Proof | None:
        proofs = [self.prove(y, sign) for y in args]
        return None if None in proofs else {"rule": rule or x.op, "parts": proofs}

    def _sum(self, x: Node, sign: int) -> Proof | None:
        """Functions of the same direction are taken together, and so are products of two forms."""
        parts = []
        for along, indices in group(x, self.K):
            chosen = [(sign * terms(x)[i][0], terms(x)[i][1]) for i in indices]
            together = self._together(along, chosen)
            if together is not None:
                parts.append({"terms": indices, "proof": together})
                continue
            proofs = [self.prove(y, 1 if c > 0 else -1) for c, y in chosen]
            if None in proofs:
                return None
            parts += [{"terms": [i], "proof": p} for i, p in zip(indices, proofs, strict=True)]
        return {"rule": "sum", "parts": parts}

    def _together(self, along: Any, chosen: list[tuple[Fraction, Node]]) -> Proof | None:
        if along == "quadratic":
            return self._quadratic(chosen)
        return self._ridge(chosen, along) if isinstance(along, Direction) else None

    def _quadratic(self, chosen: list[tuple[Fraction, Node]]) -> Proof | None:
        matrix = quadratic_matrix(chosen, self.K)
        return {"rule": "quadratic"} if nonnegative_on_tangents(matrix) else None

    def _monomial(self, x: Node, sign: int) -> Proof | None:
        """Π x^r: concave if 0 ≤ r, Σr ≤ 1; convex if all r ≤ 0, or one r > 0 and Σr ≥ 1.

        Bases with r > 0 are concave in the first case and convex in the last, the others concave.
        """
        if not all(self.ranges.positive(y) for y in x.args):
            return None
        exponents = [r for _, r in factors(x)]
        up = [r for r in exponents if r > 0]
        if sign == -1:
            able = len(up) == len(exponents) and sum(exponents) <= 1
        else:
            able = not up or (len(up) == 1 and sum(exponents) >= 1)
        if not able:
            return None
        curvatures = [1 if sign == 1 and r > 0 else -1 for r in exponents]
        proofs = [self.prove(y, c) for y, c in zip(x.args, curvatures, strict=True)]
        return None if None in proofs else {"rule": "monomial", "parts": proofs}

    def _length(self, x: Node, sign: int) -> Proof | None:
        """√(pᵀQp) with Q ⪰ 0."""
        Q = length_form(x, self.K) if sign == 1 else None
        return {"rule": "length"} if Q is not None and is_semidefinite(Q) else None

    def _norm(self, x: Node, sign: int) -> Proof | None:
        """(c₀ + Σ c x^q)^{1/q}: convex for q > 1 and convex x ≥ 0, concave for q < 1.

        In the latter case x ≥ 0 is concave. For even q, affine x may have any sign.
        """
        found = norm_entries(x)
        if found is None:
            return None
        q, entries = found
        if (q > 1) != (sign == 1):
            return None
        for y in entries:
            even = q % 2 == 0 and is_affine(y)
            if not even and self.ranges.sign(y) not in (0, 1):
                return None
        return self._all(x, tuple(entries), sign, "norm")

    def _compose(self, x: Node, sign: int) -> Proof | None:
        """f(y): f convex, and y affine, or convex where f increases, or concave where it falls."""
        self.ranges.require_smooth(x)
        (y,) = x.args
        _, first, second = derivatives(x.op, self.ranges.range(y), x.data)
        if sign == -1:
            first, second = -first, -second
        if not second.lo >= 0:
            return None
        inner = 1 if first.lo >= 0 else -1 if first.hi <= 0 else None
        if inner is None:
            return None
        proof = self.prove(y, inner)
        if proof is None:
            return None
        rises = bool(first.lo > 0 or first.hi < 0)
        return {"rule": "compose", "parts": [proof], "strict": rises}


def group(x: Node, K: int) -> list[tuple[Any, list[int]]]:
    """The terms of a sum that are taken together, by index; affine terms are left out.

    By direction; if there are products of forms in two directions, "quadratic" with all of them and
    all squares; and those that remain one by one.
    """
    groups: dict[Any, list[int]] = {}
    rows = [(i, y, direction_of(y, K)) for i, (_, y) in enumerate(terms(x)) if not is_affine(y)]
    mixed = any(along is None and is_bilinear(y) for _, y, along in rows)
    for i, y, along in rows:
        key = "quadratic" if mixed and is_bilinear(y) else along if along is not None else i
        groups.setdefault(key, []).append(i)
    return list(groups.items())


def length_form(x: Node, K: int) -> fmpq_mat | None:
    """Q with x = √(pᵀQp) on the simplex, or None if x is no such thing."""
    if x.op != "mono" or x.data != (Fraction(1, 2),) or K > MOST:
        return None
    return quadratic_form(x.args[0], K)


def norm_entries(x: Node) -> tuple[Fraction, list[Node]] | None:
    """(q, the x_i) of (c₀ + Σ c_i x_i^q)^{1/q} with c₀, c_i ≥ 0, or None if x is no such thing."""
    if x.op != "mono" or len(x.args) != 1:
        return None
    (base,), (r,) = x.args, x.data
    q = 1 / r
    if q in (0, 1) or base.op != "lin" or constant(base) < 0:
        return None
    entries = []
    for c, y in terms(base):
        if c < 0 or y.op != "mono" or y.data != (q,):
            return None
        entries.append(y.args[0])
    return q, entries
