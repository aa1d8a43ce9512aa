"""A diagnosis in words.

A diagnosis printed as a table.

>>> import jax.numpy as jnp
>>> from pgeom.diagnosis import diagnose
>>> print(table(diagnose(lambda p: -jnp.sum(p**2), 2)).splitlines()[2])
smooth                  yes, as far as was seen

What a diagnosis means, in one line of plain words.

>>> import jax.numpy as jnp
>>> from pgeom.diagnosis import diagnose
>>> explain_convexity(diagnose(lambda p: -jnp.sum(p**2), 2)).partition(":")[0]
'F is not convex, so its score is not proper'
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from pgeom.diagnosis.bounds import Bound
from pgeom.diagnosis.search import Verdict

if TYPE_CHECKING:
    from pgeom.diagnosis import Diagnosis, GeneratorReport

WIDTH = 24


def table(diagnosis: "Diagnosis") -> str:
    """The lines of a `Diagnosis`."""
    rows = [
        ("generator", f"F on {diagnosis.K} classes"),
        ("finite", _finite(diagnosis)),
        ("smooth", _smooth(diagnosis)),
        ("convex", _convex(diagnosis)),
        ("strictly convex", _strictly(diagnosis)),
        *_witness(diagnosis),
        ("curvature", _interval(diagnosis.envelope.m, diagnosis.envelope.M)),
        ("  on the simplex", _interval(diagnosis.envelope.m_tangent, diagnosis.envelope.M_tangent)),
        _largest_loss(diagnosis.loss_range),
        ("logit gradient at most", _bound(diagnosis.logit_gradient)),
        ("float32 score", _float32(diagnosis)),
        ("known how", diagnosis.how),
        ("may have missed", _missed(diagnosis)),
        ("time", f"{diagnosis.seconds:.2f} s"),
    ]
    return "\n".join(f"{name:{WIDTH}}{text}" for name, text in rows)


def _finite(diagnosis: "Diagnosis") -> str:
    if not diagnosis.finite_inside:
        return "NO: F is not finite inside the simplex, at p of the pair below"
    if not diagnosis.finite_at_vertices:
        return (
            "inside, but not at the vertices: write 0·log 0 as jax.scipy.special.xlogy(p, p); if F "
            "is truly infinite there, so is its score"
        )
    return "yes, inside and at the vertices"


def _smooth(diagnosis: "Diagnosis") -> str:
    if diagnosis.smooth:
        return "yes, as far as was seen"
    kink = diagnosis.kinks[0]
    return (
        f"NO: the slope jumps by {kink.jump:.3g} at p = {_point(kink.point)}; there the loss jumps "
        "too, and its gradient does not see it"
    )


def _convex(diagnosis: "Diagnosis") -> str:
    if diagnosis.convex is None:
        return "unknown: negative curvature was seen that rounding hides from the definition"
    if diagnosis.convex:
        return "yes, as far as was seen" if diagnosis.resolution is not None else "yes"
    if not diagnosis.finite_inside:
        return "NO"
    return "NO: D_F(η, p) < 0 at the pair below, so that p scores better than the truth η"


def _strictly(diagnosis: "Diagnosis") -> str:
    if diagnosis.strictly_convex:
        return "yes, as far as was seen" if diagnosis.resolution is not None else "yes"
    if diagnosis.convex is False:
        return "NO"
    if diagnosis.strictly_convex is None:
        return "unknown: flat to rounding, D_F(η, p) cannot be told from 0 at the pair below"
    return "NO: D_F(η, p) = 0 at the pair below, so that p scores as well as the truth η"


def _witness(diagnosis: "Diagnosis") -> list[tuple[str, str]]:
    if (witness := diagnosis.witness) is None:
        return []
    value = f"{witness.divergence:.6g}"
    if diagnosis.rounding is not None:
        value += f", with a rounding error of at most {diagnosis.rounding:.1g}"
    return [
        ("  η", _point(witness.eta)),
        ("  p", _point(witness.p)),
        ("  D_F(η, p)", value),
    ]


def _interval(low: float, high: float) -> str:
    return f"{low:.6g} ≤ λ(H) ≤ {high:.6g}"


def _largest_loss(bound: Bound | None) -> tuple[str, str]:
    """A bound where a formula gives one, and otherwise the largest loss that was found."""
    if bound is None or bound.how != "searched":
        return "loss at most", _bound(bound)
    if not np.isfinite(bound.sharp):
        return "largest loss", "none: it grows without end where a probability vanishes"
    return "largest loss found", f"{bound.sharp:.6g} (searched); {_paper(bound)}"


def _bound(bound: Bound | None) -> str:
    if bound is None:
        return "no bound: F is not known to be convex"
    if not np.isfinite(bound.sharp):
        return "no bound: the curvature is not bounded"
    return f"{bound.sharp:.6g} ({bound.how}); {_paper(bound)}"


def _paper(bound: Bound) -> str:
    if not np.isfinite(bound.paper):
        return "the paper has no bound, as the curvature has none"
    return f"by the paper's bound {bound.paper:.6g}"


def _float32(diagnosis: "Diagnosis") -> str:
    if (error := diagnosis.float32) is None:
        return "not compared: F is not finite everywhere"
    return (
        f"relative error up to {error.relative:.1g} against float64, for 1 − p_y down to 1e-7; "
        f"{error.in_units:.2g} ε of its terms"
    )


def _missed(diagnosis: "Diagnosis") -> str:
    if diagnosis.resolution is None:
        return "nothing"
    return f"dents and ridges narrower than about {diagnosis.resolution:.2g}"


def _point(x: np.ndarray) -> str:
    return " ".join(np.array2string(x, precision=6, separator=", ", threshold=12).split())


def explain_convexity(report: "GeneratorReport | Diagnosis | Verdict") -> str:
    """Which property F lacks, with the pair that shows it; nothing if it lacks none."""
    if report.witness is None:
        return (
            "" if report.convex else "negative curvature was seen that rounding hides from D(η,p)"
        )
    eta, p, divergence = report.witness
    at = f"D(η,p) = {divergence:.6g} at {describe_pair(eta, p)}"
    if not math.isfinite(divergence):
        return f"F or its gradient is not finite: {at}"
    if report.convex is False:
        return f"F is not convex, so its score is not proper: R(η,p) < R(η,η), with {at}"
    if report.strictly_convex is None:
        return f"F is flat to rounding: {at} cannot be told from zero"
    return (
        f"F is not strictly convex, so its score is not strictly proper: R(η,p) = R(η,η), with {at}"
    )


def describe_pair(eta: np.ndarray, p: np.ndarray) -> str:
    """Two points of the simplex, on one line."""
    left, right = (np.array2string(x, precision=6, separator=", ") for x in (eta, p))
    return f"η = {' '.join(left.split())}, p = {' '.join(right.split())}"
