"""Hessians from below as structured matrices: Σ c_r w_r w_rᵀ on a cell of the simplex.

The terms of F are grouped into parts. Each part gives a symmetric matrix L with H ⪰ L on the cell;
for bounds from above, the same is done with −F.
"""

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from flint import arb, fmpq, fmpq_mat

from pgeom.geometry.certificates.expression import ONE, Node, terms
from pgeom.geometry.certificates.frames import Cell, Direction, Point, rational
from pgeom.geometry.certificates.lengths import Length
from pgeom.geometry.certificates.matrices import (
    eliminates,
    least_eigenvalue,
    nonnegative_on_tangents,
)
from pgeom.geometry.certificates.quadratics import matrix
from pgeom.geometry.certificates.ridges import is_simple
from pgeom.geometry.certificates.rules import Rules, group
from pgeom.geometry.certificates.series import second_derivative

Matrix = dict[tuple[int, int], Any]


class Part(NamedTuple):
    """Terms that are bounded together.

    Attributes:
      kind: `ridge`, `quadratic`, `length`, `rule` or `hessian`.
      indices: the terms of F, by index.
      chosen: the same, as pairs of a coefficient with its sign and a node.
      data: what the kind needs: a direction, a matrix, a length, a proof.
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
            middles = np.array([[float(x.mid()) for x in row] for row in entries])
            radii = np.array([[float(x.rad()) for x in row] for row in entries])
            if not np.isfinite([middles, radii]).all():
                return -math.inf
            table += middles - np.diag(radii.sum(axis=1))
        return least_eigenvalue(table)

    def exceeds(self, m: fmpq) -> bool:
        """Whether H ⪰ m on tangents is proved."""
        if self.balls is None:
            return nonnegative_on_tangents(fmpq_mat(self.exact), m)
        pairs = zip(self.exact, self.balls, strict=True)
        return eliminates([[a + b for a, b in zip(*rows, strict=True)] for rows in pairs], m)


class Forms:
    """The parts of sign·F, and their matrices on cells.

    `bent` asks for the Hessians of terms that are convex by rules, where 0 is too low a bound.
    """

    def __init__(self, root: Node, sign: int, rules: Rules, bent: bool = False):
        self.K, self.rules, self.sign, self.bent = rules.K, rules, sign, bent
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
        proof = self.rules.prove(x, 1 if c > 0 else -1)
        if (length := Length.of(x, self.K)) is not None:
            return Part("length", indices, chosen, length)
        if proof is None or self.bent:
            return Part("hessian", indices, chosen)
        return Part("rule", indices, chosen, proof)

    def laborious(self) -> int:
        """How many parts have bounds that take long."""
        simple = (all(is_simple(c, x, self.K) for c, x in part.chosen) for part in self.parts)
        quick = ("quadratic", "length", "rule")
        pairs = zip(self.parts, simple, strict=True)
        return sum(part.kind not in quick and not plain for part, plain in pairs)

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
                c = part.chosen[0][0]
                factor = part.data.factor(1 if c > 0 else -1, cell)
                add_multiple(total, abs(rational(c)) * factor, part.data.Q)
            elif part.kind == "hessian" and not add_hessian(balls, part, cell):
                return None
        return Bounded(self._rows(total), self._rows(balls) if balls else None, bends)

    def _rows(self, entries: Matrix) -> list[list[Any]]:
        zero = fmpq(0)
        return [[entries.get((i, j), zero) for j in range(self.K)] for i in range(self.K)]


def add_hessian(balls: Matrix, part: Part, cell: Cell) -> bool:
    """Add balls around the entries in the basis e_i − e_K; whether they are finite.

    By polarisation: 4uᵀHv is the second derivative along u + v less that along u − v.
    """
    ((c, x),) = part.chosen
    n = len(cell.vertices) - 1

    def bend(i: int, j: int, sign: int) -> arb:
        d = [fmpq((k == i) + sign * (k == j)) for k in range(n)] + [fmpq(-1 - sign)]
        return rational(c) * second_derivative(x, cell.vertices, tuple(d))

    for i in range(n):
        for j in range(i + 1):
            entry = (bend(i, j, 1) - (0 if i == j else bend(i, j, -1))) / 4
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
