"""What rules prove: a tree that shows a node convex or concave, and where a node is positive.

Independent of K: sums, functions of one direction (φ″ ≥ 0 by bisection), quadratic functions and
their roots, log-sum-exp, maxima, functions of convex functions, products of powers, and l^q means.

>>> from pgeom.certificates.algebra import Graph
>>> ranges = Ranges(3)
>>> g = Graph(3, ranges.sign)
>>> squares = g.add(*(g.power(g.p(k), 2) for k in range(3)))
>>> ranges.rules.prove(g.exp(squares), 1).rule
'compose'
>>> x = g.sub(g.const(1), g.p(0))
>>> ranges.sign(x), ranges.positive(x)
(1, True)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from flint import arb, fmpq, fmpq_mat

from pgeom.certificates.arithmetics import Interval, Intervals, Undefined, is_positive
from pgeom.certificates.expression import (
    ONE,
    Direction,
    Point,
    at_vertices,
    constant,
    direction_of,
    factors,
    is_affine,
    is_constant,
    is_even,
    reachable,
    terms,
)
from pgeom.certificates.matrices import Length, is_at_least, is_semidefinite, quadratic_form
from pgeom.certificates.ridges import Ridges

NO_RIDGES = ("max", "ramp", "quadratic")  # operations
INCREASING = {"exp": 1, "ramp": 1, "max": 1, "lse": 1, "log": -1}  # functions: the sign of f″
DEFINITE = fmpq(1, 10**6)  # curvature of a quadratic function that is strictly convex
EXACT = 30  # classes, up to which pᵀQp ≥ 0 is decided


@dataclass(frozen=True)
class Proof:
    """That a node is convex, or concave.

    Attributes:
      rule: its name.
      parts: the proofs of the arguments, or of groups of terms of a sum.
      terms: of a sum, the terms of each group, by index.
      strict: vectors v, such that the node is strictly convex along every d with Σd = 0 and v·d ≠ 0
        for one of them, on the boundary of the simplex as well as inside.
    """

    rule: str
    parts: Sequence["Proof"] = ()
    terms: Sequence[list[int]] = ()
    strict: Sequence[Point] = ()

    def document(self) -> dict[str, Any]:
        """As it is written: a checker finds out the rest by itself."""
        parts = [part.document() for part in self.parts]
        if self.rule == "sum":
            pairs = zip(self.terms, parts, strict=True)
            return {"rule": "sum", "parts": [{"terms": t, "proof": part} for t, part in pairs]}
        return {"rule": self.rule, "parts": parts} if parts else {"rule": self.rule}


AFFINE = Proof("affine")


class Rules:
    """Proves nodes convex (sign 1) or concave (sign −1), each of them once."""

    def __init__(self, K):
        self.K, self.ridges = K, Ridges(K)
        self.prove = cache(self._prove)

    def _prove(self, x, sign):
        """A proof that sign·x is convex, or None if no rule gives one."""
        if is_affine(x) or is_constant(x):
            return AFFINE
        if x.op == "lin":
            return self._sum(x, sign)
        along = ridge_direction(x, self.K)
        if along is not None and (ridge := self._ridge([(sign, x)], along)) is not None:
            return ridge
        if x.op == "quadratic":
            return self._quadratic(x, sign)
        if sign > 0 and Length.of(x, self.K) is not None:
            return Proof("length", strict=self._everywhere())
        return self._compose(x, sign) or self._mean(x, sign)

    def _everywhere(self):
        """Vectors for all tangents."""
        return [tuple(fmpq(int(j == k)) for j in range(self.K)) for k in range(self.K)]

    def _ridge(self, summands, along):
        if not self.ridges.is_convex(summands, along):
            return None
        strict = self.ridges.is_strictly_convex(summands, along)
        return Proof("ridge", strict=[along.w] if strict else [])

    def _quadratic(self, x, sign):
        rows = [[2 * sign * q for q in x.data[i :: self.K]] for i in range(self.K)]
        if not is_at_least(rows):
            return None
        return Proof("quadratic", strict=self._everywhere() if is_at_least(rows, DEFINITE) else [])

    def _sum(self, x, sign):
        """Functions of the same direction are taken together."""
        indices, parts = [], []
        for along, group in group_by_direction(x, self.K):
            chosen = [(sign * terms(x)[i][0], terms(x)[i][1]) for i in group]
            together = self._ridge(chosen, along) if along is not None else None
            if together is not None:
                indices.append(group)
                parts.append(together)
                continue
            indices += [[i] for i in group]
            parts += [self.prove(y, 1 if c > 0 else -1) for c, y in chosen]
            if None in parts:
                return None
        return Proof("sum", parts, indices, [v for part in parts for v in part.strict])

    def _compose(self, x, sign):
        """f(y, …): f convex, and the y convex where f increases, concave where it falls."""
        needed = None
        if x.op == "mono":
            needed = self._product(sign, factors(x))
        elif INCREASING.get(x.op, 0) * sign > 0 and (
            x.op != "log" or is_positive(x.args[0], self.K, concave=True)
        ):
            needed = [sign] * len(x.args)
        parts = self._arguments(x.args, needed)
        if parts is None:
            return None
        strict = [] if x.op in ("max", "ramp") else self._strict_if_single(x.args, parts)
        if x.op == "lse":
            forms = [at_vertices(y, self.K) for y in x.args if is_affine(y)]
            strict = [tuple(a - b for a, b in zip(f, forms[0], strict=True)) for f in forms[1:]]
            strict += [v for part in parts for v in part.strict]
        return Proof("compose", parts, strict=strict)

    def _mean(self, x, sign):
        """(c + Σ c·y)^s: for q = 1/s, the l^q norm of the y^s if q > 1, else a concave mean."""
        if x.op != "mono" or len(x.args) != 1 or (0 < x.data[0] < 1) != (sign > 0):
            return None
        (total,), (s,) = x.args, x.data
        if total.op != "lin" or min(total.data) < 0:
            return None
        args, needed = [], []
        for y in total.args:
            signs = self._product(sign, factors(y), s)
            if signs is None:
                return None
            args += [z for z, _ in factors(y)]
            needed += signs
        parts = self._arguments(args, needed)
        if parts is None:
            return None
        strict = self._strict_if_single(args, parts)
        if 0 < s != 1 and all(map(is_affine, args)) and len(args) == len(total.args):
            # Minkowski's inequality is strict unless all are proportional
            forms = [tuple(at_vertices(y, self.K)) for y in args]
            full = fmpq_mat(forms).rank() == self.K
            strict = forms if full else strict
        return Proof("mean", parts, strict=strict)

    def _arguments(self, args, signs):
        proofs = [self.prove(y, s) for y, s in zip(args, signs, strict=True)] if signs else [None]
        return None if None in proofs else [proof for proof in proofs if proof is not None]

    def _strict_if_single(self, args, parts):
        """The vectors of the one argument that is not constant, if there is only one."""
        free = [part for y, part in zip(args, parts, strict=True) if not is_constant(y)]
        return free[0].strict if len(free) == 1 else []

    def _product(self, sign, pairs, s=ONE):
        """The signs that the x need for sign·Π x^{rs} to be convex, None if none suffice.

        Of positive x, that is: an affine x may have any sign under an even power. Constants do not
        count.
        """
        free = [r * s for x, r in pairs if not is_constant(x)]
        up, total = sum(r > 0 for r in free), sum(free)
        shape = up == 0 or (up == 1 and total >= 1) if sign > 0 else up == len(free) and total <= 1
        signs = [sign if r * s > 0 else -sign for _, r in pairs]
        for (x, r), needed in zip(pairs, signs, strict=True):
            even = sign > 0 and r > 0 and is_even(r) and is_affine(x)
            plain = s == 1 and free == [1] and not is_constant(x)
            if not (shape and (even or plain or is_positive(x, self.K, concave=needed < 0))):
                return None
        return signs


def ridge_direction(x, K) -> Direction | None:
    """The direction that x is a function of, if that is smooth or max(·, 0)^r itself."""
    inner = x.args if x.op == "ramp" and is_affine(x.args[0]) else (x,)
    smooth = all(z.op not in NO_RIDGES for y in inner for z in reachable(y))
    return direction_of(x, K) if smooth else None


def group_by_direction(x, K) -> list[tuple[Direction | None, list[int]]]:
    """The terms of a sum that are functions of one direction, by index, and the others one by one.

    Affine terms are left out.
    """
    groups = {}
    for i, (_, y) in enumerate(terms(x)):
        if not is_affine(y):
            along = ridge_direction(y, K)
            groups.setdefault(i if along is None else along, []).append(i)
    return [(key if isinstance(key, Direction) else None, found) for key, found in groups.items()]


def span_tangents(vectors: Sequence[Point], K):
    """Whether v·d = 0 for all of them and Σd = 0 only for d = 0."""
    if len(vectors) < K - 1:
        return False
    rows = [[fmpq(1)] * K, *vectors]
    return fmpq_mat(rows).rank() == K


class Ranges:
    """Ranges, signs and domains on the whole simplex, by intervals and by rules."""

    def __init__(self, K):
        self.K, self.rules = K, Rules(K)
        self._intervals = Intervals(K)
        self.positive = cache(self._is_positive)

    def range(self, x) -> Interval:
        """From −∞ to ∞ where nothing is known."""
        try:
            return self._intervals(x)
        except Undefined:
            return Interval(arb.nan(), arb.nan())

    def sign(self, x) -> int | None:
        """1 if x ≥ 0, −1 if x ≤ 0 on the simplex, 0 if x = 0, None if nothing is known."""
        known = self.range(x)
        if known.lo == known.hi == 0:
            return 0
        return 1 if known.lo >= 0 else -1 if known.hi <= 0 else None

    def _is_positive(self, x):
        """Whether x > 0 at every point with positive coordinates."""
        if is_affine(x):
            return self.sign(x) == 1
        if x.op == "lin" and min(constant(x), *(c for c, _ in terms(x))) >= 0:
            summands = [y for _, y in terms(x)]
            if all(self.sign(y) in (0, 1) for y in summands) and (
                constant(x) > 0 or any(map(self.positive, summands))
            ):
                return True
        if x.op == "exp" or (x.op == "quadratic" and self._definite(x)):
            return True
        if x.op in ("mono", "max"):
            every = all if x.op == "mono" else any
            if every(map(self.positive, x.args)):
                return True
        if self.range(x).lo > 0:
            return True
        concave = self.rules.prove(x, -1) is not None
        return concave and is_positive(x, self.K, concave=True)

    def exceeds_zero(self, x, or_equals: bool = False):
        """Whether x > 0, or x ≥ 0, is known wherever all coordinates are positive."""
        if self.positive(x) or (or_equals and self.range(x).lo >= 0):
            return True
        return not is_affine(x) and self._definite(x, or_equals)

    def _definite(self, x, or_equals=False):
        """Whether x is a pᵀQp with Q ≻ 0, or Q ⪰ 0."""
        Q = None if self.K > EXACT else quadratic_form(x, self.K)
        if Q is None or not is_semidefinite(Q.tolist()):
            return False
        return or_equals or bool(Q.det() != 0)
