"""Lower bounds on Hessians: structured matrices on cells of the simplex, and their bisection.

The terms of sign·F are grouped into parts. Each part gives a symmetric matrix L with H ⪰ L on a
cell; for bounds on F from above, the same is done with −F. The cell with the lowest bound is halved
at its longest edge until the bound is close to the curvature at some point, or the budget is spent.

>>> from pgeom.certificates.algebra import Graph
>>> from pgeom.certificates.rules import Rules
>>> g = Graph(3)
>>> squares = g.add(*(g.power(g.p(k), 2) for k in range(3)))
>>> cover(HessianBound(squares, 1, Rules(3)), least=2.0).bound
2
"""

import heapq
import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from flint import arb, fmpq, fmpq_mat

from pgeom.certificates.arithmetics import second_derivative
from pgeom.certificates.expression import (
    ONE,
    Cell,
    Node,
    exactly,
    nearby,
    reachable,
    terms,
)
from pgeom.certificates.matrices import (
    Length,
    Rows,
    has_balls,
    is_at_least,
    least_eigenvalue,
    quadratic_form,
)
from pgeom.certificates.rules import Proof, group_by_direction

SHARES = (0.8, 0.5, 0.2, 0.05, 0.01)  # of a positive estimate, so that little of it is given away
SLACKS = (1e-13, 1e-11, 1e-8, 1e-5, 1e-3, 0.03, 0.3, 1.0, 3.0)  # relative
COARSE = 3  # the first slack for balls, which are rounded differently by others
UNBOUNDED = 40  # cells, after which one without any bound ends the search


class Part(NamedTuple):
    """Terms that are bounded together.

    Attributes:
      proof: `ridge`, `quadratic`, `length`, `hessian`, or a proof of convexity.
      indices: the terms of F, by index.
      chosen: the same, as pairs of a coefficient with its sign and a node.
      data: what the rule needs: a direction, a matrix, a length.
    """

    proof: Proof
    indices: list[int]
    chosen: list[tuple[fmpq, Node]]
    data: Any = None

    @property
    def rule(self) -> str:
        return self.proof.rule


class Bound(NamedTuple):
    """H ⪰ L on a cell.

    Attributes:
      L: a matrix of rational numbers or balls.
      ridges: the lower bounds of the ridges that L is made of.
      scale: the largest entry of all but the balls.
    """

    L: Rows
    ridges: list[fmpq]
    scale: float

    def estimate(self) -> float:
        """The least eigenvalue on tangents in float64, of middles less the radii of each row."""
        entries = [[arb(x) for x in row] for row in self.L]
        middles = np.array([[float(x.mid()) for x in row] for row in entries])
        radii = np.array([[float(x.rad()) for x in row] for row in entries])
        radii *= 1 - 2.0**-28  # sums of balls rounded them up, to 30 bits
        if not np.isfinite([middles, radii]).all():
            return -math.inf
        return least_eigenvalue(middles - np.diag(radii.sum(axis=1)))


class HessianBound:
    """The parts of sign·F, and their matrices on cells.

    With `refine`, terms that are convex by rules have Hessians, too, where 0 is too low a bound.
    """

    def __init__(self, root, sign, rules, refine: bool = False):
        self.K, self.rules, self.sign, self.refine = rules.K, rules, sign, refine
        total = root if root.op == "lin" else Node(-1, "lin", (root,), (fmpq(0), ONE))
        self.parts = []
        for along, indices in group_by_direction(total, self.K):
            chosen = [(sign * terms(total)[i][0], terms(total)[i][1]) for i in indices]
            self.parts.append(self._part(along, indices, chosen))

    def _part(self, along, indices, chosen):
        if along is not None:
            return Part(Proof("ridge"), indices, chosen, along)
        ((c, x),) = chosen
        if x.op == "quadratic":
            return Part(Proof("quadratic"), indices, chosen, quadratic_form(x, self.K))
        if (length := Length.of(x, self.K)) is not None:
            return Part(Proof("length"), indices, chosen, length)
        proof = self.rules.prove(x, 1 if c > 0 else -1)
        return Part(Proof("hessian") if proof is None or self.refine else proof, indices, chosen)

    def document(self) -> dict[str, Any]:
        """The proof as it is written."""
        proofs, indices = [part.proof for part in self.parts], [part.indices for part in self.parts]
        return Proof("sum", proofs, indices).document()

    def slow_parts(self) -> int:
        """How many parts have bounds that take long."""
        slow = [part for part in self.parts if part.rule in ("ridge", "hessian")]
        ridges = self.rules.ridges
        return sum(not all(ridges.is_simple(c, x) for c, x in part.chosen) for part in slow)

    def work(self) -> int:
        """Evaluations of rows for the Hessians of one cell, along two lines for each entry."""
        general = [x for part in self.parts if part.rule == "hessian" for _, x in part.chosen]
        rows = [y for x in general for y in reachable(x)]
        return 1 + self.K * (self.K - 1) * sum(1 + len(y.data) for y in rows)

    def on_cell(self, cell) -> Bound | None:
        """The matrix on a cell, or None if a part has no bound there."""
        total, ridges, rows = fmpq_mat(self.K, self.K), [], []
        for part in self.parts:
            c = part.chosen[0][0]
            if part.rule == "ridge":
                ends = cell.range_along(part.data)
                least = self.rules.ridges.lowest(part.chosen, part.data, *ends).bound
                if math.isinf(least):
                    return None
                ridges.append(exactly(least))
                rows.append(part.data.w)
            elif part.rule == "quadratic":
                total += 2 * c * part.data
            elif part.rule == "length":
                total += abs(c) * part.data.factor(1 if c > 0 else -1, cell) * part.data.Q
        if rows:  # Σ c_r w_r w_rᵀ
            weighted = [[c * v for v in w] for c, w in zip(ridges, rows, strict=True)]
            total += fmpq_mat(rows).transpose() * fmpq_mat(weighted)
        scale = max(abs(float(x)) for x in total.entries())
        L = total.tolist()
        for part in self.parts:
            if part.rule == "hessian" and not _add_hessian(L, part, cell):
                return None
        return Bound(L, ridges, scale)


