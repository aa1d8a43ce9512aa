"""Quadratic functions pᵀQp, their roots, and whether symmetric matrices are positive semidefinite.

By elimination, in balls, which decides definite matrices; for few classes also exactly in rational
numbers, which decides singular ones.

>>> is_at_least([[fmpq(2), fmpq(0)], [fmpq(0), fmpq(2)]], fmpq(2))
True
>>> is_at_least([[fmpq(2), fmpq(0)], [fmpq(0), fmpq(2)]], fmpq(2001, 1000))
False
"""

from typing import Any, NamedTuple

import numpy as np
from flint import arb, ctx, fmpq, fmpq_mat

from pgeom.certificates.expression import (
    at_vertices,
    constant,
    exactly,
    is_affine,
    terms,
)
from pgeom.simplex import tangent_basis

EXACT = 12  # classes, up to which singular matrices are decided
PRECISION = 256  # bits
SLACK = fmpq(10**12 - 1, 10**12)  # by which a factor is lowered, so that other roundings confirm it

Rows = list[list[Any]]  # of a symmetric matrix, rational numbers or balls


def is_at_least(L, m=0):
    """Whether xᵀLx ≥ m‖x‖² for all x with Σx = 0 is proved, in the basis e_i − e_K."""
    *rest, n = range(len(L))
    reduced = [
        [L[i][j] - L[i][n] - L[n][j] + L[n][n] - m * (1 + (i == j)) for j in rest] for i in rest
    ]
    with ctx.workprec(PRECISION):
        if is_semidefinite([[arb(x) for x in row] for row in reduced]):
            return True
    return not has_balls(L) and len(L) <= EXACT and is_semidefinite(reduced)


def has_balls(L):
    return any(isinstance(x, arb) for row in L for x in row)


def is_semidefinite(rows: Rows):
    """By elimination: a pivot may be zero if its whole row is."""
    rows = [list(row) for row in rows]
    for k, top in enumerate(rows):
        if not (top[k] > 0 or all(x == 0 for x in top[k:])):
            return False
        for row in rows[k + 1 :] if top[k] > 0 else ():
            factor = row[k] / top[k]
            row[k:] = [a - factor * b for a, b in zip(row[k:], top[k:], strict=True)]
    return True


def least_eigenvalue(L) -> float:
    """The least eigenvalue on the tangent space, in float64."""
    basis = tangent_basis(len(L))
    return float(np.linalg.eigvalsh(basis.T @ L @ basis)[0])


def is_bilinear(x):
    """Whether x is a product of two affine forms, or the square of one."""
    return x.op == "mono" and all(map(is_affine, x.args)) and x.data in ((1, 1), (2,))


def quadratic_form(x, K) -> Any:
    """Q with pᵀQp = x on the simplex, or None if x is no quadratic function; its Hessian is 2Q.

    >>> from pgeom.certificates.algebra import Graph
    >>> g = Graph(2)
    >>> quadratic_form(g.mul(g.p(0), g.p(1)), 2)[0, 1]
    1/2
    """
    if x.op == "quadratic":
        return fmpq_mat(K, K, list(x.data))
    if not all(is_affine(y) or is_bilinear(y) for _, y in terms(x)):
        return None
    ones = [fmpq(1)] * K
    pairs = [([constant(x) / 2] * K, ones)]
    for c, y in terms(x):
        first = at_vertices(y.args[0] if is_bilinear(y) else y, K)
        last = at_vertices(y.args[-1], K) if is_bilinear(y) else ones
        pairs.append(([c / 2 * v for v in first], last))
    left, right = map(fmpq_mat, zip(*pairs, strict=True))
    half = left.transpose() * right
    return half + half.transpose()


class Length(NamedTuple):
    """On tangents, the Hessian of n = √(pᵀQp) is between Q/(s·n³) and √s·Q with s = 1ᵀQ⁻¹1.

    In the inner product of Q ≻ 0, tangents are orthogonal to Q⁻¹1, whose share of pᵀQp is 1/s: so
    pᵀQp ≥ 1/s, and of pᵀQp·dᵀQd − (pᵀQd)² at least dᵀQd/s remains. On the simplex a quadratic
    function with linear and constant terms is a pᵀQp, too.
    """

    Q: fmpq_mat
    s: fmpq

    @classmethod
    def of(cls, x, K):
        """Of a root of a positive definite quadratic function; None of another node."""
        if x.op != "mono" or x.data != (fmpq(1, 2),) or x.args[0].op != "quadratic":
            return None
        Q = quadratic_form(x.args[0], K)
        if Q is None or Q.det() <= 0 or not is_at_least(Q.tolist()):
            return None
        s = sum(Q.solve(fmpq_mat([[1]] * K)).entries(), fmpq(0))
        return cls(Q, s) if s > 0 else None

    def factor(self, sign, cell) -> fmpq:
        """f with sign·H ⪰ f·Q on a cell; the length is largest at a vertex."""
        if sign < 0:
            return -(_below(1 / arb(self.s).sqrt()) ** -1)
        columns = [fmpq_mat([[x] for x in v]) for v in cell.vertices]
        largest = arb(max((v.transpose() * self.Q * v)[0, 0] for v in columns))
        return _below(1 / (self.s * largest * largest.sqrt()))


def _below(x):
    return exactly(float(x.lower())) * SLACK
