"""Real-valued expressions of a point of the simplex, with exact rational constants.

>>> x, y = Node(0, "p", (), (0,)), Node(1, "p", (), (1,))
>>> terms(Node(2, "lin", (x, y), (Fraction(1), Fraction(2), Fraction(3))))[1]
(Fraction(3, 1), Node(index=1, op='p', args=(), data=(1,)))
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import fmpq

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One operation of an expression.

    Attributes:
      index: its place in the graph, after those of its arguments.
      op: `p` (a class's probability), `lin` (c₀ + Σ c_i x_i), `mono` (Π x_i^{r_i}), `lse`
        (log Σ c_i exp x_i), `max`, `ramp` (max(x, 0)^r, r > 1), or a function of one variable.
      args: the x_i.
      data: the c_i or r_i; of `p` the class.
    """

    index: int
    op: str
    args: tuple["Node", ...]
    data: tuple[Any, ...]


def constant(x: Node) -> Fraction:
    """c₀ of a sum, 0 of anything else."""
    return x.data[0] if x.op == "lin" else ZERO


def terms(x: Node) -> list[tuple[Fraction, Node]]:
    """The pairs (c_i, x_i) of a sum; (1, x) of anything else."""
    return list(zip(x.data[1:], x.args, strict=True)) if x.op == "lin" else [(ONE, x)]


def factors(x: Node) -> list[tuple[Node, Fraction]]:
    """The pairs (x_i, r_i) of a product; (x, 1) of anything else."""
    return list(zip(x.args, x.data, strict=True)) if x.op == "mono" else [(x, ONE)]


def coefficient(x: Node, y: Node) -> Fraction:
    """The coefficient of y in the sum x."""
    return next((c for c, z in terms(x) if z is y), ZERO)


def are_opposite(x: Node, y: Node) -> bool:
    """Whether x = −y by their terms."""
    return constant(x) == -constant(y) and [(-c, z) for c, z in terms(x)] == terms(y)


def is_rational(x: Node) -> bool:
    return x.op == "lin" and not x.args


def is_multiple(x: Node) -> bool:
    """Whether x is c·y with a rational c."""
    return x.op == "lin" and len(x.args) == 1 and x.data[0] == 0


def is_root(x: Node) -> bool:
    """Whether x has a fractional power."""
    return x.op == "mono" and any(r.denominator > 1 for r in x.data)


def is_affine(x: Node) -> bool:
    """Whether x is affine in p."""
    return x.op == "p" or (x.op == "lin" and all(y.op == "p" for y in x.args))


def reachable(root: Node, *, through_affine: bool = False) -> list[Node]:
    """The nodes that the root is made of, arguments first; affine ones are taken as a whole."""
    found: dict[int, Node] = {}
    todo = [root]
    while todo:
        x = todo.pop()
        if x.index not in found:
            found[x.index] = x
            todo += x.args if through_affine or not is_affine(x) else ()
    return [found[i] for i in sorted(found)]


def affine(x: Node) -> tuple[Fraction, dict[int, Fraction]]:
    """The constant and the coefficients of a node that is affine in p."""
    if x.op == "p":
        return ZERO, {x.data[0]: ONE}
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


def rational(x: Fraction) -> fmpq:
    return fmpq(x.numerator, x.denominator)


def fraction(x: fmpq) -> Fraction:
    return Fraction(int(x.p), int(x.q))


def is_softplus(x: Node) -> bool:
    """Whether x is log(eʸ + 1)."""
    return x.op == "lse" and x.data == (1, 1) and is_rational(x.args[1]) and not constant(x.args[1])


def is_constant(x: Node) -> bool:
    """Whether x does not depend on p."""
    return all(y.op != "p" for y in reachable(x, through_affine=True))
