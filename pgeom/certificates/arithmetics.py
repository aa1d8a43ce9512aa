"""Values of an expression in three arithmetics: intervals, Taylor series in balls, and float64.

`Intervals` bound a function on the whole simplex. `Series` bound its derivatives along a line, from
a hull of points; that is also the arithmetic of the checker. `Floats` evaluate many points at once,
to guess what may be proved; nothing is proved by them.

>>> from pgeom.certificates.algebra import Graph
>>> g = Graph(2)
>>> x = g.power(g.p(0), 3)
>>> float(Intervals(2)(x).hi)
1.0
>>> Floats(np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]]))(x).curvature.tolist()
[[3.0]]
>>> float(2 * Series([(fmpq(1, 2),) * 2], (fmpq(1), fmpq(0)))(x)[2])
3.0
"""

import math
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from flint import arb, arb_series, ctx, fmpq

from pgeom.certificates.expression import (
    affine,
    are_opposite,
    at_vertices,
    extremes,
    is_affine,
    is_even,
    reachable,
    unit,
)
from pgeom.simplex import tangent_basis


class Evaluator:
    """Evaluates nodes in one arithmetic, each of them once.

    Numbers add, subtract and multiply by operators; the rest is up to the subclass: rational
    constants, affine functions, powers, maxima, and functions of one variable by name.
    """

    zero: Any
    constant: Any
    affine: Any
    power: Any
    maximum: Any
    function: Any

    def __init__(self):
        self.known = {}

    def shift(self, args):
        """A number that log Σ exp subtracts from its arguments and adds to the result."""
        return self.zero

    def quadratic(self, x, args):
        products = ((y, z) for y in args for z in args)
        pairs = zip(products, x.data, strict=True)
        return sum((y * z * self.constant(q) for (y, z), q in pairs if q), self.zero)

    def __call__(self, root):
        if root not in self.known:
            for x in reachable(root):
                if x not in self.known:
                    self.known[x] = self._evaluate(x)
        return self.known[root]

    def _evaluate(self, x):
        if is_affine(x):
            return self.affine(x)
        args = [self.known[y] for y in x.args]
        if x.op == "lin":
            products = map(mul, args, map(self.constant, x.data[1:]))
            return sum(products, self.constant(x.data[0]))
        if x.op == "mono":
            return reduce(mul, map(self.power, args, x.data))
        if x.op == "quadratic":
            return self.quadratic(x, args)
        if x.op == "lse":
            shift = self.shift(args)
            grown = [self.function("exp", y - shift) for y in args]
            total = sum(map(mul, grown, map(self.constant, x.data)), self.zero)
            return self.function("log", total) + shift
        if x.op == "max":
            return self.maximum(args)
        if x.op == "ramp":
            return self.power(self.maximum([*args, self.zero]), x.data[0])
        return self.function(x.op, args[0])


# Intervals, with endpoints from Arb that are rounded outwards. Unlike a ball with a midpoint and a
# radius, [0, h] stays nonnegative under products, and an end may be infinite.

ZERO = arb(0)


class Undefined(ArithmeticError):
    """A function was applied outside its domain."""


class Interval:
    """All numbers from lo to hi; endpoints are exact and may be infinite."""

    __slots__ = ("hi", "lo")

    def __init__(self, lo, hi):
        """The hull of the balls; all numbers below or above one that is NaN."""
        self.lo = arb.neg_inf() if lo.is_nan() else lo.lower()
        self.hi = arb.pos_inf() if hi.is_nan() else hi.upper()

    def __add__(self, other):
        return Interval(self.lo + other.lo, self.hi + other.hi)

    def __sub__(self, other):
        return Interval(self.lo - other.hi, self.hi - other.lo)

    def __mul__(self, other):
        pairs = [(x, y) for x in (self.lo, self.hi) for y in (other.lo, other.hi)]
        # an infinite end is never attained, so that 0·∞ = 0
        products = [ZERO if x == 0 or y == 0 else x * y for x, y in pairs]
        return Interval(min(x.lower() for x in products), max(x.upper() for x in products))

    @property
    def finite(self):
        return bool(self.lo.is_finite() and self.hi.is_finite())


