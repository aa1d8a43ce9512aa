"""Real-valued expressions of a point of the simplex, and parts of the simplex.

Constants are exact rational numbers. A `Cell` is a simplex inside the simplex, a `Direction` that
of the functions of u = w·p alone.

>>> x, y = Node(0, "p", (), (0,)), Node(1, "p", (), (1,))
>>> terms(Node(2, "lin", (x, y), (fmpq(1), fmpq(2), fmpq(3))))[1]
(3, Node(index=1, op='p', args=(), data=(1,)))
>>> edge, (first, second) = Cell.whole(3).halves()
>>> edge, first.vertices[0]
((0, 1), (1/2, 1/2, 0))
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from flint import fmpq

ZERO, ONE = fmpq(0), fmpq(1)


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One operation of an expression.

    Attributes:
      index: its place in the graph, after those of its arguments.
      op: `p` (a class's probability), `lin` (c₀ + Σ c_i x_i), `mono` (Π x_i^{r_i}), `lse`
        (log Σ c_i exp x_i), `quadratic` (Σ q_ij x_i x_j), `max`, `ramp` (max(x, 0)^r, r > 1), or a
        function of one variable.
      args: the x_i.
      data: the c_i, r_i or q_ij; of `p` the class.
    """

    index: int
    op: str
    args: tuple["Node", ...]
    data: tuple[Any, ...]


def constant(x) -> fmpq:
    """c₀ of a sum, 0 of anything else."""
    return x.data[0] if x.op == "lin" else ZERO


def terms(x) -> list[tuple[fmpq, Node]]:
    """The pairs (c_i, x_i) of a sum; (1, x) of anything else."""
    return list(zip(x.data[1:], x.args, strict=True)) if x.op == "lin" else [(ONE, x)]


def factors(x) -> list[tuple[Node, fmpq]]:
    """The pairs (x_i, r_i) of a product; (x, 1) of anything else."""
    return list(zip(x.args, x.data, strict=True)) if x.op == "mono" else [(x, ONE)]


def coefficient(x, y) -> fmpq:
    """The coefficient of y in the sum x."""
    return next((c for c, z in terms(x) if z is y), ZERO)


def are_opposite(x, y):
    """Whether x = −y by their terms."""
    return constant(x) == -constant(y) and [(-c, z) for c, z in terms(x)] == terms(y)


def is_rational(x):
    return x.op == "lin" and not x.args


def is_multiple(x):
    """Whether x is c·y with a rational c."""
    return x.op == "lin" and len(x.args) == 1 and x.data[0] == 0


def is_root(x):
    """Whether x has a fractional power."""
    return x.op == "mono" and any(r.denominator > 1 for r in x.data)


def is_affine(x):
    """Whether x is affine in p."""
    return x.op == "p" or (x.op == "lin" and all(y.op == "p" for y in x.args))


def reachable(root, *, through_affine: bool = False) -> list[Node]:
    """The nodes that the root is made of, arguments first; affine ones are taken as a whole."""
    found = {}
    todo = [root]
    while todo:
        x = todo.pop()
        if x.index not in found:
            found[x.index] = x
            todo += x.args if through_affine or not is_affine(x) else ()
    return [found[i] for i in sorted(found)]


def affine(x) -> tuple[fmpq, dict[int, fmpq]]:
    """The constant and the coefficients of a node that is affine in p."""
    if x.op == "p":
        return ZERO, {x.data[0]: ONE}
    return x.data[0], {y.data[0]: c for y, c in zip(x.args, x.data[1:], strict=True)}


def at_vertices(x, K) -> list[fmpq]:
    """The values at e_1, …, e_K, which determine an affine node on the simplex."""
    const, slopes = affine(x)
    return [const + slopes.get(k, ZERO) for k in range(K)]


def extremes(x, K) -> tuple[fmpq, fmpq]:
    """The least and the largest value of an affine node on the simplex."""
    const, slopes = affine(x)
    values = [const + c for c in slopes.values()] + [const] * (len(slopes) < K)
    return min(values), max(values)


def is_even(r):
    return r.denominator == 1 and r.numerator % 2 == 0


def exactly(x) -> fmpq:
    """The rational number that a float is."""
    return fmpq(*float(x).as_integer_ratio())


def nearby(x, largest: int) -> fmpq:
    """The nearest rational number whose denominator is not larger than that."""
    simple = as_fraction(x).limit_denominator(largest)
    return fmpq(simple.numerator, simple.denominator)


def as_fraction(x) -> Fraction:
    return Fraction(int(x.p), int(x.q)) if isinstance(x, fmpq) else Fraction(float(x))


def is_softplus(x):
    """Whether x is log(eʸ + 1)."""
    return x.op == "lse" and x.data == (1, 1) and is_rational(x.args[1]) and not constant(x.args[1])


def is_constant(x):
    """Whether x does not depend on p."""
    return all(y.op != "p" for y in reachable(x, through_affine=True))


Point = tuple[fmpq, ...]


def unit(k: int, K) -> Point:
    return tuple(fmpq(int(i == k)) for i in range(K))


def difference(x, y) -> Point:
    return tuple(a - b for a, b in zip(x, y, strict=True))


def dot(x, y) -> fmpq:
    return sum((a * b for a, b in zip(x, y, strict=True) if a != 0), fmpq(0))


@dataclass(frozen=True)
class Cell:
    """The simplex spanned by points of the simplex."""

    vertices: list[Point]

    @classmethod
    def whole(cls, K):
        """All of the simplex."""
        return cls([unit(k, K) for k in range(K)])

    def range_along(self, along) -> tuple[fmpq, fmpq]:
        """The range of u."""
        values = [dot(along.w, v) for v in self.vertices]
        return min(values), max(values)

    def halves(self):
        """The longest edge, and the cells on either side of its middle."""

        def length(pair):
            step = difference(self.vertices[pair[0]], self.vertices[pair[1]])
            return dot(step, step)

        i, j = max(combinations(range(len(self.vertices)), 2), key=length)
        ends = zip(self.vertices[i], self.vertices[j], strict=True)
        first, second = list(self.vertices), list(self.vertices)
        first[i] = second[j] = tuple((x + y) / 2 for x, y in ends)
        return (i, j), (Cell(first), Cell(second))

    def centre(self) -> Point:
        return tuple(sum(x, fmpq(0)) / len(x) for x in zip(*self.vertices, strict=True))


@dataclass(frozen=True)
class Direction:
    """u = w·p with 0 ≤ w ≤ 1, both attained: u takes all values from 0 to 1."""

    w: Point

    @property
    def ends(self) -> tuple[Point, Point]:
        """A vertex with u = 0 and one with u = 1."""
        low, high = (unit(self.w.index(v), len(self.w)) for v in (0, 1))
        return low, high

    def point(self, u) -> Point:
        """The point with w·p = u between the two vertices."""
        return tuple(a + u * (b - a) for a, b in zip(*self.ends, strict=True))

    def step(self) -> Point:
        """From the vertex with u = 0 to the one with u = 1."""
        low, high = self.ends
        return difference(high, low)

    def relate(self, x) -> tuple[fmpq, fmpq]:
        """(α, β) with x = α·u + β on the simplex."""
        values = at_vertices(x, len(self.w))
        low, high = (values[self.w.index(u)] for u in (0, 1))
        return high - low, low


def direction(x, K) -> Direction | None:
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


def direction_of(x, K) -> Direction | None:
    """The direction that x is a function of, None if there are several or none."""
    found = {direction(y, K) for y in reachable(x) if is_affine(y)} - {None}
    return found.pop() if len(found) == 1 else None
