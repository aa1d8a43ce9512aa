"""The methods in order: rules, structured Hessians, bisection, and disproof."""

import math
import time
from fractions import Fraction
from typing import Any

import numpy as np
from flint import ctx, fmpq

from pgeom.geometry.certificates.certificate import Certificate, Verdict, seal
from pgeom.geometry.certificates.covers import Budget, cover
from pgeom.geometry.certificates.disproofs import (
    Pair,
    negative_pair,
    points_along,
    sample,
)
from pgeom.geometry.certificates.documents import Bound, attained, nodes, rules_document
from pgeom.geometry.certificates.enclosures import Undefined
from pgeom.geometry.certificates.expression import reachable
from pgeom.geometry.certificates.floats import Spectra, affordable, spectra
from pgeom.geometry.certificates.forms import Forms
from pgeom.geometry.certificates.jaxpr_hash import jaxpr_hash
from pgeom.geometry.certificates.quadratics import collected
from pgeom.geometry.certificates.quotients import apart
from pgeom.geometry.certificates.reader import Reading, Unsupported, read
from pgeom.geometry.certificates.rules import Proof, Rules
from pgeom.geometry.certificates.strictness import (
    flat_segment,
    spans_tangents,
    strict_directions,
)
from pgeom.geometry.convexity import Witness
from pgeom.types import Generator

PRECISION = 128  # bits of interval endpoints
SHARPEN = Budget(gap=2e-3, cells=200)  # of a bound that holds already, K ≤ 3
DECIDE = Budget(gap=0.5, cells=400)  # whether F is convex at all
WORK = 300_000  # evaluations of rows in balls that a decision may take, by a checker as well
SMALL, MEDIUM, MANY = 3, 6, 20


def prove(F: Generator, K: int) -> Certificate:
    """Everything that the methods prove about F on K classes."""
    start = time.perf_counter()
    with ctx.workprec(PRECISION):
        try:
            reading = read(F, K)
            root = collected(reading.graph, apart(reading.graph, reading.root))
            for x in reachable(root):
                reading.ranges.require_domain(x)
        except (Unsupported, Undefined) as error:
            return _unknown(K, str(error), time.perf_counter() - start)
        return Prover(reading._replace(root=root)).certificate(start)


def _unknown(K: int, reason: str, seconds: float) -> Certificate:
    unknown: Verdict = "unknown"
    none = {"m_tangent": None, "M_tangent": None}
    verdicts = {"convex": unknown, "strictly_convex": unknown, "method": "none", **none}
    empty = {"nodes": [], "evidence": none, "attained": none, "segment": None}
    document = seal({"K": K, **verdicts, **empty})
    return Certificate(
        K, **verdicts, witness=None, reason=reason, seconds=seconds, document=document
    )