class Intervals(Evaluator):
    """Ranges on the whole simplex, which are exact for affine functions.

    Raises:
      Undefined: where a function is not defined on the whole interval.
    """

    zero = Interval(ZERO, ZERO)

    def __init__(self, K):
        super().__init__()
        self.K = K

    def constant(self, value):
        exact = arb(value)
        return Interval(exact, exact)

    def affine(self, x):
        low, high = extremes(x, self.K)
        return Interval(arb(low), arb(high))

    def power(self, x, r):
        """x^r: infinite at 0 if r < 0, and undefined for roots of negative numbers."""
        if x.lo >= 0:
            ends = [x.lo**r, x.hi**r]
            return Interval(*ends) if r > 0 else Interval(*reversed(ends))
        if r.denominator > 1 or (r < 0 and not x.hi < 0):
            raise Undefined(f"power {r} of a number that may be negative or zero")
        if not x.finite:
            return Interval(ZERO if is_even(r) else arb.neg_inf(), arb.pos_inf())
        ends = [x.lo**r, x.hi**r]
        if x.hi > 0 and is_even(r):
            ends.append(ZERO)
        return Interval(min(e.lower() for e in ends), max(e.upper() for e in ends))

    def maximum(self, args):
        return Interval(max(x.lo for x in args), max(x.hi for x in args))

    def function(self, op, x):
        if op in ("log", "xlogx") and not x.lo >= 0:
            raise Undefined("log of a negative number")
        if op in ("exp", "log", "atan", "erf"):  # which increase
            return Interval(getattr(x.lo, op)(), getattr(x.hi, op)())
        if op == "xlogx":
            ends = [ZERO if e == 0 else e * e.log() for e in (x.lo, x.hi)]
            lowest = (-arb(1)).exp()
            if x.lo < lowest and x.hi > lowest:
                ends.append(-lowest)
            return Interval(min(e.lower() for e in ends), max(e.upper() for e in ends))
        if not x.finite:
            raise Undefined("a wave of an infinite number")
        value = getattr(x.lo.union(x.hi), op)()
        return Interval(value, value)

    def _evaluate(self, x):
        value = super()._evaluate(x)
        if x.op == "max" and len(x.args) == 2 and are_opposite(*x.args):  # |x| ≥ 0
            return Interval(max(value.lo, ZERO), value.hi)
        return value


# Taylor series around a hull of points, in balls. They are looser than intervals, because a ball
# around [0, h] has negative squares, but there are derivatives of everything.

TERMS = 4  # of a series: up to the third derivative


class Series(Evaluator):
    """Value + slope·t + ½ curvature·t² + … along the direction d, from a hull of points."""

    zero = arb_series([0])

    def __init__(self, points, d):
        super().__init__()
        self.points, self.d = points, d

    def __call__(self, root):
        ctx.cap = TERMS
        return super().__call__(root)

    def constant(self, value) -> fmpq:
        return value

    def affine(self, x):
        constant, slopes = affine(x)
        ends = [sum((c * p[k] for k, c in slopes.items()), constant) for p in self.points]
        slope = sum((c * self.d[k] for k, c in slopes.items()), fmpq(0))
        return arb_series([arb(min(ends)).union(arb(max(ends))), arb(slope)])

    def power(self, x, r):
        if r.denominator == 1:
            return x ** int(r)
        if not x.length() and r > 0:
            return x  # zero
        return (x.log() * r).exp()

    def maximum(self, args):
        largest = [x for x in args if not any(x[0] < y[0] for y in args)]
        return largest[0] if len(largest) == 1 else arb_series([arb.nan()] * TERMS)

    def function(self, op, x):
        return x * x.log() if op == "xlogx" else getattr(x, op)()

    def shift(self, args):
        return max(args, key=lambda x: x[0].mid())  # so that nothing large cancels


def second_derivative(x, points, d):
    """The second derivative along d on the hull of the points."""
    return 2 * Series(points, d)(x)[2]


def is_positive(x, K, concave: bool = False):
    """Whether x > 0 wherever all p_k are, for reasons that a checker sees.

    A concave x is positive if it is so at the vertices.
    """
    if is_affine(x):
        low, high = extremes(x, K)
        return low >= 0 and high > 0
    if x.op == "mono" or (x.op == "lin" and x.data[0] >= 0 and min(x.data[1:], default=1) > 0):
        return all(is_positive(y, K) for y in x.args)
    if x.op == "exp" or (x.op == "max" and any(is_positive(y, K) for y in x.args)):
        return True
    corners = [unit(k, K) for k in range(K)]
    hulls = [[p] for p in corners] if concave else [corners]
    return all(Series(hull, (fmpq(0),) * K)(x)[0] > 0 for hull in hulls)


# Derivatives in float64, at N points along D directions. By hand because XLA takes .3 to .5 s to
# compile the Hessian of one F, and these 10 to 40 ms for the same points.


@dataclass(frozen=True, eq=False, slots=True)
class Taylor:
    """Values `[N, 1]`, slopes and second derivatives `[N, D]`, or what broadcasts to these."""

    value: Any
    slope: Any = 0.0
    curvature: Any = 0.0

    def __add__(self, other):
        curvature = self.curvature + other.curvature
        return Taylor(self.value + other.value, self.slope + other.slope, curvature)

    def __sub__(self, other):
        return self + other * Taylor(-1.0)

    def __mul__(self, other):
        slope = self.value * other.slope + other.value * self.slope
        curvature = self.value * other.curvature + other.value * self.curvature
        return Taylor(self.value * other.value, slope, curvature + 2 * self.slope * other.slope)

    def then(self, value, first, second):
        """f(x) of f, f′ and f″ at x; f″ may be infinite where x does not change."""
        curved = np.where(self.slope == 0, 0.0, second * self.slope**2)
        return Taylor(value, first * self.slope, first * self.curvature + curved)


