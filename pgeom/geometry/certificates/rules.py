"""Curvature of compositions: a tree of rules that proves a node convex or concave on the simplex.

Independent of K: sums, functions of one direction (φ″ ≥ 0 by bisection), quadratic functions,
log-sum-exp, maxima, functions of convex functions, products of powers, and l^q means. A proof is a
dictionary, ready to be written.

>>> from pgeom.geometry.certificates.algebra import Graph
>>> from pgeom.geometry.certificates.ranges import Ranges
>>> ranges = Ranges(3)
>>> g = Graph(3, ranges.sign)
>>> squares = g.add(*(g.power(g.p(k), 2) for k in range(3)))
>>> Rules(ranges).prove(g.exp(squares), 1)["rule"]
'compose'
"""

from fractions import Fraction
from typing import Any

from pgeom.geometry.certificates.enclosures import Undefined
from pgeom.geometry.certificates.expression import (
    ONE,
    Node,
    factors,
    is_affine,
    is_constant,
    reachable,
    terms,
)
from pgeom.geometry.certificates.frames import Direction
from pgeom.geometry.certificates.lengths import Length
from pgeom.geometry.certificates.matrices import nonnegative_on_tangents
from pgeom.geometry.certificates.quadratics import matrix
from pgeom.geometry.certificates.ranges import Ranges
from pgeom.geometry.certificates.ridges import Ridges, direction_of
from pgeom.geometry.certificates.series import is_positive

Proof = dict[str, Any]
NO_RIDGES = ("max", "ramp", "quadratic")  # operations
AFFINE: Proof = {"rule": "affine"}
BENT = {"exp": 1, "ramp": 1, "max": 1, "lse": 1, "softplus": 1, "log": -1}  # increasing: of f″


class Rules:
    """Proves nodes convex (sign 1) or concave (sign −1), each of them once."""

    def __init__(self, ranges: Ranges):
        self.ranges, self.K = ranges, ranges.K
        self.ridges = Ridges(ranges)
        self._proofs: dict[tuple[Node, int], Proof | None] = {}

    def prove(self, x: Node, sign: int) -> Proof | None:
        """A proof that sign·x is convex, or None if no rule gives one."""
        if (x, sign) not in self._proofs:
            try:
                proof = self._prove(x, sign)
            except Undefined:
                proof = None
            self._proofs[x, sign] = proof
        return self._proofs[x, sign]

    def _prove(self, x: Node, sign: int) -> Proof | None:
        if is_affine(x) or is_constant(x):
            return AFFINE
        if x.op == "lin":
            return self._sum(x, sign)
        along = ridge_direction(x, self.K)
        if along is not None and (ridge := self._ridge([(Fraction(sign), x)], along)) is not None:
            return ridge
        if x.op == "quadratic":
            Q = matrix(x, self.K)
            return {"rule": x.op} if Q is not None and nonnegative_on_tangents(sign * Q) else None
        if sign > 0 and Length.of(x, self.K) is not None:
            return {"rule": "length"}
        return self._compose(x, sign) or self._mean(x, sign)

    def _ridge(self, summands: list[tuple[Fraction, Node]], along: Direction) -> Proof | None:
        if not self.ridges.is_convex(summands, along):
            return None
        return {"rule": "ridge", "w": along.w, "strict": self.ridges.is_strict(summands, along)}

    def _sum(self, x: Node, sign: int) -> Proof | None:
        """Functions of the same direction are taken together."""
        parts = []
        for along, indices in group(x, self.K):
            chosen = [(sign * terms(x)[i][0], terms(x)[i][1]) for i in indices]
            together = self._ridge(chosen, along) if along is not None else None
            if together is not None:
                parts.append({"terms": indices, "proof": together})
                continue
            proofs = [self.prove(y, 1 if c > 0 else -1) for c, y in chosen]
            if None in proofs:
                return None
            parts += [{"terms": [i], "proof": p} for i, p in zip(indices, proofs, strict=True)]
        return {"rule": "sum", "parts": parts}

    def _compose(self, x: Node, sign: int) -> Proof | None:
        """f(y, …): f convex, and the y convex where f increases, concave where it falls."""
        if x.op == "mono":
            needed = self._product(sign, factors(x))
        elif BENT.get(x.op, 0) * sign > 0:
            needed = [sign] * len(x.args)
            if x.op == "log" and not is_positive(x.args[0], self.K, concave=True):
                needed = None
        else:
            needed = None
        proofs = needed and self._arguments(x.args, needed)
        if not proofs:
            return None
        extra = [AFFINE] if x.op == "softplus" else []  # of the 0 in log(eˣ + e⁰)
        return {"rule": "compose", "parts": proofs + extra}

    def _mean(self, x: Node, sign: int) -> Proof | None:
        """(c + Σ c·y)^s: for q = 1/s, the l^q norm of the y^s if q > 1, else a concave mean."""
        if x.op != "mono" or len(x.args) != 1 or (0 < x.data[0] < 1) != (sign > 0):
            return None
        (total,), (s,) = x.args, x.data
        if total.op != "lin" or min(total.data) < 0:
            return None
        args, needed = [], []
        for y in total.args:
            pairs = factors(y)
            signs = self._product(sign, pairs, s)
            if signs is None:
                return None
            args, needed = [*args, *(z for z, _ in pairs)], [*needed, *signs]
        proofs = self._arguments(args, needed)
        return None if proofs is None else {"rule": "mean", "parts": proofs, "args": args}

    def _arguments(self, args, signs: list[int]) -> list[Proof] | None:
        proofs = [self.prove(y, s) for y, s in zip(args, signs, strict=True)]
        return None if None in proofs else [proof for proof in proofs if proof is not None]

    def _product(self, sign: int, pairs, s: Fraction = ONE) -> list[int] | None:
        """The signs that the x need for sign·Π x^{rs} to be convex, None if none suffice.

        Of positive x, that is: an affine x may have any sign under an even power. Constants do not
        count.
        """
        free = [r * s for x, r in pairs if not is_constant(x)]
        up, total = sum(r > 0 for r in free), sum(free)
        shape = up == 0 or (up == 1 and total >= 1) if sign > 0 else up == len(free) and total <= 1
        signs = [sign if r * s > 0 else -sign for _, r in pairs]
        for (x, r), needed in zip(pairs, signs, strict=True):
            even = sign > 0 and r > 0 and r % 2 == 0 and is_affine(x)
            plain = s == 1 and free == [1] and not is_constant(x)
            if not (shape and (even or plain or is_positive(x, self.K, concave=needed < 0))):
                return None
        return signs


def ridge_direction(x: Node, K: int) -> Direction | None:
    """The direction that x is a function of, if that is smooth or max(·, 0)^r itself."""
    inner = x.args if x.op == "ramp" and is_affine(x.args[0]) else (x,)
    smooth = all(z.op not in NO_RIDGES for y in inner for z in reachable(y))
    return direction_of(x, K) if smooth else None


def group(x: Node, K: int) -> list[tuple[Direction | None, list[int]]]:
    """The terms of a sum that are functions of one direction, by index, and the others one by one.

    Affine terms are left out.
    """
    groups: dict[Any, list[int]] = {}
    for i, (_, y) in enumerate(terms(x)):
        if not is_affine(y):
            along = ridge_direction(y, K)
            groups.setdefault(i if along is None else along, []).append(i)
    return [(key if isinstance(key, Direction) else None, found) for key, found in groups.items()]
