"""Regions of the simplex, and affine functions on them.

A `Cell` is a simplex inside the simplex, a `Ridge` is a range of u = w·p for functions of u alone.

>>> from pgeom.geometry.certificates.algebra import Graph
>>> g = Graph(3)
>>> Cell.whole(3).affine(g.sub(g.p(0), g.p(1)))[0]
[-1, 1]
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol, runtime_checkable

from flint import fmpq

from pgeom.geometry.certificates.enclosures import NOTHING, Interval, between, exactly
from pgeom.geometry.certificates.expression import ZERO, Node

Affine = tuple[Fraction, dict[int, Fraction]]
Point = tuple[Fraction, ...]
Rational = tuple[fmpq, ...]
Line = tuple[Interval, Interval]
START, END = fmpq(0), fmpq(1)


def affine(x: Node) -> Affine:
    """The constant and the coefficients of a node that is affine in p."""
    if x.op == "p":
        return ZERO, {x.data[0]: Fraction(1)}
    return x.data[0], {y.data[0]: c for y, c in zip(x.args, x.data[1:], strict=True)}


def at_vertices(x: Node, K: int) -> list[Fraction]:
    """The values at e_1, …, e_K, which determine an affine node on the simplex."""
    const, slopes = affine(x)
    return [const + slopes.get(k, ZERO) for k in range(K)]


def extremes(x: Node, K: int) -> tuple[Fraction, Fraction]:
    """The least and the largest value of an affine node on the simplex."""
    const, slopes = affine(x)
    values = [const + c for c in slopes.values()] + [const] * (len(slopes) < K)
    return min(values), max(values)


def unit(k: int, K: int) -> "Rational":
    return tuple(fmpq(int(i == k)) for i in range(K))


def rational(x: Fraction) -> fmpq:
    return fmpq(x.numerator, x.denominator)


@runtime_checkable
class Region(Protocol):
    """Part of a line or of the simplex, with a direction in which things are differentiated."""

    def affine(self, x: Node) -> Line:
        """The exact range of an affine node, and its slope."""
        ...


class Cell:
    """The simplex spanned by points of the simplex, with derivatives along d if there is one."""

    def __init__(self, vertices: list[Rational], d: Rational | None = None):
        self.vertices, self.d = vertices, d
        self._whole = False

    @classmethod
    def whole(cls, K: int) -> "Cell":
        """All of the simplex."""
        cell = cls([unit(k, K) for k in range(K)])
        cell._whole = True
        return cell

    def affine(self, x: Node) -> Line:
        const, slopes = affine(x)
        rationals = [(k, rational(c)) for k, c in slopes.items()]
        base = rational(const)
        if self._whole:  # the values at the vertices are known without a sum
            values = [base + c for _, c in rationals] + [base] * (len(slopes) < len(self.vertices))
        else:
            values = [sum((c * v[k] for k, c in rationals), base) for v in self.vertices]
        value = between(min(values), max(values))
        if self.d is None:
            return value, NOTHING
        slope = sum((c * self.d[k] for k, c in rationals), fmpq(0))
        return value, between(slope, slope)

    def range_along(self, along: "Direction") -> tuple[fmpq, fmpq]:
        """The range of u."""
        w = [rational(x) for x in along.w]
        values = [sum((a * b for a, b in zip(w, v, strict=True)), fmpq(0)) for v in self.vertices]
        return min(values), max(values)

    def longest_edge(self) -> tuple[int, int]:
        """The pair of vertices that are furthest apart."""
        pairs = [(i, j) for i in range(len(self.vertices)) for j in range(i)]
        return max(pairs, key=lambda pair: self._square(*pair))

    def _square(self, i: int, j: int) -> fmpq:
        pair = zip(self.vertices[i], self.vertices[j], strict=True)
        return sum(((x - y) ** 2 for x, y in pair), fmpq(0))

    def split(self, i: int, j: int) -> tuple["Cell", "Cell"]:
        """The halves on either side of the middle of an edge."""
        pair = zip(self.vertices[i], self.vertices[j], strict=True)
        middle = tuple((x + y) / 2 for x, y in pair)
        first, second = list(self.vertices), list(self.vertices)
        first[i], second[j] = middle, middle
        return Cell(first), Cell(second)

    def centre(self) -> Rational:
        return tuple(sum(x, fmpq(0)) / len(x) for x in zip(*self.vertices, strict=True))


@dataclass(frozen=True)
class Direction:
    """u = w·p with 0 ≤ w ≤ 1, both attained: u takes all values from 0 to 1."""

    w: Point
    _known: dict[Node, tuple[Fraction, Fraction]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def point(self, u: fmpq) -> Rational:
        """A point with w·p = u, between two vertices."""
        return tuple(
            a + u * b
            for a, b in zip(unit(self.w.index(ZERO), len(self.w)), self.step(), strict=True)
        )

    def step(self) -> Rational:
        """The direction from a vertex with u = 0 to one with u = 1."""
        low, high = (unit(self.w.index(v), len(self.w)) for v in (0, 1))
        return tuple(b - a for a, b in zip(low, high, strict=True))

    def relate(self, x: Node) -> tuple[Fraction, Fraction]:
        """(α, β) with x = α·u + β on the simplex."""
        if x not in self._known:
            values = at_vertices(x, len(self.w))
            low, high = values[self.w.index(ZERO)], values[self.w.index(1)]
            pairs = zip(values, self.w, strict=True)
            assert all(v == low + (high - low) * w for v, w in pairs), "not a function of u"
            self._known[x] = high - low, low
        return self._known[x]


def direction(x: Node, K: int) -> Direction | None:
    """The direction that an affine node is a function of; None if it is constant.

    Of w and 1 − w, the one with fewer classes in it, or else with more of the first class.
    """
    values = at_vertices(x, K)
    low, high = min(values), max(values)
    if low == high:
        return None
    w = tuple((v - low) / (high - low) for v in values)
    other = tuple(1 - x for x in w)
    return Direction(min((w, other), key=lambda w: (sum(x != 0 for x in w), [-x for x in w])))


class Ridge:
    """The points with lo ≤ u ≤ hi, for functions of u alone."""

    def __init__(self, along: Direction, lo: fmpq, hi: fmpq):
        self.along, self.lo, self.hi = along, lo, hi

    def affine(self, x: Node) -> Line:
        slope, const = self.along.relate(x)
        a, b = rational(slope), rational(const)
        ends = a * self.lo + b, a * self.hi + b
        return between(min(ends), max(ends)), exactly(slope)
