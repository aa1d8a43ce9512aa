"""Values and derivatives along lines in balls: Taylor series around a hull of points.

Looser than `jets`, because a ball around [0, h] has negative squares, but it is the arithmetic that
a checker can afford for a function of any form.

>>> from pgeom.geometry.certificates.algebra import Graph
>>> from pgeom.geometry.certificates.frames import unit
>>> g = Graph(2)
>>> x = Series([unit(0, 2), unit(1, 2)], unit(0, 2))(g.power(g.p(0), 2))
>>> float(x[2])
1.0
"""

from functools import lru_cache

from flint import arb, arb_series, ctx, fmpq

from pgeom.geometry.certificates.expression import Node, is_affine, reachable
from pgeom.geometry.certificates.frames import Rational, at_vertices, rational, unit

NAN = arb.nan()
FUNCTIONS = {
    "exp": arb_series.exp,
    "log": arb_series.log,
    "sin": arb_series.sin,
    "cos": arb_series.cos,
    "tan": arb_series.tan,
    "atan": arb_series.atan,
    "erf": arb_series.erf,
    "xlogx": lambda x: x * x.log(),
    "softplus": lambda x: _log_sum_exp([(1, x), (1, arb_series([0]))]),
}


class Series:
    """Evaluates nodes to value + slope·t + ½ bend·t² + …, each of them once."""

    def __init__(self, points: list[Rational], d: Rational):
        self.points, self.d = points, d
        self._known: dict[Node, arb_series] = {}

    def __call__(self, x: Node) -> arb_series:
        ctx.cap = 4  # terms of a series
        for y in reachable(x):
            if y not in self._known:
                self._known[y] = self._evaluate(y)
        return self._known[x]

    def _affine(self, x: Node) -> arb_series:
        form = _form(x, len(self.d))
        ends = [_dot(form, p) for p in self.points]
        return arb_series([arb(min(ends)).union(arb(max(ends))), arb(_dot(form, self.d))])

    def _evaluate(self, x: Node) -> arb_series:
        if is_affine(x):
            return self._affine(x)
        args = [self._known[y] for y in x.args]
        if x.op == "lin":
            pairs = zip(x.data[1:], args, strict=True)
            return sum((y * rational(c) for c, y in pairs), arb_series([rational(x.data[0])]))
        if x.op == "mono":
            return _product([_power(y, r) for y, r in zip(args, x.data, strict=True)])
        if x.op == "quadratic":
            pairs = zip(((y, z) for y in args for z in args), x.data, strict=True)
            return sum((y * z * rational(q) for (y, z), q in pairs if q), arb_series([0]))
        if x.op == "lse":
            return _log_sum_exp(list(zip(map(rational, x.data), args, strict=True)))
        if x.op in ("max", "ramp"):
            rivals = args if x.op == "max" else [*args, arb_series([0])]
            largest = _largest(rivals)
            return _power(largest, x.data[0]) if x.op == "ramp" and largest.length() else largest
        return FUNCTIONS[x.op](args[0])


def second_derivative(x: Node, points: list[Rational], d: Rational) -> arb:
    """The second derivative along d on the hull of the points."""
    return 2 * Series(points, d)(x)[2]


def is_positive(x: Node, K: int, concave: bool = False) -> bool:
    """Whether x > 0 wherever all p_k are, for reasons that a checker sees.

    A concave x is positive if it is so at the vertices.
    """
    if is_affine(x):
        values = at_vertices(x, K)
        return min(values) >= 0 and max(values) > 0
    if x.op == "mono" or (x.op == "lin" and x.data[0] >= 0 and min(x.data[1:], default=1) > 0):
        return all(is_positive(y, K) for y in x.args)
    if x.op == "max" and any(is_positive(y, K) for y in x.args):
        return True
    corners = [unit(k, K) for k in range(K)]
    hulls = [[p] for p in corners] if concave else [corners]
    return x.op == "exp" or all(Series(hull, (fmpq(0),) * K)(x)[0] > 0 for hull in hulls)


@lru_cache(maxsize=10_000)
def _form(x: Node, K: int) -> list[fmpq]:
    """The values of an affine node at the vertices."""
    return [rational(v) for v in at_vertices(x, K)]


def _dot(form: list[fmpq], point: Rational) -> fmpq:
    return sum((a * b for a, b in zip(form, point, strict=True) if a != 0), fmpq(0))


def _power(x: arb_series, r) -> arb_series:
    return x ** int(r) if r.denominator == 1 else (x.log() * rational(r)).exp()


def _product(factors: list[arb_series]) -> arb_series:
    result = factors[0]
    for x in factors[1:]:
        result = result * x
    return result


def _log_sum_exp(pairs: list) -> arb_series:
    top = max((x for _, x in pairs), key=lambda x: x[0].mid())  # so that nothing large cancels
    return top + sum(((x - top).exp() * c for c, x in pairs), arb_series([0])).log()


def _largest(args: list[arb_series]) -> arb_series:
    able = [x for x in args if not any(x[0] < y[0] for y in args)]
    return able[0] if len(able) == 1 else arb_series([NAN] * 4)
