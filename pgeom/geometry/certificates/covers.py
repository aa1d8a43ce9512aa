"""A lower bound on the tangent curvature, by bisection of the simplex.

The cell with the lowest bound is halved at its longest edge until the bound is close to the
curvature at some point, or the budget is spent. A cover is a tree of halves; that its cells cover
the simplex needs no proof.
"""

import heapq
import itertools
import math
from fractions import Fraction
from typing import Any, NamedTuple

from flint import fmpq

from pgeom.geometry.certificates.forms import Bounded, Forms
from pgeom.geometry.certificates.frames import Cell

SHARES = (0.8, 0.5, 0.2, 0.05, 0.01)
HOPELESS = 40  # cells, if there is still one without any bound
SLACKS = (1e-13, 1e-11, 1e-8, 1e-5, 1e-3, 0.03, 0.3, 1.0, 3.0)  # relative


class Budget(NamedTuple):
    """When to stop: at a relative gap, or at a number of cells."""

    gap: float = 2e-3
    cells: int = 1


class Cover(NamedTuple):
    """A tree of cells, and m with H ⪰ m on tangents in all of them; or the worst cell."""

    tree: dict[str, Any]
    bound: fmpq | None
    cells: int
    worst: Cell


def cover(forms: Forms, least: float, budget: Budget, *, target: float = math.inf) -> Cover:
    """The best lower bound within the budget.

    Args:
      forms: the parts of F.
      least: the least curvature found at a point, which no bound can exceed.
      budget: when to stop.
      target: a bound that suffices.
    """
    tree, count = {}, itertools.count()
    queue = [_item(forms, Cell.whole(forms.K), tree, count)]
    enough = min(least - budget.gap * abs(least), target)
    while len(queue) < budget.cells and queue[0][0] < enough:
        if math.isinf(queue[0][0]) and len(queue) > HOPELESS:
            break
        _, _, cell, node, _ = heapq.heappop(queue)
        i, j = cell.longest_edge()
        halves: list[dict] = [{}, {}]
        node.clear()
        node |= {"split": [i, j], "halves": halves}
        for half, leaf in zip(cell.split(i, j), halves, strict=True):
            heapq.heappush(queue, _item(forms, half, leaf, count))
    leaves = [(cell, bounded) for _, _, cell, _, bounded in queue]
    return Cover(tree, _verified(leaves, queue[0][0]), len(queue), queue[0][2])


def _item(forms: Forms, cell: Cell, leaf: dict, count) -> tuple:
    bounded = forms.on_cell(cell)
    if bounded is None:
        return -math.inf, next(count), cell, leaf, None
    leaf["bends"] = bounded.bends
    return bounded.estimate(), next(count), cell, leaf, bounded


def _verified(leaves: list[tuple[Cell, Bounded | None]], lowest: float) -> fmpq | None:
    """The bound that is proved on all cells: the estimate, or a little less."""
    if not math.isfinite(lowest):
        return None
    exact = [x for _, b in leaves if b for row in b.exact for x in row]
    size = max(abs(int(x.p) / int(x.q)) for x in exact) + abs(lowest)
    # balls are rounded differently by others
    slacks = SLACKS[3:] if any(b and b.balls for _, b in leaves) else SLACKS
    shares = SHARES if lowest > 0 else ()  # of it, so that little is given away of what is positive
    lower = [lowest - size * slack for slack in slacks] + [lowest * share for share in shares]
    candidates: list[float | Fraction] = sorted(lower, reverse=True)
    simple = Fraction(lowest).limit_denominator(10**6)
    if len(leaves) == 1 and abs(float(simple) - lowest) <= 1e-12 * size:
        candidates.insert(0, simple)
    for candidate in candidates:
        m = fmpq(*Fraction(candidate).as_integer_ratio())
        if all(b is not None and b.exceeds(m) for _, b in leaves):
            return m
    return None
