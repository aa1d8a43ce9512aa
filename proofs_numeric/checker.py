"""Verifies a certificate of `pgeom.certify` without JAX: `python -m proofs_numeric.checker FILE`.

What a certificate is. A JSON file about one real function F on the simplex of K classes, with

  nodes      F as rows [operation, earlier rows, constants], of which the last one is F itself;
             "affine" rows give a function a·p by its values at the K vertices
  claims     convex, strictly_convex: "proved", "disproved" or "unknown"; m_tangent and M_tangent,
             between which dᵀHd/‖d‖² lies for all d with Σd = 0; least and largest, bounds on F
  evidence   for each bound a proof by rules and a cover of the simplex by cells, one or many
  attained   for each bound a point, and a direction, with the value that is attained there
  segment    two points: F falls below a tangent between them, or is affine from one to the other
  digest     the SHA-256 of all the rest

A proof is the name of a rule, with the proofs of its parts. A cover is a tree: {"split": the two
ends of an edge, "halves": the covers of both sides of its middle}, or for one cell what helps to
check it: {"bends": lower bounds on the second derivatives of its functions of one direction, in
order}, {"at": the point of a tangent}, or nothing.

What the verdicts rest on. Numbers in a file are fractions, and stay exact. Where they do not
suffice Arb computes with balls, intervals that contain the true value. A bound from above on F is
one from below on −F, so everything here is a bound from below on c·F, c = ±1. No rule is trusted
because the prover chose it: each one checks its own conditions, and raises an error without them.

In the order of reading: exact numbers and matrices, Taylor series in balls, expressions, the rules
that bound Hessians, covers, and the verdicts. docs/certificates.md says why each rule holds.

>>> F = Expression(2, [["affine", [], [0, 1]], ["mono", [0], [2]]])  # the square of p_2
>>> Rules(F, F.vertices, [2]).bound([(ONE, F.root)], {"rule": "ridge"}, strictly=False)
[[0, 0], [0, 2]]
"""

import hashlib
import json
import sys
from functools import cache
from itertools import product, repeat
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from flint import arb, arb_series, ctx, fmpq, fmpq_mat

BITS = 512  # of the balls
TERMS = 4  # of a Taylor series: up to the third derivative
MOST_STEPS = 500_000  # evaluations of a row: every file is judged in seconds
NARROWEST = fmpq(1, 2**60)  # part of the range of a ridge
EXACT_SIZE = 11  # rows of a matrix that is eliminated in fractions, of larger ones in balls
TYPICAL = fmpq(2, 7)  # a point where an analytic function that is not affine is seen to be curved
VISIBLE = fmpq(1, 10**9)  # curvature there
CLAIMS = {"m_tangent": 1, "M_tangent": -1, "least": 1, "largest": -1}  # the sign c of a bound

ZERO, HALF, ONE = fmpq(0), fmpq(1, 2), fmpq(1)
Point = dict[int, fmpq]  # the coordinates of a point or a direction; those left out are zero
Matrix = list[list[Any]]  # symmetric, of fractions or balls
Terms = list[tuple[fmpq, int]]  # Σ c·x, as pairs of c and the row of x


def require(condition: Any, reason: str) -> None:
    if not condition:
        raise ArithmeticError(reason)


# Exact numbers and matrices


def exact(number: Any) -> fmpq:
    """A whole number or a fraction, as it stands in a file."""
    text = str(number)
    require(set(text) <= set("-/0123456789") and len(text) < 8000, "a numeral")
    return fmpq(text)


def dot(values: Any, point: Point) -> fmpq:
    return sum((values[k] * x for k, x in point.items()), ZERO)


def difference(end: Point, start: Point) -> Point:
    return {k: end.get(k, ZERO) - start.get(k, ZERO) for k in {**end, **start}}


def is_at_least(L: Matrix, m: Any) -> bool:
    """Whether dᵀLd ≥ m‖d‖² for all d with Σd = 0, by elimination in the basis e_i − e_K."""
    *others, last = range(len(L))
    rows = []
    for i in others:
        corner = [L[i][j] - L[i][last] - L[last][j] + L[last][last] for j in others]
        rows.append([x - m * (1 + (i == j)) for j, x in enumerate(corner)])
    if len(rows) >= EXACT_SIZE:
        rows = [[arb(x) for x in row] for row in rows]
    for k, top in enumerate(rows):
        if all(x == 0 for x in top[k:]):
            continue  # a pivot may be zero if its whole row is
        if not top[k] > 0:
            return False
        for row in rows[k + 1 :]:
            factor = row[k] / top[k]
            row[k:] = [a - factor * b for a, b in zip(row[k:], top[k:], strict=True)]
    return True


