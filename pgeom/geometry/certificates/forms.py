"""Hessians from below as structured matrices: Σ c_r w_r w_rᵀ on a cell of the simplex.

The terms of F are grouped into parts. Each part gives a symmetric matrix L with H ⪰ L on the cell;
for bounds from above, the same is done with −F.
"""

import math
from fractions import Fraction
from typing import Any, NamedTuple

from flint import arb, fmpq, fmpq_mat

from pgeom.geometry.certificates.enclosures import Interval, Undefined
from pgeom.geometry.certificates.expression import ONE, Node, terms
from pgeom.geometry.certificates.frames import Cell, Direction, Point, rational
from pgeom.geometry.certificates.quadratics import matrix
from pgeom.geometry.certificates.ridges import round_down
from pgeom.geometry.certificates.rules import Rules, group, length_form
from pgeom.geometry.certificates.series import second_derivative

ROUNDING = {2: 1 + 2.0**-20}  # of radii, so that an elimination in balls succeeds; by dimension
Matrix = dict[tuple[int, int], fmpq]


class Part(NamedTuple):
    """Terms that are bounded together.

    Attributes:
      kind: `ridge`, `quadratic`, `length`, `rule` or `hessian`.
      indices: the terms of F, by index.
      chosen: the same, as pairs of a coefficient with its sign and a node.
      data: what the kind needs: a direction, a matrix, a proof.
    """

    kind: str
    indices: list[int]
    chosen: list[tuple[Fraction, Node]]
    data: Any = None


class Bounded(NamedTuple):
    """H ⪰ matrix on a cell, and the bounds of the ridges that it is made of."""

    matrix: fmpq_mat
    bends: list[Fraction]


class Forms:
    """The parts of sign·F, and their matrices on cells."""

    def __init__(self, root: Node, sign: int, rules: Rules):
        self.K, self.rules, self.sign = rules.K, rules, sign
        total = root if root.op == "lin" else Node(-1, "lin", (root,), (Fraction(0), ONE))
        self.parts = []
        for along, indices in group(total, self.K):
            chosen = [(sign * terms(total)[i][0], terms(total)[i][1]) for i in indices]
            self.parts.append(self._part(along, indices, chosen))

    def _part(self, along: Direction | None, indices: list[int], chosen: list) -> Part:
        if along is not None:
            return Part("ridge", indices, chosen, along)
        ((c, x),) = chosen
        if x.op == "quadratic":
            return Part("quadratic", indices, chosen, matrix(x, self.K))
        if (Q := length_form(x, self.K)) is not None:
            return Part("length", indices, chosen, (Q, inverse_sum(Q)))
        proof = self.rules.prove(x, 1 if c > 0 else -1)
        return Part("hessian" if proof is None else "rule", indices, chosen, proof)

    def on_cell(self, cell: Cell) -> Bounded | None:
        """The matrix on a cell, or None if a part has no bound there."""
        total: Matrix = {}
        bends = []
        for part in self.parts:
            if part.kind == "ridge":
                lo, hi = cell.range_along(part.data)
                least = self.rules.ridges.least_bend(part.chosen, part.data, lo, hi)
                if math.isinf(least):
                    return None
                bends.append(Fraction(least))
                add_square(total, fmpq(*least.as_integer_ratio()), part.data.w)
                continue
            try:
                self._add(total, part, cell)
            except Undefined:
                return None
        zero = fmpq(0)
        rows = [[total.get((i, j), zero) for j in range(self.K)] for i in range(self.K)]
        return Bounded(fmpq_mat(rows), bends)

    def _add(self, total: Matrix, part: Part, cell: Cell) -> None:
        if part.kind == "quadratic":
            add_multiple(total, 2 * rational(part.chosen[0][0]), part.data)
        elif part.kind == "length":
            add_multiple(total, length_factor(part, cell), part.data[0])
        elif part.kind == "hessian":
            add_hessian(total, part, cell)


def length_factor(part: Part, cell: Cell) -> fmpq:
    """f with H ⪰ f·Q for c·√(pᵀQp): on tangents Q/(s·(pᵀQp)^{3/2}) ⪯ H ⪯ √s·Q, s = 1ᵀQ⁻¹1.

    In the inner product of Q tangents are orthogonal to Q⁻¹1, whose share of p is 1/s: at least
    1/(s·pᵀQp) of dᵀQd remains across p, and pᵀQp ≥ 1/s.
    """
    ((c, _),), (Q, s) = part.chosen, part.data
    if c < 0:
        factor = arb(rational(c)) * arb(s).sqrt()
    else:
        points = fmpq_mat([list(v) for v in cell.vertices])
        square = points * Q * points.transpose()
        size = arb(max(square[i, i] for i in range(len(cell.vertices))))
        factor = arb(rational(c) / s) / (size * size.sqrt())
    return lower(Interval(factor.lower(), factor.lower()))


def inverse_sum(Q: fmpq_mat) -> fmpq:
    """1ᵀQ⁻¹1."""
    return sum(Q.solve(fmpq_mat([[1]] * Q.nrows())).entries(), fmpq(0))


def add_hessian(total: Matrix, part: Part, cell: Cell) -> None:
    """In the basis e_i − e_K: the middles of the entries, less the radii of each row.

    Entries off the diagonal come from second derivatives along sums of two basis vectors.
    """
    ((c, x),) = part.chosen
    n = len(cell.vertices) - 1

    def bend(*classes: int) -> arb:
        d = [fmpq(classes.count(k)) for k in range(n)] + [fmpq(-len(classes))]
        return rational(c) * second_derivative(x, cell.vertices, tuple(d))

    squares = [bend(i) for i in range(n)]
    for i in range(n):
        for j in range(i + 1):
            entry = squares[i] if i == j else (bend(i, j) - squares[i] - squares[j]) / 2
            middle, radius = middle_and_radius(entry, ROUNDING.get(n, 1.5))
            for a, b in {(i, j), (j, i)}:
                total[a, b] = total.get((a, b), fmpq(0)) + middle
                total[a, a] = total.get((a, a), fmpq(0)) - radius


def middle_and_radius(x: arb, widening: float) -> tuple[fmpq, fmpq]:
    if not x.is_finite():
        raise Undefined("an infinite second derivative")
    middle = fmpq(*float(x.mid()).as_integer_ratio())
    gap = (x - middle) * widening
    return middle, upper(Interval(gap.lower(), gap.upper()))


def add_square(total: Matrix, factor: fmpq, vector: Point) -> None:
    """Add factor·v vᵀ, sparse."""
    entries = [(k, rational(v)) for k, v in enumerate(vector) if v]
    for i, a in entries:
        for j, b in entries:
            total[i, j] = total.get((i, j), fmpq(0)) + factor * a * b


def add_multiple(total: Matrix, factor: fmpq, Q: fmpq_mat) -> None:
    for i, row in enumerate(Q.tolist()):
        for j, entry in enumerate(row):
            total[i, j] = total.get((i, j), fmpq(0)) + factor * entry


def lower(x: Interval) -> fmpq:
    """A rational number below the interval."""
    value = round_down(x)
    if math.isinf(value):
        raise Undefined("an infinite second derivative")
    return fmpq(*value.as_integer_ratio())


def upper(x: Interval) -> fmpq:
    """A rational number above the sizes of the interval."""
    return -lower(Interval(-max(abs(x.lo), abs(x.hi)), arb(0)))
