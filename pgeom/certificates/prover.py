"""The methods in order: rules, structured Hessians, bisection, and disproof.

>>> import jax.numpy as jnp
>>> [prove(F, 3).convex for F in (jnp.max, jnp.min)]
['proved', 'disproved']
"""

import math
import time
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from pgeom.certificates.arithmetics import (
    Spectra,
    affordable,
    second_derivative,
    spectra,
)
from pgeom.certificates.certificate import Certificate, jaxpr_hash, seal
from pgeom.certificates.disproofs import (
    MANY,
    flat_segment,
    inside,
    negative_pair,
    rational_point,
    sample,
)
from pgeom.certificates.expression import (
    as_fraction,
    at_vertices,
    dot,
    exactly,
    is_affine,
    nearby,
    reachable,
)
from pgeom.certificates.hessians import HessianBound, cover
from pgeom.certificates.reader import Reading, Unsupported, read
from pgeom.certificates.rules import span_tangents
from pgeom.diagnosis.search import Witness

PRECISION = 128  # bits of interval endpoints
SHARPEN = {"gap": 2e-3, "cells": 200}  # a bound that holds already, K ≤ 3
DECIDE = {"gap": 0.5, "cells": 400}  # whether F is convex at all, K ≤ 6
WORK = 300_000  # evaluations of rows in balls that a decision may take, by a checker as well


def prove(F, K) -> Certificate:
    """Everything that the methods prove about F on K classes."""
    start = time.perf_counter()
    with ctx.workprec(PRECISION):
        try:
            reading = read(F, K)
        except Unsupported as error:
            nothing = {"nodes": [], "segment": None, "attained": {}}
            return _certificate(K, start, "unknown", "unknown", reason=str(error), **nothing)
        return Prover(reading).certificate(start)


