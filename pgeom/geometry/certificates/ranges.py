"""What is known of a node on the whole simplex: its range, its sign, where it is positive.

>>> from pgeom.geometry.certificates.algebra import Graph
>>> g = Graph(3)
>>> known = Ranges(3)
>>> x = g.sub(g.const(1), g.p(0))
>>> known.range(x), known.sign(x), known.positive(x)
([0, 1], 1, True)
"""

from collections.abc import Callable
from fractions import Fraction

from pgeom.geometry.certificates.enclosures import Interval, Undefined
from pgeom.geometry.certificates.expression import Node, constant, factors, is_affine, terms
from pgeom.geometry.certificates.frames import Cell, extremes
from pgeom.geometry.certificates.jets import Jets
from pgeom.geometry.certificates.matrices import is_semidefinite, quadratic_form
from pgeom.geometry.certificates.series import is_positive

MOST = 30  # classes, up to which pᵀQp ≥ 0 is decided exactly


class Ranges:
    """Ranges by interval arithmetic; exact for affine functions of p."""

    def __init__(self, K: int):
        self.K = K
        # by rules, once there are any
        self.is_concave: Callable[[Node], bool] = lambda x: False
        self._values = Jets(Cell.whole(K))
        self._positive: dict[Node, bool] = {}

    def range(self, x: Node) -> Interval:
        return self._values(x).value

    def sign(self, x: Node) -> int | None:
        """1 if x ≥ 0, −1 if x ≤ 0 on the simplex, 0 if x = 0, None if nothing is known."""
        if x.op == "p":
            return 1
        if is_affine(x):
            low, high = extremes(x, self.K)
            return 0 if low == high == 0 else 1 if low >= 0 else -1 if high <= 0 else None
        try:
            known = self.range(x)
        except Undefined:
            return None
        return 1 if known.lo >= 0 else -1 if known.hi <= 0 else None

    def positive(self, x: Node) -> bool:
        """Whether x > 0 at every point with positive coordinates."""
        if x not in self._positive:
            self._positive[x] = self._is_positive(x)
        return self._positive[x]

    def _is_positive(self, x: Node) -> bool:
        if is_affine(x):
            return self.sign(x) == 1
        if x.op == "lin" and constant(x) >= 0:
            summands = all(self.sign(y) in (0, 1) and c > 0 for c, y in terms(x))
            if summands and (constant(x) > 0 or any(self.positive(y) for _, y in terms(x))):
                return True
        if x.op == "exp" or (x.op == "quadratic" and self._definite(x)):
            return True
        if x.op == "mono" and all(self.positive(y) for y in x.args):
            return True
        if x.op == "max" and any(self.positive(y) for y in x.args):
            return True
        try:
            if self.range(x).lo > 0:
                return True
        except Undefined:
            return False
        return self.is_concave(x) and is_positive(x, self.K, concave=True)

    def exceeds_zero(self, x: Node, or_equals: bool = False) -> bool:
        """Whether x > 0, or x ≥ 0, is known wherever all coordinates are positive."""
        try:
            if self.positive(x) or (or_equals and self.range(x).lo >= 0):
                return True
        except Undefined:
            return False
        return not is_affine(x) and self._definite(x, or_equals)

    def _definite(self, x: Node, or_equals: bool = False) -> bool:
        """Whether x is a pᵀQp with Q ≻ 0, or Q ⪰ 0."""
        Q = None if self.K > MOST else quadratic_form(x, self.K)
        return Q is not None and is_semidefinite(Q) and bool(or_equals or Q.det() != 0)

    def require_domain(self, x: Node) -> None:
        """Raise `Undefined` unless the node is defined wherever all coordinates are positive."""
        for y, r in _restricted(x):
            if not (self.positive(y) or (r > 0 and self.range(y).lo >= 0)):
                raise Undefined(f"`{y.op}` under a logarithm, root or fraction may not be positive")

    def require_smooth(self, x: Node) -> None:
        """Raise `Undefined` if the node may have an infinite slope or worse inside the simplex."""
        for y, _ in _restricted(x):
            if not self.positive(y):
                raise Undefined(f"`{y.op}` under a logarithm, root or fraction may be zero")


def _restricted(x: Node) -> list[tuple[Node, Fraction]]:
    """The arguments that may not be negative, with the power that they are raised to."""
    if x.op == "log":
        return [(x.args[0], Fraction(-1, 2))]  # as strict as a fractional negative power
    if x.op == "xlogx":
        return [(x.args[0], Fraction(1, 2))]
    return [(y, r) for y, r in factors(x) if r < 0 or r.denominator > 1] if x.op == "mono" else []