# Taylor series in balls: value, slope, half the second derivative and a sixth of the third


def power(x: arb_series, exponent: fmpq) -> arb_series:
    if exponent.q == 1:
        return x ** int(exponent)
    return (x.log() * exponent).exp()  # NaN unless x > 0


def log_sum_exp(xs: list[arb_series], weights: list[fmpq]) -> arb_series:
    largest = max(xs, key=lambda x: x[0].mid())  # so that nothing large cancels
    pairs = zip(xs, weights, strict=True)
    return largest + sum(((x - largest).exp() * c for x, c in pairs), 0 * largest).log()


def maximum(xs: list[arb_series]) -> arb_series:
    """The one that is largest for certain; without one NaN, of which nothing can be shown."""
    for x in xs:
        if all(x is y or x[0] > y[0] for y in xs):
            return x
    return arb_series([arb.nan()] * TERMS)


def ramp(x: arb_series, exponent: fmpq) -> arb_series:
    """max(x, 0)^r."""
    if x[0] > 0:
        return power(x, exponent)
    return 0 * x if x[0] < 0 else arb_series([arb.nan()] * TERMS)


OPERATIONS = {  # of series xs and constants cs
    # c_0 + Σ c_i x_i
    "lin": lambda xs, cs: cs[0] + sum(x * c for x, c in zip(xs, cs[1:], strict=True)),
    # Σ c_ij x_i x_j
    "quadratic": lambda xs, cs: sum(
        x * y * c for (x, y), c in zip(product(xs, xs), cs, strict=True)
    ),
    # Π x_i^c_i
    "mono": lambda xs, cs: prod(power(x, r) for x, r in zip(xs, cs, strict=True)),
    # log Σ c_i exp x_i
    "lse": log_sum_exp,
    "max": lambda xs, cs: maximum(xs),
    # max(x, 0)^c
    "ramp": lambda xs, cs: ramp(xs[0], cs[0]),
    "exp": lambda xs, cs: xs[0].exp(),
    "log": lambda xs, cs: xs[0].log(),
    "sin": lambda xs, cs: xs[0].sin(),
    "cos": lambda xs, cs: xs[0].cos(),
    "tan": lambda xs, cs: xs[0].tan(),
    "atan": lambda xs, cs: xs[0].atan(),
    "erf": lambda xs, cs: xs[0].erf(),
    "xlogx": lambda xs, cs: xs[0] * xs[0].log(),
}


# Expressions


class Row(NamedTuple):
    operation: str
    arguments: list[int]
    constants: list[fmpq]

    def is_well_formed(self) -> bool:
        """For all but affine rows: as many arguments and constants as the operation takes."""
        arguments, constants = len(self.arguments), self.constants
        expected = {"lin": 1 + arguments, "quadratic": arguments**2, "mono": arguments}
        expected |= {"lse": arguments, "ramp": 1}
        if arguments == 0 or len(constants) != expected.get(self.operation, 0):
            return False
        if self.operation == "lin":
            return all(constants[1:])
        if self.operation == "mono":
            return all(0 < abs(r) <= 10**6 for r in constants)
        if self.operation == "lse":
            return all(c > 0 for c in constants)
        if self.operation == "ramp":
            return arguments == 1 and constants[0] >= fmpq(9, 8)
        several = self.operation in ("quadratic", "max")
        return several or (self.operation in OPERATIONS and arguments == 1)


