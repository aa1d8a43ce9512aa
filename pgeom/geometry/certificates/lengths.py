"""Lengths √(pᵀQp) with Q ≻ 0, and how much they bend along tangents.

On the simplex a quadratic function with linear and constant terms is a pᵀQp, too.
"""

from fractions import Fraction
from typing import NamedTuple

from flint import arb, fmpq, fmpq_mat

from pgeom.geometry.certificates.expression import Node
from pgeom.geometry.certificates.frames import Cell
from pgeom.geometry.certificates.matrices import nonnegative_on_tangents
from pgeom.geometry.certificates.quadratics import matrix

SLACK = fmpq(10**12 - 1, 10**12)  # by which a factor is lowered, so that other roundings confirm it


class Length(NamedTuple):
    """On tangents, the Hessian of n = √(pᵀQp) is between Q/(s·n³) and √s·Q with s = 1ᵀQ⁻¹1.

    In the inner product of Q, tangents are orthogonal to Q⁻¹1, whose share of pᵀQp is 1/s: so
    pᵀQp ≥ 1/s, and of pᵀQp·dᵀQd − (pᵀQd)² at least dᵀQd/s remains.
    """

    Q: fmpq_mat
    s: fmpq

    @classmethod
    def of(cls, x: Node, K: int) -> "Length | None":
        """Of a root of a positive definite quadratic function; None of another node."""
        Q = matrix(x.args[0], K) if x.op == "mono" and x.data == (Fraction(1, 2),) else None
        if Q is None or Q.det() <= 0 or not nonnegative_on_tangents(Q):
            return None
        s = sum(Q.solve(fmpq_mat([[1]] * K)).entries(), fmpq(0))
        return cls(Q, s) if s > 0 else None

    def factor(self, sign: int, cell: Cell) -> fmpq:
        """f with sign·H ⪰ f·Q on a cell; the length is largest at a vertex."""
        if sign < 0:
            return -(_below(1 / arb(self.s).sqrt()) ** -1)
        columns = [fmpq_mat([[x] for x in v]) for v in cell.vertices]
        most = arb(max((v.transpose() * self.Q * v)[0, 0] for v in columns))
        return _below(1 / (self.s * most * most.sqrt()))


def _below(x: arb) -> fmpq:
    return fmpq(*float(x.lower()).as_integer_ratio()) * SLACK
