"""What was subtracted for the sake of rounding and added again later: it cancels.

The maximum that `logsumexp` and `logaddexp` subtract is no part of the function that they compute.
"""

from fractions import Fraction
from typing import TYPE_CHECKING

from pgeom.geometry.certificates.expression import (
    ONE,
    ZERO,
    Node,
    coefficient,
    constant,
    is_softplus,
    terms,
)

if TYPE_CHECKING:  # which imports this module
    from pgeom.geometry.certificates.algebra import Graph


def absorbed(graph: "Graph", sums: dict[Node, Fraction]) -> list[tuple[Fraction, Node]] | None:
    """c·f(x) + c·y as c·f(x + y) for a log-sum-exp f where y then cancels, else None."""
    for x, c in sums.items():
        if is_softplus(x) and (turned := _turned(graph, sums, x, c)) is not None:
            return turned
        if x.op == "lse":
            for y, other in sums.items():
                if (moved := _moved(graph, x, y, other / c)) is not None:
                    rest = [(d, z) for z, d in sums.items() if z is not x and z is not y]
                    return [(c, moved), *rest]
    return None


def _turned(g: "Graph", sums: dict[Node, Fraction], x: Node, c: Fraction) -> list | None:
    """log(1 + e^y) = y + log(1 + e^{−y}), if all of y but its affine part then cancels."""
    y = x.args[0]
    inner = [(d, z) for d, z in terms(y) if z.op != "p"]
    if not inner or any(sums.get(z) != -c * d for d, z in inner):
        return None
    gone = {z for _, z in inner} | {x}
    rest = [(d, z) for z, d in sums.items() if z not in gone]
    affine = g.lin(constant(y), [(d, z) for d, z in terms(y) if z.op == "p"])
    return [(c, g.softplus(g.scale(-1, y))), (c, affine), *rest]


def _moved(g: "Graph", x: Node, y: Node, factor: Fraction) -> Node | None:
    """f(x) + factor·y, if it is simpler."""
    if y is x or y.op == "p":
        return None
    if any(coefficient(arg, y) == -factor for arg in x.args):
        if is_softplus(x):
            return None
        shifted = [g.lin(ZERO, [(ONE, arg), (factor, y)]) for arg in x.args]
        return g.lse(zip(x.data, shifted, strict=True))
    if is_softplus(x) and y.op == "max" and factor == 1 and len(y.args) == 2:
        gap = g.scale(-1, g.absolute(g.sub(*y.args)))
        if x.args[0] is gap:
            return g.lse((ONE, arg) for arg in y.args)  # max(a, b) + log(1 + e^{−|a−b|})
    return None
