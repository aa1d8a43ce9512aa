"""Quotients as what rules know more about.

Of functions of one direction as sums of powers, (p − q)²/p = p − 2q + q²/p; inverse products as
exponentials of sums, 1/(xy) = exp(−log x − log y).

>>> from pgeom.geometry.certificates.algebra import Graph
>>> g = Graph(3)
>>> x = g.mono([(g.sub(g.p(0), g.const(2)), Fraction(2)), (g.p(0), Fraction(-1))])
>>> [y.op for y in apart(g, x).args]
['p', 'mono']
"""

import math
from fractions import Fraction

from pgeom.geometry.certificates.algebra import Graph
from pgeom.geometry.certificates.expression import (
    ZERO,
    Node,
    constant,
    factors,
    is_affine,
    reachable,
    terms,
)
from pgeom.geometry.certificates.frames import at_vertices, direction

WHOLE = (2, 3, 4)  # powers that are multiplied out


def apart(graph: Graph, root: Node) -> Node:
    """The same function on the simplex, with other quotients."""
    new: dict[Node, Node] = {}
    for x in reachable(root):
        args = [] if is_affine(x) else [new[y] for y in x.args]
        powers = _powers(graph, x)
        if powers is not None:
            new[x] = graph.lin(ZERO, powers)
        elif _is_inverse_product(graph, x):
            logarithms = graph.lin(ZERO, [(r, graph.log(y)) for y, r in factors(x)])
            new[x] = graph.node("exp", (logarithms,))
        elif all(y is z for y, z in zip(args, x.args, strict=False)):
            new[x] = x
        elif x.op == "lin":
            new[x] = graph.lin(constant(x), [(c, new[y]) for c, y in terms(x)])
        else:
            new[x] = graph.node(x.op, args, x.data)
    return new[root]


def _powers(graph: Graph, x: Node) -> list[tuple[Fraction, Node]] | None:
    """x = (a·y + b)^m·y^r with r < 0 < m, multiplied out; None of any other node."""
    pairs = sorted(factors(x), key=lambda pair: pair[1]) if x.op == "mono" else []
    if len(pairs) != 2 or not all(is_affine(y) for y, _ in pairs):
        return None
    (y, r), (z, m) = pairs
    line = _line(at_vertices(z, graph.K), at_vertices(y, graph.K))
    if r >= 0 or m not in WHOLE or line is None:
        return None
    a, b = line
    return [
        (math.comb(int(m), j) * a**j * b ** (int(m) - j), graph.power(y, r + j))
        for j in range(int(m) + 1)
    ]


def _is_inverse_product(graph: Graph, x: Node) -> bool:
    """Whether x is 1/(y^r z^s …) of positive affine functions, of several directions."""
    if x.op != "mono" or max(x.data) >= 0 or not all(map(is_affine, x.args)):
        return False
    several = len({direction(y, graph.K) for y in x.args} - {None}) > 1
    return several and all(graph.sign(y) == 1 for y in x.args)


def _line(values: list[Fraction], others: list[Fraction]) -> tuple[Fraction, Fraction] | None:
    """(a, b) with values = a·others + b and b ≠ 0: without b, the denominator would cancel."""
    i, j = others.index(min(others)), others.index(max(others))
    if i == j:
        return None
    a = (values[j] - values[i]) / (others[j] - others[i])
    b = values[i] - a * others[i]
    fits = all(v == a * w + b for v, w in zip(values, others, strict=True))
    return (a, b) if fits and b != 0 else None
