"""The parts of a certificate as they are written."""

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from flint import arb, fmpq

from pgeom.geometry.certificates.covers import Cover
from pgeom.geometry.certificates.disproofs import rational_point
from pgeom.geometry.certificates.expression import Node, is_affine, reachable
from pgeom.geometry.certificates.floats import Spectra
from pgeom.geometry.certificates.forms import Forms, Part
from pgeom.geometry.certificates.frames import at_vertices, rational
from pgeom.geometry.certificates.rules import Proof
from pgeom.geometry.certificates.series import second_derivative


class Bound(NamedTuple):
    """A cover that proves H ⪰ bound, for F or for −F."""

    forms: Forms
    found: Cover

    def document(self) -> dict[str, Any]:
        parts = [{"terms": p.indices, "proof": _part_proof(p)} for p in self.forms.parts]
        proof = {"rule": "sum", "parts": parts}
        return {"bound": self.found.bound, "proof": proof, "cover": self.found.tree}


def _part_proof(part: Part) -> Proof:
    return written(part.data) if part.kind == "rule" else {"rule": part.kind}


def rules_document(tree: Proof) -> dict[str, Any]:
    """Curvature at least 0 on the whole simplex."""
    return {"bound": 0, "proof": written(tree), "cover": {}}


def written(proof: Proof) -> Proof:
    """A proof without what a checker finds out by itself."""
    plain: Proof = {"rule": proof["rule"]}
    if proof["rule"] == "sum":
        parts = proof["parts"]
        plain["parts"] = [{"terms": p["terms"], "proof": written(p["proof"])} for p in parts]
    elif "parts" in proof:
        plain["parts"] = [written(part) for part in proof["parts"]]
    return plain


def attained(root: Node, seen: Spectra, sign: int) -> dict[str, Any] | None:
    """Where sign·F bends least in float64: a point, a direction, and a bound on its curvature.

    The curvature of F is at most that for sign 1, and at least that for sign −1.
    """
    inside = seen.points.min(axis=1) > 2.0**-30
    if not inside.any():
        return None
    values = seen.lowest if sign == 1 else -seen.highest
    i = np.argmin(np.where(inside, values, np.inf))
    along = (seen.down if sign == 1 else seen.up)[i]
    step = [Fraction(float(x)).limit_denominator(2**20) for x in along]
    step[0] -= sum(step)
    p, d = rational_point(seen.points[i]), tuple(map(rational, step))
    value = sign * second_derivative(root, [p], d) / arb(sum((x * x for x in d), fmpq(0)))
    if not value.is_finite():
        return None
    size = float(value.upper())
    return {"p": p, "d": d, "value": sign * Fraction(size + 1e-12 * abs(size) + 1e-30)}


def nodes(root: Node, K: int) -> list[list[Any]]:
    """The expression as rows [operation, arguments, constants], the root last.

    Affine functions are written as their values at the vertices, log(1 + eˣ) as log(eˣ + e⁰).
    """
    rows: list[list[Any]] = []
    place: dict[Node, int] = {}
    for x in reachable(root):
        if is_affine(x):
            row = ["affine", [], at_vertices(x, K)]
        elif x.op == "softplus":
            rows.append(["affine", [], [0] * K])
            row = ["lse", [place[x.args[0]], len(rows) - 1], [1, 1]]
        else:
            row = [x.op, [place[y] for y in x.args], [*x.data]]
        place[x] = len(rows)
        rows.append(row)
    return rows
