"""Symmetric matrices: those of quadratic functions, and whether they are positive semidefinite.

On the tangent space {x : Σx = 0} by LDLᵀ of QᵀLQ − m·QᵀQ with the integer Helmert basis Q, in
balls, which decides definite matrices; for few classes also exactly in rational numbers, which
decides singular ones.

>>> nonnegative_on_tangents(fmpq_mat([[2, 0], [0, 2]]), fmpq(2))
True
>>> nonnegative_on_tangents(fmpq_mat([[2, 0], [0, 2]]), fmpq(2001, 1000))
False
"""

from fractions import Fraction
from functools import cache

import numpy as np
from flint import arb, arb_mat, ctx, fmpq, fmpq_mat, fmpz_mat

from pgeom.geometry.certificates.expression import Node, constant, is_affine, terms
from pgeom.geometry.certificates.frames import at_vertices, rational

EXACT = 12  # classes, up to which singular matrices are decided
PRECISION = 256  # bits


def nonnegative_on_tangents(L: fmpq_mat, m: fmpq | None = None) -> bool:
    """Whether xᵀLx ≥ m‖x‖² for all x with Σx = 0 is proved."""
    K, m = L.nrows(), fmpq(0) if m is None else m
    with ctx.workprec(PRECISION):
        basis = arb_mat(helmert(K))
        across = basis * basis.transpose()
        projected = basis * arb_mat(L) * basis.transpose() - across * arb(m)
        if all(pivot > 0 for pivot in _pivots(projected.tolist())):
            return True
    return K <= EXACT and _semidefinite(L, m)


@cache
def helmert(K: int) -> fmpz_mat:
    """The integer Helmert basis: rows (1, −1, 0, …), (1, 1, −2, 0, …), …"""
    rows = [[1] * n + [-n] + [0] * (K - n - 1) for n in range(1, K)]
    return fmpz_mat(rows)


def _pivots(rows: list[list[arb]]):
    n = len(rows)
    for k in range(n):
        pivot = rows[k][k]
        yield pivot
        for i in range(k + 1, n):
            factor = rows[i][k] / pivot
            for j in range(k + 1, i + 1):
                rows[i][j] = rows[i][j] - factor * rows[j][k]


def _semidefinite(L: fmpq_mat, m: fmpq) -> bool:
    basis = fmpq_mat(helmert(L.nrows()))
    return is_semidefinite(basis * L * basis.transpose() - m * (basis * basis.transpose()))


def is_semidefinite(matrix: fmpq_mat) -> bool:
    """By exact elimination: a pivot may be zero if its whole column is."""
    rows, n = matrix.tolist(), matrix.nrows()
    for k in range(n):
        pivot = rows[k][k]
        if pivot < 0 or (pivot == 0 and any(rows[i][k] != 0 for i in range(k + 1, n))):
            return False
        for i in range(k + 1, n) if pivot != 0 else ():
            factor = rows[i][k] / pivot
            for j in range(k + 1, n):
                rows[i][j] = rows[i][j] - factor * rows[k][j]
    return True


def least_eigenvalue(L: np.ndarray) -> float:
    """The least eigenvalue on the tangent space, in float64."""
    K = len(L)
    rows = np.array(helmert(K).tolist(), dtype=float)
    basis = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return float(np.linalg.eigvalsh(basis @ L @ basis.T)[0])


def eliminates(rows: list[list], m: fmpq) -> bool:
    """Whether L ⪰ m on tangents for all L in a matrix of balls, in the basis e_i − e_K."""
    n = len(rows) - 1
    last = rows[n]
    with ctx.workprec(PRECISION):
        reduced = [
            [arb(row[j] - row[n] - last[j] + last[n] - m * (1 + (i == j))) for j in range(n)]
            for i, row in enumerate(rows[:n])
        ]
        return all(pivot > 0 for pivot in _pivots(reduced))


def is_bilinear(x: Node) -> bool:
    """Whether x is a product of two affine forms, or the square of one."""
    return x.op == "mono" and all(map(is_affine, x.args)) and x.data in ((1, 1), (2,))


def quadratic_matrix(pairs: list[tuple[Fraction, Node]], K: int) -> fmpq_mat:
    """Q with pᵀQp = Σ c·x on the simplex, for affine and bilinear x; its Hessian is 2Q there.

    >>> from pgeom.geometry.certificates.algebra import Graph
    >>> g = Graph(2)
    >>> quadratic_matrix([(Fraction(1), g.mul(g.p(0), g.p(1)))], 2)[0, 1]
    1/2
    """
    total = [[fmpq(0)] * K for _ in range(K)]
    for c, x in pairs:
        pair = (x.args[0], x.args[-1]) if is_bilinear(x) else (x, None)
        first, last = ([fmpq(1)] * K if y is None else _values(y, K) for y in pair)
        half = rational(c) / 2
        rows = [(i, half * a) for i, a in enumerate(first) if a != 0]
        for i, a in rows:
            for j, b in enumerate(last):
                if b != 0:
                    total[i][j] += a * b
                    total[j][i] += a * b
    return fmpq_mat(total)


def quadratic_form(x: Node, K: int) -> fmpq_mat | None:
    """Q with pᵀQp = x on the simplex, or None if x is no quadratic function."""
    if x.op == "quadratic":
        return fmpq_mat(K, K, [rational(q) for q in x.data])
    if not all(is_affine(y) or is_bilinear(y) for _, y in terms(x)):
        return None
    one = Node(-1, "lin", (), (Fraction(1),))
    return quadratic_matrix([(constant(x), one), *terms(x)], K)


def _values(x: Node, K: int) -> list[fmpq]:
    return [rational(v) for v in at_vertices(x, K)]