class Expression:
    """The rows of a file, and what is shown of them.

    Attributes:
      forms: of each affine row its values at the vertices, None of any other row.
      directions: of each row the w that it depends on through u = w·p, with 0 ≤ w ≤ 1.
      kinked: of each row, whether there is a maximum in it, or a power of one.
      strict: vectors v, such that F is strictly convex along every d with v·d ≠ 0.
    """

    def __init__(self, K: Any, rows: Any):
        require(type(K) is int and 2 <= K <= 1000, "the number of classes")
        self.K = K
        self.steps = 0
        self.is_positive = cache(self.is_positive)
        self.vertices = [{k: ONE} for k in range(K)]
        self.rows: list[Row] = []
        self.forms: list[list[fmpq] | None] = []
        self.directions: list[set[tuple[fmpq, ...]]] = []
        self.kinked: list[bool] = []
        self.strict: list[list[fmpq]] = []
        weights = [3 * k + 5 for k in range(K)]
        somewhere = [{k: fmpq(w, sum(weights)) for k, w in enumerate(weights)}]
        values: dict[int, arb_series] = {}
        for operation, arguments, constants in rows:
            self._add(Row(operation, arguments, [exact(x) for x in constants]))
            value = self.series(self.root, somewhere, {}, values)[0]
            require(value.is_finite(), f"a value of {operation}")

    @property
    def root(self) -> int:
        return len(self.rows) - 1

    def _add(self, row: Row) -> None:
        operation, arguments, constants = row
        earlier = range(len(self.rows))
        require(all(type(j) is int and j in earlier for j in arguments), "earlier rows")
        directions = {w for j in arguments for w in self.directions[j]}
        if operation == "affine":
            require((len(constants), arguments) == (self.K, []), "a row affine")
            low, high = min(constants), max(constants)
            if low < high:
                w = tuple((x - low) / (high - low) for x in constants)
                directions = {min(w, tuple(1 - x for x in w))}
        else:
            require(row.is_well_formed(), f"a row {operation}")
        if operation == "quadratic":
            require(all(self.forms[j] for j in arguments), "a row quadratic")
        self.rows.append(row)
        self.forms.append(constants if operation == "affine" else None)
        self.directions.append(directions)
        self.kinked.append(operation in ("max", "ramp") or any(self.kinked[j] for j in arguments))

    def series(self, i: int, hull: list[Point], d: Point, known: dict) -> arb_series:
        """The Taylor series of row i along d, which holds at every point in the hull of points.

        Rows in `known` were evaluated before, on the same hull and along the same d.
        """
        if i in known:
            return known[i]
        operation, arguments, constants = self.rows[i]
        self.steps += 1 + (0 if operation == "affine" else len(constants))
        require(self.steps < MOST_STEPS, "too many steps")
        if operation == "affine":
            values = [dot(constants, p) for p in hull]
            ball = arb(min(values)).union(arb(max(values)))
            known[i] = arb_series([ball, arb(dot(constants, d))])
        else:
            xs = [self.series(j, hull, d, known) for j in arguments]
            known[i] = OPERATIONS[operation](xs, constants)
        return known[i]

    def is_constant(self, i: int) -> bool:
        return not self.directions[i] and not self.kinked[i]

    def is_positive(self, i: int, concave: bool = False) -> bool:
        """Whether row i is positive wherever all p_k are; if concave, by its values at vertices."""
        operation, arguments, constants = self.rows[i]
        if operation == "affine":
            return min(constants) >= 0 and max(constants) > 0
        if operation == "mono" or (
            operation == "lin" and constants[0] >= 0 and min(constants[1:]) > 0
        ):
            return all(map(self.is_positive, arguments))
        if operation == "exp" or (operation == "max" and any(map(self.is_positive, arguments))):
            return True
        hulls = [[vertex] for vertex in self.vertices] if concave else [self.vertices]
        return all(self.series(i, hull, {}, {})[0] > 0 for hull in hulls)


# The rules: from a proof, a matrix L with H ⪰ L on the tangents of a cell, for H of Σ c·x


def has_a_sign(x: arb) -> bool:
    return bool(x >= 0 or x <= 0)


