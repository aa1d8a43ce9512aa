"""Maxima of expressions: their arguments one by one, and powers of max(·, 0)."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING

from pgeom.geometry.certificates.expression import Node, are_opposite, constant, terms

if TYPE_CHECKING:  # which imports this module
    from pgeom.geometry.certificates.algebra import Graph

RAMP = Fraction(9, 8)  # the least power of max(·, 0) that is an operation of its own


def undominated(graph: "Graph", args: Iterable[Node]) -> list[Node]:
    """The arguments of a maximum, without those that another one never falls below."""
    kept: list[Node] = []
    flat = [y for x in args for y in _arguments(graph, x)]
    for x in dict.fromkeys(flat):
        if not any(_at_least(graph, y, x) for y in kept):
            kept = [y for y in kept if not _at_least(graph, x, y)] + [x]
    return sorted(kept, key=lambda x: x.index)


def apart(graph: "Graph", x: Node) -> list[Node]:
    """The y_i of max(y_1, …, 0), or of |y|, if no two are positive at a point; else nothing.

    Then max(y_1, …, 0)^r = Σ max(y_i, 0)^r.
    """
    zero = graph.const(0)
    if zero not in x.args and not (len(x.args) == 2 and are_opposite(*x.args)):
        return []
    pieces = [y for y in x.args if y is not zero]
    signs = (graph.sign(graph.add(y, z)) for y, z in combinations(pieces, 2))
    return pieces if all(sign in (-1, 0) for sign in signs) else []


def _arguments(graph: "Graph", x: Node) -> Sequence[Node]:
    """The y_i of max(y_1, …), or of an affine function plus a multiple of it."""
    tops = [(c, y) for c, y in terms(x) if y.op == "max"]
    rest = [(c, y) for c, y in terms(x) if y.op != "max"]
    if len(tops) != 1 or tops[0][0] < 0 or any(y.op != "p" for _, y in rest):
        return (x,)
    ((c, top),) = tops
    return [graph.lin(constant(x), [(c, y), *rest]) for y in top.args]


def _at_least(graph: "Graph", x: Node, y: Node) -> bool:
    """Whether x ≥ y everywhere is known; never of two probabilities.

    Each answer is kept, because a maximum over many classes is read one argument after another.
    """
    if x.op == y.op == "p":
        return False
    if (x, y) not in graph.orders:
        graph.orders[x, y] = graph.sign(graph.sub(x, y)) in (0, 1)
    return graph.orders[x, y]