class Prover:
    """One expression, and what is known of it so far."""

    def __init__(self, reading: Reading):
        self.root, self.rules, self.jaxpr = reading
        self.K = self.rules.K
        points = sample(self.K)
        if self.K > MANY:
            points = points[: min(40, affordable(self.root, self.K))]
        seen = spectra(self.root, points)
        sure = np.abs(seen.lowest) > 1e-9 * np.abs(seen.highest)  # beyond rounding
        self.seen = Spectra(*(column[sure | (seen.highest < 1e3)] for column in seen))

    def certificate(self, start: float) -> Certificate:
        tree = self.rules.prove(self.root, 1)
        hessians = (HessianBound(self.root, sign, self.rules) for sign in (1, -1))
        lower, upper = (cover(hessian, self._least(hessian.sign)) for hessian in hessians)
        pair = self._disproof(lower) if tree is None and not lower.convex else None
        if pair is None:
            lower, upper = self._refined(lower, tree is not None), self._refined(upper, True)
        below, above = lower.document(), upper.document()
        if tree is not None and (lower.bound is None or lower.bound <= 0):
            below = {"bound": fmpq(0), "proof": tree.document(), "cover": {}}
        flat, reason = None, ""
        if pair is not None:
            convex = strict = "disproved"
            below = None
        else:
            convex = "proved" if tree is not None or lower.convex else "unknown"
            strict = "proved" if self._is_strict(tree, lower) else "unknown"
        if strict == "unknown" and (flat := flat_segment(self.root, self.K)) is not None:
            strict = "disproved"
        if convex == "unknown":
            reason = "no rule applies, and neither a proof nor a counterexample was found"
        elif strict == "unknown":
            reason = "convex, but neither strictness nor a flat segment was found"
        return _certificate(
            self.K,
            start,
            convex,
            strict,
            below=below,
            above=above,
            witness=_witness(pair, flat),
            reason=reason,
            jaxpr=jaxpr_hash(self.jaxpr),
            nodes=node_rows(self.root, self.K),
            segment=flat if pair is None else (pair.p, pair.eta),
            attained={"m_tangent": self._attained(1), "M_tangent": self._attained(-1)},
        )

    def _curvatures(self, sign):
        """The least curvatures of sign·F that were seen, and their directions."""
        if sign == 1:
            return self.seen.lowest, self.seen.down
        return -self.seen.highest, self.seen.up

    def _least(self, sign):
        return float(np.min(self._curvatures(sign)[0], initial=np.inf))

    def _refined(self, whole, known):
        """The bound on cells, where that on the whole simplex is too coarse and K is small."""
        hessian, least = whole.hessian, self._least(whole.hessian.sign)
        bound = -math.inf if whole.bound is None else float(whole.bound)
        if self.K == 2 or not hessian.parts or bound >= least - SHARPEN["gap"] * abs(least):
            return whole
        if not known and least > 0 and bound <= 0 and self.K <= 6:
            cells = min(DECIDE["cells"], int(WORK / hessian.work()))
            return cover(hessian, least, gap=DECIDE["gap"], cells=cells, target=least / 2)
        if self.K <= 3 and math.isfinite(least):
            refined = HessianBound(self.root, hessian.sign, self.rules, refine=True)
            cells = SHARPEN["cells"] // (1 + refined.slow_parts())
            sharper = cover(refined, least, gap=SHARPEN["gap"], cells=cells)
            if sharper.bound is not None and float(sharper.bound) > bound:
                return sharper
        return whole

    def _disproof(self, lower):
        extra = [lower.worst.centre()]
        if len(self.seen.lowest):
            extra.insert(0, self.seen.points[np.argmin(self.seen.lowest)])
        for part in lower.hessian.parts[:MANY]:
            if part.rule == "ridge":
                lowest = self.rules.ridges.lowest(part.chosen, part.data)
                extra.append(inside(part.data, lowest.place, fmpq(1, 50)))
        return negative_pair(self.root, self.K, extra)

    def _is_strict(self, tree, lower):
        if lower.bound is not None and lower.bound > 0:
            return True
        return tree is not None and span_tangents(tree.strict, self.K)

    def _attained(self, sign):
        """Where the curvature of sign·F is least in float64: a point, a direction, and a bound.

        The curvature of F is at most that for sign 1, and at least that for sign −1.
        """
        values, directions = self._curvatures(sign)
        values = np.where(self.seen.points.min(axis=1) > 2.0**-30, values, np.inf)
        if not np.isfinite(values).any():
            return None
        i = np.argmin(values)
        step = [nearby(x, 2**20) for x in directions[i]]
        step[0] -= sum(step)
        p, d = rational_point(self.seen.points[i]), tuple(step)
        value = sign * second_derivative(self.root, [p], d) / arb(dot(d, d))
        if not value.is_finite():
            return None
        size = float(value.upper())
        return {"p": p, "d": d, "value": sign * exactly(size + 1e-12 * abs(size) + 1e-30)}


def node_rows(root, K) -> list[list[Any]]:
    """The expression as rows [operation, arguments, constants], the root last.

    Affine functions are written as their values at the vertices.
    """
    place = {x: i for i, x in enumerate(reachable(root))}
    return [
        ["affine", [], at_vertices(x, K)]
        if is_affine(x)
        else [x.op, [place[y] for y in x.args], [*x.data]]
        for x in place
    ]


def _certificate(
    K, start, convex, strict, *, below=None, above=None, witness=None, reason="", **rest
):
    """The certificate of these verdicts and the evidence for bounds from below and from above.

    `rest` is what else its document holds.
    """
    method = "disproof" if convex == "disproved" else "none"
    if convex == "proved" and below is not None:
        method = "structured Hessian" if below["bound"] else "rules"
        if "halves" in below["cover"]:
            method = "bisection"
    claims = {
        "K": K,
        "convex": convex,
        "strictly_convex": strict,
        "m_tangent": None if below is None else as_fraction(below["bound"]),
        "M_tangent": None if above is None else -as_fraction(above["bound"]),
        "method": method,
    }
    document = seal({**claims, "evidence": {"m_tangent": below, "M_tangent": above}, **rest})
    seconds = time.perf_counter() - start
    return Certificate(**claims, witness=witness, reason=reason, seconds=seconds, document=document)


def _witness(pair, flat):
    if pair is None and flat is None:
        return None
    p, eta = flat if pair is None else (pair.p, pair.eta)
    value = 0.0 if pair is None else float(pair.divergence.upper())
    return Witness(np.array(eta, float), np.array(p, float), value)