class Rules:
    """The rules on one cell; `ridges` are lower bounds on the curvature of its ridges, in order."""

    def __init__(self, F: Expression, cell: list[Point], ridges: Any = ()):
        self.F, self.cell, self.ridges = F, cell, iter(ridges or repeat(0))

    def bound(self, terms: Terms, proof: Any, strictly: bool) -> Matrix:
        """The matrix for Σ c·x of one proof; if `strictly`, with vectors of strict convexity."""
        rule = proof["rule"]
        if rule == "ridge":
            return self._ridge(terms, strictly)
        require(len(terms) == 1, rule)
        ((c, i),) = terms
        if rule == "sum":
            return self._sum(c, i, proof["parts"], strictly)
        if rule == "quadratic":
            return self._quadratic(c, i)
        if rule == "length":
            return self._length(c, i)
        if rule == "hessian":
            return self._hessian(c, i)
        require(rule in ("affine", "compose", "mean"), rule)
        if rule == "affine":
            require(self.F.forms[i] or self.F.is_constant(i), rule)
        elif rule == "compose":
            self._compose(c, i, proof["parts"], strictly)
        else:
            self._mean(c, i, proof["parts"], strictly)
        return self._zero_matrix()  # c·x is convex

    def _zero_matrix(self) -> Matrix:
        return [[ZERO] * self.F.K for _ in range(self.F.K)]

    def _sum(self, c: fmpq, i: int, parts: Any, strictly: bool) -> Matrix:
        """Hessians add: every term that is not affine is in one part."""
        row = self.F.rows[i]
        terms = [(c, i)]
        if row.operation == "lin":
            pairs = zip(row.constants[1:], row.arguments, strict=True)
            terms = [(c * x, j) for x, j in pairs]
        taken = sorted(t for part in parts for t in part["terms"])
        curved = [t for t, (_, j) in enumerate(terms) if not self.F.forms[j]]
        require(taken == curved, "all terms")
        total = self._zero_matrix()
        for part in parts:
            chosen = [terms[t] for t in part["terms"]]
            L = self.bound(chosen, part["proof"], strictly)
            total = [
                [x + y for x, y in zip(*rows, strict=True)] for rows in zip(total, L, strict=True)
            ]
        return total

    # Functions of one direction: Σ c·x = φ(u) with u = w·p has the Hessian φ″·wwᵀ

    def _ridge(self, terms: Terms, strictly: bool) -> Matrix:
        curvature = exact(next(self.ridges))
        directions = {w for _, i in terms for w in self.F.directions[i]}
        require(len(directions) == 1, "one direction")
        (w,) = directions
        values = [dot(w, p) for p in self.cell]
        self.require_curvature(terms, w, min(values), max(values), curvature)
        analytic = not any(self.F.kinked[i] for _, i in terms)
        if strictly and analytic and self.curvature(terms, w, TYPICAL, TYPICAL) >= VISIBLE:
            self.F.strict.append([*w])  # an analytic φ″ ≥ 0 has isolated zeros
        return [[curvature * x * y for y in w] for x in w]

    def require_curvature(self, terms: Terms, w: tuple, low: fmpq, high: fmpq, bound: Any) -> None:
        """That φ″ ≥ bound for low ≤ u ≤ high, by halving the range."""
        ranges = [(low, high)]
        while ranges:
            low, high = ranges.pop()
            if not self.curvature(terms, w, low, high) >= bound:
                require(high - low > NARROWEST, "the bound of a ridge")
                middle = (low + high) / 2
                ranges += [(low, middle), (middle, high)]

    def curvature(self, terms: Terms, w: tuple, low: fmpq, high: fmpq) -> arb:
        """A lower bound on φ″ for low ≤ u ≤ high.

        Where φ‴ has one sign, φ″ is least at an end. Elsewhere it is at least its value in the
        middle less half the width times the largest |φ‴|.
        """
        start, end, half = w.index(0), w.index(1), (high - low) / 2
        points = [{start: 1 - u, end: u} for u in (low, low + half, high)]
        d = {start: -ONE, end: ONE}
        total, at_low, at_high, third = arb(0), arb(0), arb(0), arb(0)
        for c, i in terms:
            whole = self.F.series(i, points, d, {})
            values = [2 * c * self.F.series(i, [p], d, {})[2] for p in points]
            if self._has_monotone_curvature(c, i):
                limit = self._curvature_at_zero(c, i)
                total += min(limit if x.is_nan() else x.lower() for x in values)
            elif has_a_sign(whole[3]):
                total += min(x.lower() for x in values)
            else:
                around = values[1] - abs(6 * c * whole[3]) * half
                total += max((2 * c * whole[2]).lower(), around.lower())
            at_low += values[0]
            at_high += values[2]
            third += c * whole[3]
        return min(at_low.lower(), at_high.lower()) if has_a_sign(third) else total

    def _has_monotone_curvature(self, c: fmpq, i: int) -> bool:
        """Whether x is a power, a logarithm, x·log x or a ramp of an affine y, up to constants.

        Their second derivatives are monotone in y, also where y = 0 at an end.
        """
        operation, arguments, constants = self.F.rows[i]
        if not self.F.forms[arguments[0]] or not all(map(self.F.is_constant, arguments[1:])):
            return False
        if operation == "ramp":
            return constants[0] >= 2 or c > 0
        return operation in ("mono", "log", "xlogx") and all(map(self.F.is_positive, arguments))

    def _curvature_at_zero(self, c: fmpq, i: int) -> arb:
        """The limit of c·x″ where y tends to 0, for the operations above."""
        operation, _, constants = self.F.rows[i]
        if operation in ("log", "xlogx"):
            return arb.pos_inf() * c * (1 if operation == "xlogx" else -1)
        r = constants[0]
        return arb(0) if operation == "ramp" or r > 2 else arb.pos_inf() * c * r * (r - 1)

    # Quadratic functions, their roots, and anything in balls

    def _quadratic(self, c: fmpq, i: int) -> Matrix:
        """The Hessian of pᵀQp is Q + Qᵀ."""
        operation, arguments, constants = self.F.rows[i]
        require(operation == "quadratic", "quadratic")
        V = fmpq_mat([form for j in arguments if (form := self.F.forms[j])])  # all are affine
        Q = V.transpose() * fmpq_mat(len(arguments), len(arguments), constants) * V
        return (c * (Q + Q.transpose())).tolist()

    def _length(self, c: fmpq, i: int) -> Matrix:
        """The Hessian of n = √(pᵀQp) is between Q/(s·n³) and √s·Q, for s = 1ᵀQ⁻¹1."""
        operation, arguments, constants = self.F.rows[i]
        require((operation, constants) == ("mono", [HALF]), "length")
        Q = self._quadratic(HALF, arguments[0])
        ones = fmpq_mat([[1]] * self.F.K)
        s = sum(fmpq_mat(Q).solve(ones).entries(), ZERO)
        require(s > 0 and is_at_least(Q, 0), "length")  # so Q is positive definite
        if c > 0:
            squares = [self.F.series(arguments[0], [p], {}, {})[0].upper() for p in self.cell]
            factor = c / (s * max(squares).sqrt() ** 3)  # a convex n is largest at a vertex
        else:
            factor = c * arb(s).sqrt()
        return [[x * factor for x in row] for row in Q]

    def _hessian(self, c: fmpq, i: int) -> Matrix:
        """4uᵀHv is the second derivative along u + v less that along u − v, for u = e_j − e_K."""
        L, last = self._zero_matrix(), self.F.K - 1
        for j in range(last):
            for k in range(j, last):
                plus = {j: ONE, k: ONE + (j == k), last: -2 * ONE}
                minus = {j: ONE, k: fmpq(j == k) - 1}
                halves = [self.F.series(i, self.cell, d, {})[2] for d in (plus, minus)]
                L[j][k] = L[k][j] = c * (halves[0] - halves[1]) / 2
        return L

    # Compositions f(y, …): f convex, each y convex where f increases and concave where it falls

    def _compose(self, c: fmpq, i: int, parts: Any, strictly: bool) -> None:
        operation, arguments, _ = self.F.rows[i]
        if operation == "mono":
            needed = self._convex_factors(c, i, ONE)
        elif operation == "log":
            require(c < 0 and self.F.is_positive(arguments[0], True), "compose")
            needed = [(c, arguments[0])]
        else:
            require(operation in ("exp", "ramp", "max", "lse") and c > 0, "compose")
            needed = [(c, j) for j in arguments]
        if strictly and operation == "lse":
            forms = [form for _, j in needed if (form := self.F.forms[j])]
            self.F.strict += [[x - y for x, y in zip(f, forms[0], strict=True)] for f in forms]
        curved = operation not in ("max", "ramp")
        self._require_convex(needed, parts, strictly and curved, every=operation == "lse")

    def _mean(self, c: fmpq, i: int, parts: Any, strictly: bool) -> None:
        """(c₀ + Σ c·y)^s: for q = 1/s, the l^q norm of the y^s if q > 1, else a concave mean."""
        operation, arguments, constants = self.F.rows[i]
        require(operation == "mono" and len(constants) == 1, "mean")
        s, inner = constants[0], self.F.rows[arguments[0]]
        require(inner.operation == "lin" and min(inner.constants) >= 0, "mean")
        require((0 < s < 1) == (c > 0), "mean")
        needed = [pair for j in inner.arguments for pair in self._convex_factors(c, j, s)]
        forms = [form for _, j in needed if (form := self.F.forms[j])]
        only_forms = len(forms) == len(needed) == len(inner.arguments)
        if strictly and 0 < s != 1 and only_forms and fmpq_mat(forms).rank() == self.F.K:
            self.F.strict += forms  # Minkowski's inequality is strict
        self._require_convex(needed, parts, strictly)

    def _convex_factors(self, c: fmpq, i: int, s: fmpq) -> Terms:
        """The factors x of c·Π x^{rs} with the signs for which they have to be convex.

        Convex of positive x, if all rs < 0, or one is positive and Σrs ≥ 1; concave, if all are
        positive and Σrs ≤ 1. Constants do not count, and an affine x may have any sign under an
        even power.
        """
        row = self.F.rows[i]
        pairs = [(i, ONE)]
        if row.operation == "mono":
            pairs = [*zip(row.arguments, row.constants, strict=True)]
        free = [r * s for j, r in pairs if not self.F.is_constant(j)]
        positive, total = sum(r > 0 for r in free), sum(free, ZERO)
        if c > 0:
            require(positive == 0 or (positive == 1 and total >= 1), "mono")
        else:
            require(positive == len(free) and total <= 1, "mono")
        needed = []
        for j, r in pairs:
            even = self.F.forms[j] and c > 0 and r > 0 and (r / 2).q == 1
            itself = s == 1 and free == [1] and not self.F.is_constant(j)
            is_concave = c * r * s < 0
            require(even or itself or self.F.is_positive(j, is_concave), "the domain of a power")
            needed.append((-c if r * s < 0 else c, j))
        return needed

    def _require_convex(self, needed: Terms, parts: Any, strictly: bool, every=False) -> None:
        """That each c·x is convex. Strictness is that of `every` x, or of the only one."""
        moving = sum(not self.F.is_constant(j) for _, j in needed)
        strictly = strictly and (every or moving == 1)
        everywhere = Rules(self.F, self.F.vertices)
        for term, part in zip(needed, parts, strict=True):
            L = everywhere.bound([term], part, strictly)
            require(is_at_least(L, 0), "convexity of an argument")
            if strictly and is_at_least(L, fmpq(1, 10**50)):
                self.F.strict += [[fmpq(j == k) for j in range(self.F.K)] for k in range(self.F.K)]