class Prover:
    """One expression, and what is known of it so far."""

    def __init__(self, reading: Reading):
        self.root, self.ranges = reading.root, reading.ranges
        self.jaxpr, self.K = reading.jaxpr, reading.ranges.K
        self.rules = Rules(self.ranges)
        points = sample(self.K)
        few = points if self.K <= MANY else points[: min(40, affordable(self.root, self.K))]
        seen = spectra(self.root, few)
        sure = np.abs(seen.lowest) > 1e-9 * np.abs(seen.highest)  # beyond rounding
        self.seen = Spectra(*(column[sure | (seen.highest < 1e3)] for column in seen))

    def certificate(self, start: float) -> Certificate:
        tree = self.rules.prove(self.root, 1)
        lower = self._whole(1)
        pair = None
        if tree is None and not _holds(lower):
            pair = self._disproof(lower)
        if pair is None:
            lower = self._refined(lower, tree is not None)
        if tree is not None and not _holds(lower, strictly=True):
            evidence = rules_document(tree)
        else:
            evidence = None if lower.found.bound is None else lower.document()
        convex: Verdict = (
            "disproved" if pair else "proved" if tree is not None or _holds(lower) else "unknown"
        )
        strictly, flat = self._strictness(convex, tree, lower)
        upper = self._whole(-1)
        if pair is None:
            upper = self._refined(upper, True)
        claims = {
            "convex": convex,
            "strictly_convex": strictly,
            "m_tangent": None if pair or evidence is None else _number(evidence["bound"]),
            "M_tangent": _number(upper.found.bound, sign=-1),
            "method": _method(convex, evidence),
        }
        document = self._document(claims, None if pair else evidence, upper, pair, flat)
        reason = "" if "unknown" not in (convex, strictly) else _reason(convex)
        witness, seconds = _witness(pair, flat), time.perf_counter() - start
        return Certificate(
            self.K, **claims, witness=witness, reason=reason, seconds=seconds, document=document
        )

    def _whole(self, sign: int) -> Bound:
        """What one matrix for the whole simplex proves."""
        forms = Forms(self.root, sign, self.rules)
        return Bound(forms, cover(forms, self._least(sign), Budget()))

    def _least(self, sign: int) -> float:
        """The least curvature of sign·F that was seen."""
        values = self.seen.lowest if sign == 1 else -self.seen.highest
        return float(values.min()) if len(values) else math.inf

    def _refined(self, whole: Bound, known: bool) -> Bound:
        """The bound on cells, where that on the whole simplex is too coarse and K is small."""
        forms, bound = whole.forms, _float(whole.found.bound)
        least = self._least(forms.sign)
        if self.K == 2 or not forms.parts or bound >= least - SHARPEN.gap * abs(least):
            return whole
        if not known and least > 0 and bound <= 0 and self.K <= MEDIUM:
            budget = DECIDE._replace(cells=min(DECIDE.cells, int(WORK / self._work(forms))))
            return Bound(forms, cover(forms, least, budget, target=least / 2))
        if self.K <= SMALL and math.isfinite(least):
            bent = Forms(self.root, forms.sign, self.rules, bent=True)
            cells = SHARPEN.cells // (1 + bent.laborious())
            sharper = cover(bent, least, SHARPEN._replace(cells=cells))
            if sharper.bound is not None and _float(sharper.bound) > bound:
                return Bound(bent, sharper)
        return whole

    def _work(self, forms: Forms) -> int:
        """Evaluations of rows for the Hessians of one cell, along two lines for each entry."""
        general = [x for part in forms.parts if part.kind == "hessian" for _, x in part.chosen]
        rows = [y for x in general for y in reachable(x)]
        return 1 + self.K * (self.K - 1) * sum(1 + len(y.data) for y in rows)

    def _disproof(self, lower: Bound) -> Pair | None:
        worst = lower.found.worst.centre()
        extra = [np.array([int(x.p) / int(x.q) for x in worst])]
        if len(self.seen.lowest):
            extra.insert(0, self.seen.points[np.argmin(self.seen.lowest)])
        ridges = [part for part in lower.forms.parts if part.kind == "ridge"]
        for part in ridges[:MANY]:
            if (u := self.rules.ridges.lowest_place(part.chosen, part.data)) is not None:
                extra += points_along(part.data, u)
        return negative_pair(self.root, self.K, extra)

    def _strictness(
        self, convex: Verdict, tree: Proof | None, lower: Bound
    ) -> tuple[Verdict, tuple | None]:
        if convex == "disproved":
            return "disproved", None
        if _holds(lower, strictly=True) or (
            tree is not None and spans_tangents(strict_directions(self.root, tree, self.K), self.K)
        ):
            return "proved", None
        flat = flat_segment(self.root, self.K)
        return ("disproved" if flat is not None else "unknown"), flat

    def _document(self, claims, evidence, upper, pair, flat) -> dict[str, Any]:
        known = self.root, self.seen
        above = None if upper.found.bound is None else upper.document()
        return seal(
            {
                "K": self.K,
                "jaxpr": jaxpr_hash(self.jaxpr),
                "nodes": nodes(self.root, self.K),
                **claims,
                "evidence": {"m_tangent": evidence, "M_tangent": above},
                "segment": flat if pair is None else (pair.p, pair.eta),
                "attained": {"m_tangent": attained(*known, 1), "M_tangent": attained(*known, -1)},
            }
        )


def _method(convex: Verdict, evidence: dict[str, Any] | None) -> str:
    if convex != "proved" or evidence is None:
        return "disproof" if convex == "disproved" else "none"
    if evidence["cover"].get("halves"):
        return "bisection"
    return "structured Hessian" if evidence["bound"] else "rules"


def _reason(convex: Verdict) -> str:
    if convex == "unknown":
        return "no rule applies, and neither a proof nor a counterexample was found"
    return "convex, but neither strictness nor a flat segment was found"


def _holds(bound: Bound, strictly: bool = False) -> bool:
    found = bound.found.bound
    return found is not None and (found > 0 if strictly else found >= 0)


def _float(x: fmpq | None) -> float:
    return -math.inf if x is None else int(x.p) / int(x.q)


def _number(x: fmpq | int | None, sign: int = 1) -> Fraction | None:
    return None if x is None else sign * Fraction(int(fmpq(x).p), int(fmpq(x).q))


def _witness(pair: Pair | None, flat: tuple | None) -> Witness | None:
    if pair is not None:
        eta, p, value = pair.eta, pair.p, float(pair.divergence.upper())
    elif flat is not None:
        (p, eta), value = flat, 0.0
    else:
        return None
    eta, p = (np.array([int(x.p) / int(x.q) for x in y]) for y in (eta, p))
    return Witness(eta, p, value)
