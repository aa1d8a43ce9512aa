"""JAX's primitives as operations on arrays of expressions.

Arithmetic acts element by element (`Arithmetic`); what moves elements around is NumPy's own, on
arrays of objects. An element is a node, an infinite float, an integer, a truth value, or one of the
kinds of `selects`.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from pgeom.geometry.certificates.algebra import Graph
from pgeom.geometry.certificates.expression import ONE, ZERO, Node, is_rational
from pgeom.geometry.certificates.rules import Ranges
from pgeom.geometry.certificates.selects import Choices, Condition, Unreadable, lift

HALF = Fraction(1, 2)
SIMPLE = 100  # the largest denominator of an exponent that stands for its nearest float


class Arithmetic:
    """Operations on single elements."""

    def __init__(self, graph: Graph, ranges: Ranges):
        self.g, self.choices = graph, Choices(graph, ranges)
        g = graph
        self.unary: dict[str, Callable[[Node], Any]] = {
            "neg": lambda x: g.scale(-1, x),
            "exp": g.exp,
            "exp2": lambda x: g.exp(g.mul(g.log(g.const(2)), x)),
            "expm1": lambda x: g.lin(-ONE, [(ONE, g.exp(x))]),
            "log": self._log,
            "log2": self._log2,
            "log1p": lambda x: self._log(g.lin(ONE, [(ONE, x)]), "log1p"),
            "sqrt": lambda x: self.power(x, HALF, "sqrt"),
            "rsqrt": lambda x: self.power(x, -HALF, "rsqrt"),
            "cbrt": self._cube_root,
            "square": lambda x: g.power(x, 2),
            "abs": g.absolute,
            "logistic": lambda x: g.power(g.lin(ONE, [(ONE, g.exp(g.scale(-1, x)))]), -1),
            "tanh": lambda x: g.lin(
                ONE, [(-2 * ONE, g.power(g.lin(ONE, [(ONE, g.exp(g.scale(2, x)))]), -1))]
            ),
            **{name: self._function(name) for name in ("sin", "cos", "tan", "atan", "erf")},
            "erfc": lambda x: g.lin(ONE, [(-ONE, self._function("erf")(x))]),
            "sinh": lambda x: self._hyperbolic(x, -HALF),
            "cosh": lambda x: self._hyperbolic(x, HALF),
            "sign": self._sign,
        }
        self.binary: dict[str, Callable[[Any, Any], Any]] = {
            "add": lambda x, y: self._sum(x, y),
            "add_any": lambda x, y: self._sum(x, y),
            "sub": lambda x, y: self._sum(x, self._negative(y)),
            "mul": lambda x, y: self._product(x, y),
            "div": lambda x, y: self._quotient(x, y),
            "max": lambda x, y: self._maximum(x, y),
            "min": lambda x, y: self._negative(self._maximum(self._negative(x), self._negative(y))),
            "pow": lambda x, y: self._power(x, y),
        }

    def _function(self, name: str) -> Callable[[Node], Node]:
        return lambda x: self.g.node(name, (x,))

    def apply(self, name: str, x: Any) -> Any:
        """An operation on one element."""
        return lift(lambda y: self._apply(name, y), real(x, self.g))

    def combine(self, name: str, x: Any, y: Any) -> Any:
        """An operation on two elements."""
        return lift(self.binary[name], real(x, self.g), real(y, self.g))

    def clamp(self, low: Any, x: Any, high: Any) -> Any:
        """x, or the bound that it is beyond."""
        return self.combine("min", self.combine("max", x, low), high)

    def polynomial(self, x: Any, *coefficients: Any) -> Any:
        """The polynomial of such coefficients, the constant one first."""
        total, *others = reversed(coefficients)
        for c in others:
            total = self.combine("add", self.combine("mul", total, x), c)
        return total

    def _apply(self, name: str, x: Any) -> Any:
        if isinstance(x, float):
            limits = {"neg": -x, "exp": x if x > 0 else 0, "abs": math.inf, "log": x, "log2": x}
            value = limits.get(name, math.nan)
            return self._number(value, name)
        return self.unary[name](x)

    def _number(self, value: float, name: str) -> Any:
        if math.isnan(value):
            return Unreadable(f"`{name}` of an infinite constant")
        return value if math.isinf(value) else self.g.const(Fraction(value))

    def _sum(self, x: Any, y: Any) -> Any:
        if isinstance(x, float) and isinstance(y, float):
            return self._number(x + y, "add")
        return x if isinstance(x, float) else y if isinstance(y, float) else self.g.add(x, y)

    def _negative(self, x: Any) -> Any:
        return -x if isinstance(x, float) else self.g.scale(-1, x)

    def _product(self, x: Any, y: Any) -> Any:
        for a, b in ((x, y), (y, x)):
            if isinstance(a, float):
                sign = float(np.sign(b)) if isinstance(b, float) else self.g.sign(b) or math.nan
                known = isinstance(b, float) or is_rational(b)
                return self._number(a * sign if known else math.nan, "mul")
        return self.g.mul(x, y)

    def _quotient(self, x: Any, y: Any) -> Any:
        if isinstance(y, float):
            return (
                Unreadable("`div` by an infinite constant")
                if isinstance(x, float)
                else self.g.const(0)
            )
        if is_rational(y) and y.data[0] == 0:
            return Unreadable("`div` by zero")
        inverse = self.power(y, -ONE, "div")
        return inverse if isinstance(inverse, Unreadable) else self._product(x, inverse)

    def _maximum(self, x: Any, y: Any) -> Any:
        if isinstance(x, float) or isinstance(y, float):
            known = [a for a in (x, y) if a != -math.inf]
            return math.inf if math.inf in known else known[0] if known else -math.inf
        return self.g.maximum(x, y)

    def _power(self, x: Any, y: Any) -> Any:
        if isinstance(x, float) or isinstance(y, float):
            return Unreadable("`pow` of an infinite constant")
        if is_rational(y):
            return self.power(x, fraction(y.data[0]), "pow")
        logarithm = self._log(x, "pow")
        return self.g.exp(self.g.mul(y, logarithm)) if isinstance(logarithm, Node) else logarithm

    def _log(self, x: Node, name: str = "log") -> Any:
        if is_rational(x) and x.data[0] == 0:
            return -math.inf if name == "log" else Unreadable(f"`{name}` of zero")
        return self.g.log(x) if self._is_defined(x, -HALF) else outside(name)

    def _log2(self, x: Node) -> Any:
        log, unit = self._log(x), self.g.power(self.g.log(self.g.const(2)), -1)
        # −∞ is that in every unit
        return log if isinstance(log, float) else lift(lambda y: self.g.mul(unit, y), log)

    def power(self, x: Node, r: Fraction, name: str) -> Any:
        """x^r, where that is a real number wherever all p_k are positive."""
        return self.g.power(x, r) if self._is_defined(x, r) else outside(name)

    def _is_defined(self, x: Node, r: Fraction) -> bool:
        """Whether x^r is: checked before a simplification may hide it."""
        whole, ranges = r.denominator == 1, self.choices.ranges
        if whole and r >= 0:
            return True
        return ranges.exceeds_zero(x, r > 0) or (whole and ranges.exceeds_zero(self._negative(x)))

    def is_finite(self, x: Any) -> Any:
        if isinstance(x, float) or self.choices.ranges.range(x).finite:
            return not isinstance(x, float)
        return Unreadable("`is_finite` of a number that may be infinite")

    def _cube_root(self, x: Node) -> Any:
        if self.g.sign(x) not in (0, 1):
            return Unreadable("`cbrt` of a number that may be negative")
        return self.g.power(x, Fraction(1, 3))

    def _hyperbolic(self, x: Node, sign: Fraction) -> Node:
        g = self.g
        return g.lin(ZERO, [(HALF, g.exp(x)), (sign, g.exp(g.scale(-1, x)))])

    def _sign(self, x: Node) -> Any:
        range_ = self.choices.ranges.range(x)
        if range_.lo > 0 or range_.hi < 0:
            return self.g.const(1 if range_.lo > 0 else -1)
        return Unreadable("`sign` of a number that may be zero")


def outside(name: str) -> Unreadable:
    return Unreadable(f"`{name}` of a number that may be outside its domain")


def fraction(r: Fraction) -> Fraction:
    """An exponent: the fraction that was meant by the float nearest to it, such as 1/3."""
    simple = r.limit_denominator(SIMPLE)
    return simple if float(simple) == float(r) else r


def negation(x: Any) -> Any:
    if isinstance(x, Condition):
        above, on, below = x.truth
        return replace(x, truth=(not above, not on, not below))
    return not x


def conjunction(x: Any, y: Any) -> Any:
    return _joined(x, y, True)


def disjunction(x: Any, y: Any) -> Any:
    return _joined(x, y, False)


def _joined(x: Any, y: Any, neutral: bool) -> Any:
    """x and y, or x or y."""
    for a, b in ((x, y), (y, x)):
        if isinstance(a, bool):
            return b if a is neutral else not neutral
    return x if x == y else Unreadable("several conditions that cut through the simplex")


def number(value: Any, graph: Graph) -> Any:
    """A constant of a jaxpr as an element: exactly the number that the float is."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    value = float(value)
    if math.isnan(value):
        return Unreadable("a constant that is not a number")
    return value if math.isinf(value) else graph.const(Fraction(value))


def real(x: Any, graph: Graph) -> Any:
    """An element of an array of floats."""
    if isinstance(x, (bool, int)):
        return graph.const(int(x))
    if isinstance(x, Condition):
        return Unreadable("a condition that cuts through the simplex")
    return x


def is_concrete(array: np.ndarray) -> bool:
    """Whether all elements are integers or truth values."""
    return all(isinstance(x, (bool, int)) for x in array.flat)