# Covers: a bound on every cell of a tree of halves, which starts with the whole simplex


def check_cover(F: Expression, name: str, evidence: Any, convex: bool) -> None:
    cells = [(F.vertices, evidence["cover"])]
    while cells:
        cell, tree = cells.pop()
        if "halves" not in tree:
            check = check_curvature if "tangent" in name else check_values
            check(F, CLAIMS[name], evidence, cell, tree, convex)
            continue
        i, j = tree["split"]
        require(all(type(n) is int and 0 <= n < F.K for n in (i, j)), "an edge")
        middle = {k: (cell[i].get(k, ZERO) + cell[j].get(k, ZERO)) / 2 for k in range(F.K)}
        first, second = tree["halves"]
        cells.append(([*cell[:j], middle, *cell[j + 1 :]], second))
        cells.append(([*cell[:i], middle, *cell[i + 1 :]], first))


def check_curvature(
    F: Expression, sign: int, evidence: Any, cell: list[Point], tree: Any, convex: bool
) -> None:
    ridges = tree.get("bends")
    strictly = sign > 0 and cell is F.vertices and not ridges
    L = Rules(F, cell, ridges).bound([(fmpq(sign), F.root)], evidence["proof"], strictly)
    require(is_at_least(L, exact(evidence["bound"])), "the bound of the curvature")


