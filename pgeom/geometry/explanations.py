"""What a diagnosis means, in one line of plain words.

>>> import jax.numpy as jnp
>>> from pgeom.geometry.diagnosis import diagnose
>>> explain_convexity(diagnose(lambda p: -jnp.sum(p**2), 2)).partition(":")[0]
'F is not convex, so its score is not proper'
"""

import math

import numpy as np

from pgeom.geometry.convexity import Verdict
from pgeom.geometry.diagnosis import Diagnosis, GeneratorReport


def explain_convexity(report: GeneratorReport | Diagnosis | Verdict) -> str:
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
