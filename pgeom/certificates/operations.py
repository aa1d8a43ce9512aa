"""JAX's primitives as operations on arrays of expressions.

Arithmetic acts element by element (`Arithmetic`), and reductions along axes. An element is a node,
an infinite float, an integer, a truth value, or one of `Unreadable`, `Split` and `Condition`.

A choice that is decided inside the simplex, such as p > 0, is made once and for all; what the
function is on the face p = 0 is kept beside it (`Split`) until it agrees with the limit there. A
choice that cuts through the simplex is written with max(·, 0) where that is the same function.

>>> from pgeom.certificates.algebra import Graph
>>> ranges = Ranges(3)
>>> g = Graph(3, ranges.sign)
>>> do = Arithmetic(g, ranges)
>>> inside = do.apply("gt", g.p(0), g.const(0))
>>> inside.inside, inside.other, do.choose(inside, g.const(0), g.p(0)) is g.p(0)
(True, False, True)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, combinations
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from pgeom.certificates.arithmetics import Intervals, Undefined
from pgeom.certificates.expression import (
    ONE,
    ZERO,
    Node,
    coefficient,
    constant,
    exactly,
    is_affine,
    is_rational,
    nearby,
    terms,
)
from pgeom.certificates.matrices import is_bilinear, quadratic_form
from pgeom.certificates.rules import Ranges

HALF = fmpq(1, 2)
SIMPLE = 100  # the largest denominator of an exponent that stands for its nearest float
SORTED = 11  # numbers that are sorted at most: the sets of them are written out
TRUTH = {  # of `d ? 0` where d is positive, zero, negative
    "gt": (True, False, False),
    "ge": (True, True, False),
    "lt": (False, False, True),
    "le": (False, True, True),
    "eq": (False, True, False),
    "ne": (True, False, True),
}
WITH_INFINITY = {*TRUTH, "is_finite"}  # operations that take infinite numbers themselves


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something that has no translation; an error only if the result depends on it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Split:
    """A value inside the simplex, and another one where the affine `face` is zero."""

    inside: Any
    face: Node
    other: Any


@dataclass(frozen=True, slots=True)
class Condition:
    """`where positive` if d > 0, `where zero` if d = 0, `where negative` if d < 0."""

    d: Node
    truth: tuple[bool, bool, bool]


def lift(f, *args):
    """f of arguments that may be split or unreadable."""
    if (broken := next((x for x in args if isinstance(x, Unreadable)), None)) is not None:
        return broken
    faces = {x.face for x in args if isinstance(x, Split)}
    if not faces:
        return f(*args)
    if len(faces) > 1:
        return Unreadable("`where` on several faces of the simplex at once")
    (face,) = faces
    parts = [(x.inside, x.other) if isinstance(x, Split) else (x, x) for x in args]
    inside, other = (lift(f, *xs) for xs in zip(*parts, strict=True))
    return Split(inside, face, other)


def value_on_face(x, face, K) -> fmpq | None:
    """The value where the face is zero, if it is one number and everything in x is finite there."""
    ranges = Intervals(K)
    ranges.known[face] = Intervals.zero
    try:
        value = ranges(x)
    except Undefined:
        return None
    one_number = value.lo == value.hi and all(part.finite for part in ranges.known.values())
    return value.lo.fmpq() if one_number else None


class Arithmetic:
    """Operations on single elements: arithmetic, comparisons and choices."""

    def __init__(self, graph, ranges: Ranges):
        self.g, self.ranges = graph, ranges
        g = graph
        one = g.const(1)
        self.operations: dict[str, Callable[..., Any]] = {
            "neg": lambda x: g.scale(-1, x),
            "exp": g.exp,
            "exp2": lambda x: g.exp(g.mul(g.log(g.const(2)), x)),
            "expm1": lambda x: g.sub(g.exp(x), one),
            "log": self._log,
            "log2": self._log2,
            "log1p": lambda x: self._log(g.add(one, x), "log1p"),
            "sqrt": lambda x: self.power(x, HALF, "sqrt"),
            "rsqrt": lambda x: self.power(x, -HALF, "rsqrt"),
            "cbrt": lambda x: self.power(x, ONE / 3, "cbrt"),
            "square": lambda x: g.power(x, 2),
            "abs": g.absolute,
            "logistic": lambda x: g.power(g.add(one, g.exp(g.scale(-1, x))), -1),
            "tanh": lambda x: g.sub(one, g.scale(2, g.power(g.add(one, g.exp(g.scale(2, x))), -1))),
            "sinh": lambda x: g.scale(HALF, g.sub(g.exp(x), g.exp(g.scale(-1, x)))),
            "cosh": lambda x: g.scale(HALF, g.add(g.exp(x), g.exp(g.scale(-1, x)))),
            "erfc": lambda x: g.sub(one, g.node("erf", (x,))),
            "sign": self._sign,
            "add": g.add,
            "add_any": g.add,
            "sub": g.sub,
            "mul": g.mul,
            "div": self._quotient,
            "max": g.maximum,
            "min": lambda x, y: g.scale(-1, g.maximum(g.scale(-1, x), g.scale(-1, y))),
            "pow": self._power,
            "is_finite": self._is_finite,
            **{op: partial(self._compare, op) for op in TRUTH},
        }
        for name in ("sin", "cos", "tan", "atan", "erf"):
            self.operations[name] = lambda x, name=name: g.node(name, (x,))

    def on_reals(self, f, *args):
        """f of elements of arrays of floats."""
        return lift(f, *(real(x, self.g) for x in args))

    def apply(self, name, *args):
        """An operation on elements."""

        def one(*xs):
            infinite = any(isinstance(x, float) for x in xs) and name not in WITH_INFINITY
            return infinite_result(name, *xs) if infinite else self.operations[name](*xs)

        return self.on_reals(one, *args)

    def clamp(self, low, x, high):
        """x, or the bound that it is beyond."""
        return self.apply("min", self.apply("max", x, low), high)

    def polynomial(self, x, *coefficients):
        """The polynomial of such coefficients, the constant one first."""
        total, *others = reversed(coefficients)
        for c in others:
            total = self.apply("add", self.apply("mul", total, x), c)
        return total

    def _quotient(self, x, y):
        if is_rational(y) and y.data[0] == 0:
            return Unreadable("`div` by zero")
        inverse = self.power(y, -ONE, "div")
        return inverse if isinstance(inverse, Unreadable) else self.g.mul(x, inverse)

    def _power(self, x, y):
        if is_rational(y):
            return self.power(x, nearest_fraction(y.data[0]), "pow")
        logarithm = self._log(x, "pow")
        return self.g.exp(self.g.mul(y, logarithm)) if isinstance(logarithm, Node) else logarithm

    def _log(self, x, name="log"):
        if is_rational(x) and x.data[0] == 0:
            return -math.inf if name == "log" else Unreadable(f"`{name}` of zero")
        return self.g.log(x) if self._is_defined(x, -HALF) else outside_domain(name)

    def _log2(self, x):
        unit = self.g.power(self.g.log(self.g.const(2)), -1)
        return lift(lambda y: self.g.mul(unit, y), self._log(x, "log2"))

    def power(self, x, r, name):
        """x^r, where that is a real number wherever all p_k are positive."""
        return self.g.power(x, r) if self._is_defined(x, r) else outside_domain(name)

    def _is_defined(self, x, r):
        """Whether x^r is: checked before a simplification may hide it."""
        whole, ranges = r.denominator == 1, self.ranges
        if whole and r >= 0:
            return True
        return ranges.exceeds_zero(x, r > 0) or (whole and ranges.exceeds_zero(self.g.scale(-1, x)))

    def _is_finite(self, x):
        if isinstance(x, float) or self.ranges.range(x).finite:
            return not isinstance(x, float)
        return Unreadable("`is_finite` of a number that may be infinite")

    def _sign(self, x):
        range_ = self.ranges.range(x)
        if range_.lo > 0 or range_.hi < 0:
            return self.g.const(1 if range_.lo > 0 else -1)
        return Unreadable("`sign` of a number that may be zero")

    def _compare(self, op, x, y):
        """x ? y of numbers and nodes, which on the boundary may not be infinite."""
        if not all(isinstance(z, float) or self.ranges.range(z).finite for z in (x, y)):
            return Unreadable(f"`{op}` of a number that may be infinite")
        if isinstance(x, float) or isinstance(y, float):
            a, b = (z if isinstance(z, float) else 0.0 for z in (x, y))  # one is infinite
            return TRUTH[op][1 - ((a > b) - (a < b))]
        d = self.g.sub(x, y)
        sign = self.ranges.sign(d)
        if sign is None:
            return Condition(d, TRUTH[op])
        if sign == 0:
            return TRUTH[op][1]
        truth, size = TRUTH[op][::sign], self.g.scale(sign, d)
        if truth[0] == truth[1] or self.ranges.range(size).lo > 0:
            return truth[0]
        return Split(truth[0], size, truth[1]) if is_affine(d) else Condition(d, TRUTH[op])

    def choose(self, condition, no, yes):
        """`jnp.where(condition, yes, no)`."""
        if isinstance(condition, Unreadable):
            return condition
        if isinstance(condition, int) and condition in (0, 1):
            return yes if condition else no
        if isinstance(condition, Split):
            return self._split(condition, no, yes)
        if not isinstance(condition, Condition):
            return Unreadable("a choice by a number that is not known")
        return lift(lambda a, b: self._cut(condition, a, b), no, yes)

    def _split(self, condition, no, yes):
        face = condition.face
        inside, other = (yes if truth else no for truth in (condition.inside, condition.other))
        inside = inside.inside if isinstance(inside, Split) and inside.face is face else inside
        other = other.other if isinstance(other, Split) and other.face is face else other
        if isinstance(inside, Split) or isinstance(other, Split):
            return Unreadable("`where` on several faces of the simplex at once")
        both = isinstance(inside, Node) and isinstance(other, Node) and is_rational(other)
        if both and value_on_face(inside, face, self.g.K) == other.data[0]:
            return inside
        return Split(inside, face, other)

    def _cut(self, condition, no, yes):
        """no + Σ c·max(d, 0)^r if yes − no = Σ c·d^r: the same without a choice."""
        d, truth, g = condition.d, condition.truth, self.g
        no, yes = (g.const(int(x)) if isinstance(x, (bool, int)) else x for x in (no, yes))
        if no is yes:
            return no
        if isinstance(no, Node) and isinstance(yes, Node) and truth[0] != truth[2]:
            if not truth[0]:
                no, yes = yes, no
            if len(terms(d)) == 1 and terms(d)[0][0] < 0:  # so that d = |x| − c, not c − |x|
                d, no, yes = g.scale(-1, d), yes, no
            beyond = g.maximum(d, g.const(0))
            if (found := self._powers(g.sub(yes, no), d)) is not None:
                powers = [(c, g.power(beyond, r)) for r, c in found if c]
                return g.lin([(ONE, no), *powers])
        return Unreadable("`where` with a condition that cuts through the simplex")

    def _powers(self, gap, d):
        """Pairs (r, c) with gap = Σ c·d^r and r > 0, or None."""
        own = [(c, x) for c, x in terms(gap) if x.op == "mono" and x.args == (d,)]
        rest = self.g.lin([pair for pair in terms(gap) if pair not in own], constant(gap))
        if any(x.data[0] <= 0 for _, x in own):
            return None
        found = self._quadratic_in(rest, d)
        if found is None:
            return None
        return [(ONE, found[0]), (2 * ONE, found[1]), *((x.data[0], c) for c, x in own)]

    def _quadratic_in(self, x, d):
        """(a, b) with x = a·d + b·d² on the simplex, by coefficients; or None."""
        g = self.g
        square = g.power(d, 2)
        if not is_affine(d) and len(terms(d)) == 1:
            ((c, y),), e = terms(d), constant(d)
            square = g.lin([(2 * e * c, y), (c**2, g.power(y, 2))], e**2)
        parts = {y for z in (d, square, x) for _, y in terms(z)}
        others = [y for y in parts if not (is_affine(y) or is_bilinear(y))]
        columns = []
        for z in (d, square, x):
            Q = quadratic_form(
                g.lin([(c, y) for c, y in terms(z) if y not in others], constant(z)), g.K
            )
            columns.append([*Q.entries(), *(coefficient(z, y) for y in others)])
        table, rank = fmpq_mat([*zip(*columns, strict=True)]).rref()
        if rank > 2 or table[rank - 1, rank - 1] != 1:
            return None
        return table[0, 2], table[1, 2] if rank == 2 else ZERO


def infinite_result(name, *xs):
    """An operation on infinite numbers, and on others of which it matters that they are finite."""
    if name in ("max", "min"):
        weakest = -math.inf if name == "max" else math.inf
        others = [x for x in xs if x != weakest]
        return -weakest if -weakest in others else [*others, weakest][0]
    a, *b = (x if isinstance(x, float) else 0.0 for x in xs)
    if name == "exp" and a < 0:
        return 0
    values = {"neg": -a, "exp": a, "abs": math.inf, "add": sum(b, a), "sub": a - sum(b)}
    value = values.get(name, math.nan)
    return value if math.isinf(value) else Unreadable(f"`{name}` of an infinite constant")


def outside_domain(name) -> Unreadable:
    return Unreadable(f"`{name}` of a number that may be outside its domain")


def nearest_fraction(r) -> fmpq:
    """An exponent: the fraction that was meant by the float nearest to it, such as 1/3."""
    simple = nearby(r, SIMPLE)
    return simple if float(simple) == float(r) else r


def negation(x):
    if isinstance(x, Condition):
        above, on, below = x.truth
        return replace(x, truth=(not above, not on, not below))
    return not x


def joined(neutral, x, y):
    """x and y if the neutral value is true, x or y if it is false."""
    for a, b in ((x, y), (y, x)):
        if isinstance(a, bool):
            return b if a is neutral else not neutral
    return x if x == y else Unreadable("several conditions that cut through the simplex")


def number(value, graph):
    """A constant of a jaxpr as an element: exactly the number that the float is."""
    if isinstance(value, (bool, int)):
        return value
    value = float(value)
    if math.isnan(value):
        return Unreadable("a constant that is not a number")
    return value if math.isinf(value) else graph.const(exactly(value))


def real(x, graph):
    """An element of an array of floats."""
    if isinstance(x, (bool, int)):
        return graph.const(int(x))
    if isinstance(x, Condition):
        return Unreadable("a condition that cuts through the simplex")
    return x


def is_concrete(array):
    """Whether all elements are integers or truth values."""
    return all(isinstance(x, (bool, int)) for x in array.flat)


def _sort(do, args, params, aval):
    """In ascending order along one axis; of several arrays at once it is not read."""
    (array,) = args
    axis = params["dimension"]
    return _along(lambda row: _descending(do, row)[::-1], array, axis, array.shape[axis])


def _largest(do, args, params, aval):
    rows, k = args[0], params["k"]
    if rows.ndim != 1:
        raise NotImplementedError
    values = np.array(_descending(do, list(rows))[:k], dtype=object)
    places = np.full(k, Unreadable("the indices of `top_k`"), dtype=object)
    return [values, places]


def _descending(do, elements):
    """The k-th largest is the sum of the k largest less that of the k − 1 largest.

    The sum of the k largest is the maximum over all sets of k elements.
    """
    n, g = len(elements), do.g
    if n > SORTED or not all(isinstance(x, Node) for x in elements):
        raise NotImplementedError
    sums = [g.const(0)]
    for k in range(1, n + 1):
        sets = dict.fromkeys(g.add(*chosen) for chosen in combinations(elements, k))
        kept = sorted(sets, key=lambda x: x.index)
        sums.append(kept[0] if len(kept) == 1 else g.node("max", kept))
    return [g.sub(sums[k], sums[k - 1]) for k in range(1, n + 1)]


def elementwise(f, *arrays):
    """f on every element, with broadcasting."""
    wide = np.broadcast_arrays(*arrays)
    results = [f(*elements) for elements in zip(*(array.flat for array in wide), strict=True)]
    return np.array(results, dtype=object).reshape(wide[0].shape)


def _along(f, array, axis, size):
    """f on every row along an axis, which then has this size."""
    rows = np.moveaxis(array, axis, -1)
    results = [f(list(rows[index])) for index in np.ndindex(*rows.shape[:-1])]
    new = np.array(results, dtype=object).reshape(*rows.shape[:-1], size)
    return np.moveaxis(new, -1, axis)


def _convert(do, args, params, aval):
    if aval.dtype not in (np.float32, np.float64):
        raise NotImplementedError
    return elementwise(lambda x: do.on_reals(lambda y: y, x), args[0])


def _reduce(name):
    """Σ, Π, max or min over axes."""

    def rule(do, args, params, aval):
        rows = _rows(args[0], params["axes"], ())[0]
        results = [fold(do, name, list(row)) for row in rows]
        return np.array(results, dtype=object).reshape(aval.shape)

    return rule


def fold(do, name, elements):
    """A binary operation over a list; sums and maxima of nodes at once."""
    at_once = {"add": do.g.add, "max": do.g.maximum}
    if name in at_once and elements and all(isinstance(x, Node) for x in elements):
        return at_once[name](*elements)
    result = {"add": 0, "mul": 1, "max": -math.inf, "min": math.inf}[name]
    for x in elements:
        result = do.apply(name, result, x)
    return result


def _cumulative_sum(do, args, params, aval):
    step = -1 if params["reverse"] else 1

    def sums(row):
        return [*accumulate(row[::step], lambda x, y: do.apply("add", x, y))][::step]

    axis = params["axis"]
    return _along(sums, args[0], axis, args[0].shape[axis])


def _dot(do, args, params, aval):
    """Contracted as Σ over the last axis of one and the last of the other."""
    contracted, batches = params["dimension_numbers"]
    x, y = map(_rows, args, contracted, batches)
    pairs = [zip(a, b, strict=True) for i in range(len(x)) for a in x[i] for b in y[i]]
    sums = [fold(do, "add", [do.apply("mul", *one) for one in products]) for products in pairs]
    return np.array(sums, dtype=object).reshape(aval.shape)


def _rows(array, contracted, batch):
    """As [the axes of the batch, those that stay, those that are contracted]."""
    axes = range(array.ndim)
    parts = batch, [a for a in axes if a not in batch and a not in contracted], contracted
    sizes = [math.prod(array.shape[a] for a in part) for part in parts]
    return np.transpose(array, [a for part in parts for a in part]).reshape(sizes)


def _select(do, args, params, aval):
    if len(args) != 3:
        raise NotImplementedError
    return elementwise(do.choose, *args)


def _integer_power(do, args, params, aval):
    exponent = do.g.const(params["y"])
    return elementwise(lambda x: do.apply("pow", x, exponent), args[0])


def _logical(f):
    """Of truth values; of integers, `and`, `or` and `not` act on their bits."""

    def rule(do, args, params, aval):
        if aval.dtype != np.bool_:
            raise NotImplementedError
        return elementwise(lambda *xs: lift(f, *xs), *args)

    return rule


RULES = {  # of arithmetic, the arguments, the parameters, and the shape of the result
    "convert_element_type": _convert,
    "reduce_sum": _reduce("add"),
    "reduce_prod": _reduce("mul"),
    "reduce_max": _reduce("max"),
    "reduce_min": _reduce("min"),
    "cumsum": _cumulative_sum,
    "dot_general": _dot,
    "select_n": _select,
    "clamp": lambda do, args, params, aval: elementwise(do.clamp, *args),
    "integer_pow": _integer_power,
    "polynomial": lambda do, args, params, aval: elementwise(do.polynomial, *args),
    "sort": _sort,
    "top_k": _largest,
    "and": _logical(partial(joined, True)),
    "or": _logical(partial(joined, False)),
    "not": _logical(negation),
}