def check_values(
    F: Expression, sign: int, evidence: Any, cell: list[Point], tree: Any, convex: bool
) -> None:
    """A convex F is below its values at the vertices, and above its tangent at any point.

    Any other F is between its values at one vertex plus slopes towards the others.
    """
    bound = exact(evidence["bound"])
    p = point(F, tree["at"]) if convex else cell[0]
    for vertex in cell:
        d = difference(vertex, p)
        if convex and sign < 0:
            value = F.series(F.root, [vertex], d, {})[0]
        else:
            start = F.series(F.root, [p], d, {})
            value = start[0] + (start if convex else F.series(F.root, cell, d, {}))[1]
        require(sign * value >= bound, "the bound of a value")


# The verdict


def point(F: Expression, numbers: Any) -> Point:
    p = {k: exact(x) for k, x in enumerate(numbers)}
    require(len(p) == F.K and sum(p.values()) == 1 and min(p.values()) >= 0, "a point")
    return p


def check_attained(F: Expression, name: str, at: Any) -> None:
    """That F has at most this curvature or value at the point; at least, for upper bounds."""
    d = {k: exact(x) for k, x in enumerate(at["d"])}
    require(sum(d.values()) == 0, f"attained {name}")
    x = F.series(F.root, [point(F, at["p"])], d, {})
    found = 2 * x[2] / sum(y * y for y in d.values()) if "tangent" in name else x[0]
    require(CLAIMS[name] * (exact(at["value"]) - found) >= 0, f"attained {name}")