DERIVATIVES = {  # f, f′ and f″
    "exp": lambda x: (np.exp(x),) * 3,
    "log": lambda x: (np.log(x), 1 / x, -1 / x**2),
    "xlogx": lambda x: (np.where(x > 0, x * np.log(x), 0 * x), 1 + np.log(x), 1 / x),
    "sin": lambda x: (np.sin(x), np.cos(x), -np.sin(x)),
    "cos": lambda x: (np.cos(x), -np.sin(x), -np.cos(x)),
    "atan": lambda x: (np.arctan(x), 1 / (1 + x**2), -2 * x / (1 + x**2) ** 2),
    "erf": lambda x: (np.vectorize(math.erf)(x), bell(x), -2 * x * bell(x)),
}


def bell(x):
    return 2 / math.sqrt(math.pi) * np.exp(-(x**2))


class Floats(Evaluator):
    """Values and derivatives at the points `[N, K]` along directions `[D, K]`, or values alone.

    NaN where the function is not defined.
    """

    zero = Taylor(0.0)

    def __init__(self, points, directions: np.ndarray | None = None):
        super().__init__()
        self.points = points
        self.directions = np.empty((0, points.shape[1])) if directions is None else directions

    def __call__(self, root):
        with np.errstate(all="ignore"):
            return super().__call__(root)

    def constant(self, value):
        return Taylor(float(value))

    def affine(self, x):
        w = np.array(at_vertices(x, self.points.shape[1]), float)
        return Taylor((self.points @ w)[:, None], (self.directions @ w)[None])

    def power(self, x, r):
        e = float(r)
        if e == 1:
            return x
        second = e * (e - 1) * x.value ** (e - 2) if e != 2 else 2.0
        return x.then(x.value**e, e * x.value ** (e - 1), second)

    def maximum(self, args):
        x, *others = args
        for y in others:
            less = x.value < y.value
            x = Taylor(*(np.where(less, getattr(y, k), getattr(x, k)) for k in Taylor.__slots__))
        return x

    def function(self, op, x):
        if op == "tan":
            return self.function("sin", x) * self.power(self.function("cos", x), fmpq(-1))
        return x.then(*DERIVATIVES[op](x.value))

    def shift(self, args):
        return Taylor(reduce(np.maximum, (x.value for x in args)))

    def quadratic(self, x, args):
        K = self.points.shape[1]
        Q = np.array(x.data, float).reshape(K, K)
        Qp, Qd = self.points @ Q, self.directions @ Q
        value = np.sum(Qp * self.points, axis=1)[:, None]
        return Taylor(value, 2 * Qp @ self.directions.T, 2 * np.sum(Qd * self.directions, axis=1))


def values(root, points) -> np.ndarray:
    """The values `[N]` at the points `[N, K]`."""
    return np.broadcast_to(Floats(points)(root).value, (len(points), 1))[:, 0]


def gradients(root, points) -> np.ndarray:
    """The gradients `[N, K]` at the points `[N, K]`."""
    slopes = Floats(points, np.eye(points.shape[1]))(root).slope
    return np.broadcast_to(slopes, points.shape)


class Spectra(NamedTuple):
    """Per point `[N]`: extreme eigenvalues on tangents, and their directions `[N, K]`."""

    points: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    down: np.ndarray
    up: np.ndarray


MEMORY = 2e7  # second derivatives that are held at a time


def affordable(root, K) -> int:
    """How many points are evaluated at a time."""
    return max(1, int(MEMORY / (K**2 * len(reachable(root)))))


def spectra(root, points) -> Spectra:
    """Of the points where the Hessian is finite.

    By polarisation: 2uᵀHv is the second derivative along u + v less those along u and v.
    """
    basis = tangent_basis(points.shape[1]).T
    n, step, rows = len(basis), affordable(root, points.shape[1]), []
    i, j = np.triu_indices(n)
    directions = np.where((i == j)[:, None], basis[i], basis[i] + basis[j])
    for start in range(0, len(points), step):
        some = points[start : start + step]
        second = np.broadcast_to(Floats(some, directions)(root).curvature, (len(some), len(i)))
        along = second[:, i == j]
        H = np.empty((len(some), n, n))
        with np.errstate(invalid="ignore"):
            mixed = np.where(i == j, second, (second - along[:, i] - along[:, j]) / 2)
        H[:, i, j] = H[:, j, i] = mixed
        fine = np.isfinite(H).all(axis=(1, 2))
        values, vectors = np.linalg.eigh(H[fine])
        down, up = vectors[:, :, 0] @ basis, vectors[:, :, -1] @ basis
        rows.append((some[fine], values[:, 0], values[:, -1], down, up))
    return Spectra(*map(np.concatenate, zip(*rows, strict=True)))