def _add_hessian(total, part, cell):
    """Add balls around the entries in the basis e_i − e_K; whether they are finite.

    By polarisation: 4uᵀHv is the second derivative along u + v less that along u − v.
    """
    ((c, x),), n = part.chosen, len(total) - 1

    def along(i, j, sign):
        d = [fmpq((k == i) + sign * (k == j)) for k in range(n)] + [fmpq(-1 - sign)]
        return c * second_derivative(x, cell.vertices, tuple(d))

    for i in range(n):
        for j in range(i + 1):
            entry = (along(i, j, 1) - (0 if i == j else along(i, j, -1))) / 4
            if not entry.is_finite():
                return False
            for a, b in {(i, j), (j, i)}:
                total[a][b] += entry
    return True


class Cover(NamedTuple):
    """A tree of cells, and m with H ⪰ m on tangents in all of them; or the worst cell."""

    hessian: HessianBound
    tree: dict[str, Any]
    bound: fmpq | None
    worst: Cell

    @property
    def convex(self):
        return self.bound is not None and self.bound >= 0

    def document(self) -> dict[str, Any] | None:
        if self.bound is None:
            return None
        return {"bound": self.bound, "proof": self.hessian.document(), "cover": self.tree}


def cover(
    hessian: HessianBound,
    least: float,
    *,
    gap: float = 2e-3,
    cells: int = 1,
    target: float = math.inf,
) -> Cover:
    """The best lower bound within a budget. That the cells cover the simplex needs no proof.

    Args:
      hessian: the parts of F.
      least: the least curvature found at a point, which no bound can exceed.
      gap: a relative distance from it that is close enough.
      cells: how many there may be.
      target: a bound that suffices.
    """

    def bound(cell, leaf):
        found = hessian.on_cell(cell)
        if found is None:
            return -math.inf, None
        leaf["bends"] = found.ridges
        return found.estimate(), found

    def done(lowest, count):
        lost = math.isinf(lowest) and count > UNBOUNDED
        return lost or count >= cells or lowest >= enough

    enough = min(least - gap * abs(least), target)
    tree, leaves = bisect(hessian.K, bound, done)
    lowest, _, worst, *_ = leaves[0]
    return Cover(hessian, tree, _verified([found for *_, found in leaves], lowest), worst)


def bisect(K, bound, done):
    """Halve the cell with the lowest bound, until that and the number of cells are enough.

    Args:
      K: the number of classes.
      bound: of a cell and its leaf in the tree, a bound on the cell, and anything else to be kept.
      done: of the lowest bound and the number of cells, whether they are enough.

    Returns:
      A tree of halves, and its leaves as a heap of (bound, count, cell, leaf, what was found).
    """
    tree, count = {}, itertools.count()
    queue = []

    def add(cell, leaf):
        value, found = bound(cell, leaf)
        heapq.heappush(queue, (value, next(count), cell, leaf, found))

    add(Cell.whole(K), tree)
    while not done(queue[0][0], len(queue)):
        _, _, cell, leaf, _ = heapq.heappop(queue)
        edge, (first, second) = cell.halves()
        leaf.clear()
        leaf |= {"split": list(edge), "halves": [{}, {}]}
        add(first, leaf["halves"][0])
        add(second, leaf["halves"][1])
    return tree, queue


def _verified(bounds, lowest):
    """The bound that is proved on all cells: the estimate, or a little less."""
    if not math.isfinite(lowest):
        return None
    finite = [bound for bound in bounds if bound is not None]
    size = max(bound.scale for bound in finite) + abs(lowest)
    slacks = SLACKS[COARSE:] if any(has_balls(bound.L) for bound in finite) else SLACKS
    lower = [lowest - size * slack for slack in slacks]
    lower += [lowest * share for share in SHARES if lowest > 0]
    candidates = [exactly(x) for x in sorted(lower, reverse=True)]
    simple = nearby(lowest, 10**6)
    if len(bounds) == 1 and abs(float(simple) - lowest) <= 1e-12 * size:
        candidates.insert(0, simple)
    proved = (m for m in candidates if all(is_at_least(bound.L, m) for bound in finite))
    return next(proved, None)