def is_disproof(F: Expression, p: Point, q: Point) -> bool:
    """Whether F(q) is below the tangent at p, both inside the simplex."""
    d = difference(q, p)
    start, end = (F.series(F.root, [at], d, {}) for at in (p, q))
    inside = min(*p.values(), *q.values()) > 0
    return bool(inside and end[0] - start[0] - start[1] < 0)


def is_flat(F: Expression, p: Point, q: Point) -> bool:
    """Whether F is affine from p to q, on a face, too."""
    return bool(p != q and F.series(F.root, [p, q], difference(q, p), {})[2] == 0)


def verify(file: Any) -> str:
    """What is proved by a certificate, in one line.

    Raises:
      ArithmeticError, or another error of a file that is not what it should be: if a claim is not
        proved.
    """
    ctx.prec, ctx.cap = BITS, TERMS
    rest = {key: value for key, value in file.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True)
    require(hashlib.sha256(text.encode()).hexdigest() == file["digest"], "the digest")
    F = Expression(file["K"], file["nodes"])
    bounds: dict[str, fmpq] = {}
    for name, sign in CLAIMS.items():
        evidence, attained = file["evidence"].get(name), file["attained"].get(name)
        if evidence is not None:
            check_cover(F, name, evidence, bounds.get("m_tangent", -ONE) >= 0)
            bounds[name] = sign * exact(evidence["bound"])
        require(str(bounds.get(name)) == str(file.get(name)), f"the bound {name}")
        if attained is not None:
            check_attained(F, name, attained)
    disproof = flat = False
    if file["segment"] is not None:
        p, q = (point(F, numbers) for numbers in file["segment"])
        disproof, flat = is_disproof(F, p, q), is_flat(F, p, q)
    m = bounds.get("m_tangent", -ONE)
    everywhere = fmpq_mat([[1] * F.K, *F.strict]).rank() == F.K  # v·d = 0 for d = 0 alone
    convex = "proved" if m >= 0 else "disproved" if disproof else "unknown"
    strictly = "disproved" if disproof or flat else "unknown"
    if m > 0 or (m == 0 and everywhere):
        strictly = "proved"
    require((file["convex"], file["strictly_convex"]) == (convex, strictly), "the verdicts")
    return f"convex {convex}, strictly {strictly}, bounds {bounds}"


def main() -> int:
    """0 if a file is verified, 1 if it is refused, 2 if it is no certificate."""
    try:
        document = json.loads(Path(*sys.argv[1:]).read_text("utf-8"))
        require(document["format"] == "pgeom certificate 3", "not a certificate")
    except Exception as error:
        print("bad input:", error)
        return 2
    try:
        print("verified:", verify(document))
    except Exception as error:
        print("refused:", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
