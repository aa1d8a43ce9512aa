"""Comparisons and choices: `jnp.where`, `jnp.maximum` and the guards at 0.

A choice that is decided inside the simplex, such as p > 0, is made once and for all; what the
function is on the face p = 0 is kept beside it (`Split`) until it agrees with the limit there. A
choice that cuts through the simplex is written with max(·, 0) where that is the same function.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pgeom.geometry.certificates.algebra import Graph
from pgeom.geometry.certificates.expression import (
    Node,
    at_vertices,
    coefficient,
    constant,
    factors,
    is_affine,
    is_constant,
    is_rational,
    rational,
    terms,
)
from pgeom.geometry.certificates.matrices import quadratic_form
from pgeom.geometry.certificates.rules import Ranges

TRUTH = {  # of `d ? 0` where d is positive, zero, negative
    "gt": (True, False, False),
    "ge": (True, True, False),
    "lt": (False, False, True),
    "le": (False, True, True),
    "eq": (False, True, False),
    "ne": (True, False, True),
}


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


def lift(f: Callable[..., Any], *args: Any) -> Any:
    """f of arguments that may be split or unreadable."""
    if (broken := next((x for x in args if isinstance(x, Unreadable)), None)) is not None:
        return broken
    faces = {x.face for x in args if isinstance(x, Split)}
    if not faces:
        return f(*args)
    if len(faces) > 1:
        return Unreadable("`where` on several faces of the simplex at once")
    (face,) = faces
    inside = lift(f, *(x.inside if isinstance(x, Split) else x for x in args))
    other = lift(f, *(x.other if isinstance(x, Split) else x for x in args))
    return Split(inside, face, other)


class Choices:
    """Decides comparisons and makes choices."""

    def __init__(self, graph: Graph, ranges: Ranges):
        self.graph, self.ranges = graph, ranges

    def compare(self, op: str, x: Any, y: Any) -> Any:
        """x ? y of numbers and nodes, which on the boundary may not be infinite."""
        if not all(isinstance(z, float) or self.ranges.range(z).finite for z in (x, y)):
            return Unreadable(f"`{op}` of a number that may be infinite")
        if isinstance(x, float) or isinstance(y, float):  # an infinite one
            sign = (x == float("inf") or y == float("-inf")) - (
                x == float("-inf") or y == float("inf")
            )
            return TRUTH[op][1 - sign]
        d = self.graph.sub(x, y)
        sign = self.ranges.sign(d)
        if sign == 0:
            return TRUTH[op][1]
        if sign is not None:
            truth = TRUTH[op] if sign == 1 else TRUTH[op][::-1]
            size = d if sign == 1 else self.graph.scale(-1, d)
            if truth[0] == truth[1] or self.ranges.range(size).lo > 0:
                return truth[0]
            if is_affine(d):
                return Split(truth[0], size, truth[1])
        return Condition(d, TRUTH[op])

    def choose(self, condition: Any, no: Any, yes: Any) -> Any:
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

    def _split(self, condition: Split, no: Any, yes: Any) -> Any:
        face = condition.face

        def on_face(x: Any) -> Any:
            return x.other if isinstance(x, Split) and x.face is face else x

        inside = yes if condition.inside else no
        inside = inside.inside if isinstance(inside, Split) and inside.face is face else inside
        other = on_face(yes if condition.other else no)
        if isinstance(inside, Split) or isinstance(other, Split):
            return Unreadable("`where` on several faces of the simplex at once")
        if isinstance(inside, Node) and limit(self.graph, inside, face) is other:
            return inside
        return Split(inside, face, other)

    def _cut(self, condition: Condition, no: Any, yes: Any) -> Any:
        """no + Σ c·max(d, 0)^r if yes − no = Σ c·d^r: the same without a choice."""
        d, truth, g = condition.d, condition.truth, self.graph
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
                return g.lin(Fraction(0), [(Fraction(1), no), *powers])
        return Unreadable("`where` with a condition that cuts through the simplex")

    def _powers(self, gap: Node, d: Node) -> list[tuple[Fraction, Fraction]] | None:
        """Pairs (r, c) with gap = Σ c·d^r and r > 0, or None."""
        own = [(c, x) for c, x in terms(gap) if x.op == "mono" and x.args == (d,)]
        rest = self.graph.lin(constant(gap), [pair for pair in terms(gap) if pair not in own])
        if any(x.data[0] <= 0 for _, x in own):
            return None
        found = polynomial(rest, d, self.graph.K) or self._of_one_term(rest, d)
        if found is None:
            return None
        return [(Fraction(1), found[0]), (Fraction(2), found[1]), *((x.data[0], c) for c, x in own)]

    def _of_one_term(self, x: Node, d: Node) -> tuple[Fraction, Fraction] | None:
        """(a, b) with x = a·d + b·d², where d = c·y + e and x = A + B·y + C·y²."""
        if len(terms(d)) != 1:
            return None
        ((c, y),), e = terms(d), constant(d)
        square = self.graph.power(y, 2)
        if any(z is not y and z is not square for _, z in terms(x)):
            return None
        A, B, C = constant(x), coefficient(x, y), coefficient(x, square)
        if A - B * e / c + C * e**2 / c**2 != 0:
            return None
        return (B - 2 * C * e / c) / c, C / c**2


def polynomial(x: Node, d: Node, K: int) -> tuple[Fraction, Fraction] | None:
    """(a, b) with x = a·d + b·d² on the simplex, or None; b = 0 unless d is affine.

    An affine d is one that changes sign.
    """
    c, Q = ratio(x, d), quadratic_form(x, K)
    if c is not None:
        return c, Fraction(0)
    if Q is None or not is_affine(d):
        return None
    values = [rational(v) for v in at_vertices(d, K)]
    i, j = values.index(min(values)), values.index(max(values))
    # at a vertex x = a·v + b·v²
    low, high = Q[i, i] / values[i], Q[j, j] / values[j]
    b = (high - low) / (values[j] - values[i])
    a = low - b * values[i]
    same = all(
        Q[k, m] == a * (values[k] + values[m]) / 2 + b * values[k] * values[m]
        for k in range(K)
        for m in range(K)
    )
    return (Fraction(int(a.p), int(a.q)), Fraction(int(b.p), int(b.q))) if same else None


def ratio(x: Node, y: Node) -> Fraction | None:
    """c with x = c·y, or None."""
    first, second = terms(x), terms(y)
    if is_rational(x):
        return Fraction(0) if constant(x) == 0 else None
    c = first[0][0] / second[0][0] if second else Fraction(0)
    same = [(c * b, z) for b, z in second] == first and constant(x) == c * constant(y)
    return c if same and c else None


def limit(g: Graph, x: Node, face: Node) -> Node | None:
    """The value on the face, where x is continuous and known there; else None."""
    if x is face:
        return g.const(0)
    if is_constant(x):
        return x
    if is_affine(x):
        return None  # it may vary along the face
    args = [limit(g, y, face) for y in x.args]
    if any(y is None for y in args):
        return None
    known = [y for y in args if y is not None]
    if x.op == "lin":
        return g.lin(x.data[0], zip(x.data[1:], known, strict=True))
    if x.op == "mono" and all(r > 0 for _, r in factors(x)):
        return g.const(0) if g.const(0) in known else g.mono(zip(known, x.data, strict=True))
    if x.op == "xlogx" and is_rational(known[0]) and known[0].data[0] in (0, 1):
        return g.const(0)
    return None
