"""Parts of the simplex: cells, and the directions u = w·p of functions of one variable.

>>> first, second = Cell.whole(3).split(0, 1)
>>> first.vertices[0]
(1/2, 1/2, 0)
"""

from dataclasses import dataclass, field
from fractions import Fraction

from flint import fmpq

from pgeom.geometry.certificates.expression import (
    ZERO,
    Node,
    at_vertices,
    is_affine,
    rational,
    reachable,
)

Point = tuple[Fraction, ...]
Rational = tuple[fmpq, ...]


def unit(k: int, K: int) -> Rational:
    return tuple(fmpq(int(i == k)) for i in range(K))


def difference(x: Rational, y: Rational) -> Rational:
    return tuple(a - b for a, b in zip(x, y, strict=True))


def dot(x: Rational, y: Rational) -> fmpq:
    return sum((a * b for a, b in zip(x, y, strict=True) if a != 0), fmpq(0))


@dataclass(frozen=True)
class Cell:
    """The simplex spanned by points of the simplex."""

    vertices: list[Rational]

    @classmethod
    def whole(cls, K: int) -> "Cell":
        """All of the simplex."""
        return cls([unit(k, K) for k in range(K)])

    def range_along(self, along: "Direction") -> tuple[fmpq, fmpq]:
        """The range of u."""
        w = tuple(map(rational, along.w))
        values = [dot(w, v) for v in self.vertices]
        return min(values), max(values)

    def halves(self) -> tuple[tuple[int, int], tuple["Cell", "Cell"]]:
        """The longest edge, and the cells on either side of its middle."""

        def length(pair: tuple[int, int]) -> fmpq:
            step = difference(self.vertices[pair[0]], self.vertices[pair[1]])
            return dot(step, step)

        i, j = max(((i, j) for i in range(len(self.vertices)) for j in range(i)), key=length)
        return (i, j), self.split(i, j)

    def split(self, i: int, j: int) -> tuple["Cell", "Cell"]:
        """The cells on either side of the middle of an edge."""
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

    @property
    def ends(self) -> tuple[Rational, Rational]:
        """A vertex with u = 0 and one with u = 1."""
        low, high = (unit(self.w.index(v), len(self.w)) for v in (0, 1))
        return low, high

    def point(self, u: fmpq) -> Rational:
        """The point with w·p = u between the two vertices."""
        return tuple(a + u * (b - a) for a, b in zip(*self.ends, strict=True))

    def step(self) -> Rational:
        """From the vertex with u = 0 to the one with u = 1."""
        low, high = self.ends
        return difference(high, low)

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


def directions(x: Node, K: int) -> set[Direction]:
    """The directions that x depends on."""
    forms = (y for y in reachable(x) if is_affine(y))
    return {along for y in forms if (along := direction(y, K)) is not None}


def direction_of(x: Node, K: int) -> Direction | None:
    """The direction that x is a function of, None if there are several or none."""
    found = directions(x, K)
    return found.pop() if len(found) == 1 else None
