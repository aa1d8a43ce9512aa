"""Hessians from below as structured matrices: Σ c_r w_r w_rᵀ on a cell of the simplex.

The terms of F are grouped into parts. Each part gives a symmetric matrix L with H ⪰ L on the cell;
for bounds from above, the same is done with −F.
"""

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from flint import arb, fmpq, fmpq_mat

from pgeom.geometry.certificates.enclosures import Interval, Undefined
from pgeom.geometry.certificates.expression import ONE, Node, terms
from pgeom.geometry.certificates.frames import Cell, Direction, Point, rational
from pgeom.geometry.certificates.matrices import (
    eliminates,
    least_eigenvalue,
    nonnegative_on_tangents,
)
from pgeom.geometry.certificates.quadratics import matrix
from pgeom.geometry.certificates.ridges import round_down
from pgeom.geometry.certificates.rules import Rules, group, length_form
from pgeom.geometry.certificates.series import second_derivative

Matrix = dict[tuple[int, int], Any]


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
    """H ⪰ exact + balls on a cell, and the bounds of the ridges that `exact` is made of."""

    exact: list[list[fmpq]]
    balls: list[list[Any]] | None
    bends: list[Fraction]

    def estimate(self) -> float:
        """The least eigenvalue on tangents in float64, of middles less the radii of each row."""
        table = np.array([[int(x.p) / int(x.q) for x in row] for row in self.exact])
        if self.balls is not None:
            entries = [[arb(x) for x in row] for row in self.balls]
            table += np.array([[float(x.mid()) for x in row] for row in entries])
            table -= np.diag([sum(float(x.rad()) for x in row) for row in entries])
        return least_eigenvalue(table)

    def exceeds(self, m: fmpq) -> bool:
        """Whether H ⪰ m on tangents is proved."""
        if self.balls is None:
            return nonnegative_on_tangents(fmpq_mat(self.exact), m)
        pairs = zip(self.exact, self.balls, strict=True)
        return eliminates([[a + b for a, b in zip(*rows, strict=True)] for rows in pairs], m)


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
        balls: Matrix = {}
        bends = []
        for part in self.parts:
            if part.kind == "ridge":
                lo, hi = cell.range_along(part.data)
                least = self.rules.ridges.least_bend(part.chosen, part.data, lo, hi)
                if math.isinf(least):
                    return None
                bends.append(Fraction(least))
                add_square(total, fmpq(*least.as_integer_ratio()), part.data.w)
            elif part.kind == "quadratic":
                add_multiple(total, 2 * rational(part.chosen[0][0]), part.data)
            elif part.kind == "length":
                add_multiple(total, length_factor(part, cell), part.data[0])
            elif part.kind == "hessian" and not add_hessian(balls, part, cell):
                return None
        return Bounded(self._rows(total), self._rows(balls) if balls else None, bends)

    def _rows(self, entries: Matrix) -> list[list[Any]]:
        zero = fmpq(0)
        return [[entries.get((i, j), zero) for j in range(self.K)] for i in range(self.K)]


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


def add_hessian(balls: Matrix, part: Part, cell: Cell) -> bool:
    """Add balls around the entries in the basis e_i − e_K; whether they are finite.

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
            if not entry.is_finite():
                return False
            for a, b in {(i, j), (j, i)}:
                balls[a, b] = balls.get((a, b), fmpq(0)) + entry
    return True


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
