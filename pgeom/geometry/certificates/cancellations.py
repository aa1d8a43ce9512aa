"""What was subtracted for the sake of rounding and added again later: it cancels.

The maximum that `logsumexp` and `logaddexp` subtract is no part of the function that they compute.
"""

from fractions import Fraction
from typing import TYPE_CHECKING

from pgeom.geometry.certificates.expression import ONE, ZERO, Node, coefficient

if TYPE_CHECKING:  # which imports this module
    from pgeom.geometry.certificates.algebra import Graph


def absorbed(graph: "Graph", sums: dict[Node, Fraction]) -> list[tuple[Fraction, Node]] | None:
    """c·f(x) + c·y as c·f(x + y) for a log-sum-exp f where y then cancels, else None."""
    for x, c in sums.items():
        if x.op in ("lse", "softplus"):
            for y, other in sums.items():
                if (moved := _moved(graph, x, y, other / c)) is not None:
                    rest = [(d, z) for z, d in sums.items() if z is not x and z is not y]
                    return [(c, moved), *rest]
    return None


def _moved(g: "Graph", x: Node, y: Node, factor: Fraction) -> Node | None:
    """f(x) + factor·y, if it is simpler."""
    if y is x or y.op == "p":
        return None
    if any(coefficient(arg, y) == -factor for arg in x.args):
        if x.op == "softplus":  # log(1 + e^x) = x + log(1 + e^{−x})
            (arg,) = x.args
            back = g.softplus(g.scale(-1, arg))
            return g.lin(ZERO, [(ONE, back), (ONE, arg), (factor, y)])
        shifted = [g.lin(ZERO, [(ONE, arg), (factor, y)]) for arg in x.args]
        return g.lse(zip(x.data, shifted, strict=True))
    if x.op == "softplus" and y.op == "max" and factor == 1 and len(y.args) == 2:
        gap = g.scale(-1, g.absolute(g.sub(*y.args)))
        if x.args[0] is gap:
            return g.lse((ONE, arg) for arg in y.args)  # max(a, b) + log(1 + e^{−|a−b|})
    return None
