"""Lengths √(c + pᵀQp) with Q ≻ 0, and how much they bend on the whole simplex."""

from fractions import Fraction
from typing import Any, NamedTuple

from flint import arb, fmpq, fmpq_mat

from pgeom.geometry.certificates.expression import Node
from pgeom.geometry.certificates.frames import at_vertices, rational
from pgeom.geometry.certificates.matrices import is_bilinear

SLACK = fmpq(10**12 - 1, 10**12)  # by which the factor is lowered


class Length(NamedTuple):
    """H ⪰ factor·Q along tangents.

    With s = 1ᵀQ⁻¹1, on tangents H ⪰ Q/(s·(c + pᵀQp)^{3/2}): in the inner product of Q tangents are
    orthogonal to Q⁻¹1, whose share of p is 1/s, which remains across p whatever the tangent. And
    pᵀQp is largest at a vertex.
    """

    Q: fmpq_mat
    factor: fmpq

    @classmethod
    def of(cls, x: Node, proof: dict[str, Any], K: int) -> "Length | None":
        """Of a root of a sum of squares of forms that span everything; None of another node."""
        if proof["rule"] != "mean" or x.data != (Fraction(1, 2),):
            return None
        total = x.args[0]
        if not all(is_bilinear(y) and len(y.args) == 1 for y in total.args):  # squares
            return None
        forms = [[rational(v) for v in at_vertices(y.args[0], K)] for y in total.args]
        weighted = [
            [rational(c) * v for v in form] for c, form in zip(total.data[1:], forms, strict=True)
        ]
        if fmpq_mat(forms).rank() < K:
            return None
        Q = fmpq_mat(forms).transpose() * fmpq_mat(weighted)
        s = sum(Q.solve(fmpq_mat([[1]] * K)).entries(), fmpq(0))
        size = arb(max(Q[k, k] for k in range(K)) + rational(total.data[0]))
        factor = float((1 / (s * size * size.sqrt())).lower())
        return cls(Q, fmpq(*factor.as_integer_ratio()) * SLACK)
