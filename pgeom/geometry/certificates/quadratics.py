"""Products of affine forms as one matrix: Σ c·(a·p)(b·p) = pᵀQp on the simplex."""

from fractions import Fraction

from flint import fmpq_mat

from pgeom.geometry.certificates.algebra import Graph
from pgeom.geometry.certificates.expression import Node, constant, is_affine, reachable, terms
from pgeom.geometry.certificates.frames import rational
from pgeom.geometry.certificates.matrices import (
    is_bilinear,
    is_semidefinite,
    nonnegative_on_tangents,
    quadratic_form,
    quadratic_matrix,
)

MOST = 12  # classes, up to which a quadratic form is written as a sum of squares


def collected(graph: Graph, root: Node) -> Node:
    """The same function with nodes `quadratic` for products of forms, and squares under roots."""
    new: dict[Node, Node] = {}

    def renewed(x: Node) -> Node:
        if x not in new:  # a product of two forms that stands for itself
            new[x] = _node(graph, quadratic_matrix([(Fraction(1), x)], graph.K))
        return new[x]

    for x in reachable(root, through_affine=True):
        if _is_product(x):
            continue
        if x.op == "lin" and any(map(_is_product, x.args)):
            new[x] = _sum(graph, x, new)
        elif x.op == "mono" and x.data == (Fraction(1, 2),) and not is_affine(x.args[0]):
            inner = _under_root(graph, x.args[0])
            new[x] = _root(graph, renewed(x.args[0]) if inner is None else inner)
        else:
            new[x] = graph.node(x.op, [renewed(y) for y in x.args], x.data)
    return renewed(root)


def _is_product(x: Node) -> bool:
    return is_bilinear(x) and len(x.args) == 2


def _sum(graph: Graph, x: Node, new: dict[Node, Node]) -> Node:
    """All products and squares of a sum as one term."""
    products = [(c, y) for c, y in terms(x) if is_bilinear(y)]
    rest = [(c, new[y]) for c, y in terms(x) if not is_bilinear(y)]
    all_terms = [(Fraction(1), _node(graph, quadratic_matrix(products, graph.K))), *rest]
    factors, args = zip(*all_terms, strict=True)
    return graph.node("lin", args, (x.data[0], *factors))


def _under_root(graph: Graph, x: Node) -> Node | None:
    """A quadratic function as pᵀQp if Q ≻ 0, as a sum of squares if Q ⪰ 0; None of other nodes."""
    Q = quadratic_form(x, graph.K)
    if Q is None:
        return None
    if Q.det() > 0 and nonnegative_on_tangents(Q):
        return _node(graph, Q)
    if Q.rank() == 1 and is_semidefinite(Q):
        return _squares(graph, Q)
    already = x.op == "lin" and min(x.data) >= 0 and all(y.data == (2,) for y in x.args)
    squares = not already and graph.K <= MOST and is_semidefinite(Q)
    return _squares(graph, Q) if squares else None


def _root(graph: Graph, x: Node) -> Node:
    """√x, which is a multiple of |f| if x is one of f²."""
    (c, y), *more = terms(x)
    if not more and constant(x) == 0 and y.op == "mono" and y.data == (2,):
        return graph.mul(graph.power(graph.const(c), Fraction(1, 2)), graph.absolute(y.args[0]))
    return graph.node("mono", (x,), (Fraction(1, 2),))


def _squares(graph: Graph, Q: fmpq_mat) -> Node:
    """pᵀQp with Q ⪰ 0 as a sum of squares of forms, by exact elimination."""
    rows, squares = Q.tolist(), []
    for k in range(graph.K):
        top = list(rows[k])
        if top[k] == 0:
            continue
        form = [(Fraction(int(v.p), int(v.q)), graph.p(j)) for j, v in enumerate(top) if v != 0]
        pivot = Fraction(int(top[k].p), int(top[k].q))
        squares.append((1 / pivot, graph.power(graph.lin(Fraction(0), form), 2)))
        rows = [[v - row[k] * b / top[k] for v, b in zip(row, top, strict=True)] for row in rows]
    return graph.lin(Fraction(0), squares)


def _node(graph: Graph, Q: fmpq_mat) -> Node:
    entries = [Fraction(int(q.p), int(q.q)) for q in Q.entries()]
    return graph.node("quadratic", [graph.p(k) for k in range(graph.K)], entries)


def matrix(x: Node, K: int) -> fmpq_mat | None:
    """Q of pᵀQp, None of any other node."""
    if x.op != "quadratic":
        return None
    return fmpq_mat(K, K, [rational(q) for q in x.data])
