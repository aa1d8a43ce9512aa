"""A finished expression in the form that proofs know most about.

Quotients of one direction become sums of powers, (p − q)²/p = p − 2q + q²/p; inverse products
become exponentials of sums, 1/(xy) = exp(−log x − log y); and all products of two affine functions
in a sum become one matrix, Σ c·(a·p)(b·p) = pᵀQp on the simplex.

>>> from pgeom.certificates.algebra import Graph
>>> g = Graph(3)
>>> x = g.mono([(g.sub(g.p(0), g.const(2)), fmpq(2)), (g.p(0), fmpq(-1))])
>>> [y.op for y in rewrite(g, x).args]
['p', 'mono']
"""

import math

from flint import fmpq

from pgeom.certificates.expression import (
    ONE,
    Node,
    constant,
    direction,
    factors,
    is_affine,
    reachable,
    terms,
)
from pgeom.certificates.matrices import is_at_least, is_bilinear, is_semidefinite, quadratic_form

WHOLE = (2, 3, 4)  # powers that are multiplied out
SQUARES = 12  # classes, up to which a quadratic form is written as a sum of squares


def rewrite(graph, root) -> Node:
    """The same function on the simplex."""
    return _collect_products(graph, _expand_quotients(graph, root))


def _rebuild(graph, x, args):
    if all(y is z for y, z in zip(args, x.args, strict=True)):
        return x
    if x.op == "lin":
        return graph.lin(zip(x.data[1:], args, strict=True), x.data[0])
    return graph.node(x.op, args, x.data)


def _expand_quotients(graph, root):
    new = {}
    for x in reachable(root):
        if is_affine(x):
            new[x] = x
        elif (powers := _sum_of_powers(graph, x)) is not None:
            new[x] = powers
        elif _is_inverse_product(graph, x):
            logarithms = graph.lin([(r, graph.log(y)) for y, r in factors(x)])
            new[x] = graph.node("exp", (logarithms,))
        else:
            new[x] = _rebuild(graph, x, [new[y] for y in x.args])
    return new[root]


def _sum_of_powers(graph, x):
    """x = (a·y + b)^m·y^r with r < 0 < m, multiplied out; None of any other node."""
    pairs = sorted(factors(x), key=lambda pair: pair[1]) if x.op == "mono" else []
    if len(pairs) != 2 or not all(is_affine(y) for y, _ in pairs):
        return None
    (y, r), (z, m) = pairs
    along = direction(y, graph.K)
    if r >= 0 or m not in WHOLE or along is None or direction(z, graph.K) != along:
        return None
    (slope, start), (other_slope, other_start) = along.relate(y), along.relate(z)
    a = other_slope / slope
    b = other_start - a * start
    if b == 0:
        return None  # the denominator would cancel
    m = int(m)
    powers = [(math.comb(m, j) * a**j * b ** (m - j), graph.power(y, r + j)) for j in range(m + 1)]
    return graph.lin(powers)


def _is_inverse_product(graph, x):
    """Whether x is 1/(y^r z^s …) of positive affine functions, of several directions."""
    if x.op != "mono" or max(x.data) >= 0 or not all(map(is_affine, x.args)):
        return False
    several = len({direction(y, graph.K) for y in x.args} - {None}) > 1
    return several and all(graph.sign(y) == 1 for y in x.args)


def _collect_products(graph, root):
    new = {}

    def renewed(x):
        if x not in new:  # a product of two forms that stands for itself
            new[x] = _quadratic(graph, quadratic_form(x, graph.K))
        return new[x]

    for x in reachable(root):
        if is_affine(x):
            new[x] = x
        elif x.op == "lin" and any(map(_is_product, x.args)):
            products = graph.lin([(c, y) for c, y in terms(x) if is_bilinear(y)])
            rest = [(c, new[y]) for c, y in terms(x) if not is_bilinear(y)]
            matrix = _quadratic(graph, quadratic_form(products, graph.K))
            new[x] = graph.lin([(ONE, matrix), *rest], constant(x))
        elif x.op == "mono" and x.data == (fmpq(1, 2),) and not is_affine(x.args[0]):
            inner = _under_root(graph, x.args[0])
            new[x] = _root(graph, renewed(x.args[0]) if inner is None else inner)
        elif not _is_product(x):
            new[x] = _rebuild(graph, x, [renewed(y) for y in x.args])
    return renewed(root)


def _is_product(x):
    return is_bilinear(x) and len(x.args) == 2


def _under_root(graph, x):
    """A quadratic function as pᵀQp if Q ≻ 0, as a sum of squares if Q ⪰ 0; None of other nodes."""
    Q = quadratic_form(x, graph.K)
    if Q is None:
        return None
    if Q.det() > 0 and is_at_least(Q.tolist()):
        return _quadratic(graph, Q)
    already = x.op == "lin" and min(x.data) >= 0 and all(y.data == (2,) for y in x.args)
    few = graph.K <= SQUARES and not already
    return _squares(graph, Q) if (Q.rank() == 1 or few) and is_semidefinite(Q.tolist()) else None


def _root(graph, x):
    """√x, which is a multiple of |f| if x is one of f²."""
    (c, y), *more = terms(x)
    if not more and constant(x) == 0 and y.op == "mono" and y.data == (2,):
        return graph.mul(graph.power(graph.const(c), fmpq(1, 2)), graph.absolute(y.args[0]))
    return graph.node("mono", (x,), (fmpq(1, 2),))


def _squares(graph, Q):
    """pᵀQp with Q ⪰ 0 as a sum of squares of forms, by exact elimination."""
    rows, squares = Q.tolist(), []
    for k in range(graph.K):
        top = list(rows[k])
        if top[k] == 0:
            continue
        form = [(v, graph.p(j)) for j, v in enumerate(top) if v != 0]
        squares.append((1 / top[k], graph.power(graph.lin(form), 2)))
        rows = [[v - row[k] * b / top[k] for v, b in zip(row, top, strict=True)] for row in rows]
    return graph.lin(squares)


def _quadratic(graph, Q):
    entries = Q.entries()
    return graph.node("quadratic", [graph.p(k) for k in range(graph.K)], entries)
