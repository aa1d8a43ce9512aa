"""The paper's ranges as certificates: margins, penalties, scores, and the constant 8√2/27.

Each is a function of p whose least and largest value on the simplex is proved, and a file that the
checker verifies; part of `python -m proofs_numeric --certify`.

>>> [fact.name for fact in margins()]
['APMS: −m_τ(p, y)', 'APMS: penalty r(p, y)']
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.certificates import certify_range
from pgeom.generators import Hyperbolic, Quadratic
from pgeom.losses.catalogue import MARGIN
from pgeom.paper.margin import penalty, smooth_margin
from proofs_numeric import configurations

SMALL = 3  # classes, up to which ranges of functions that are not convex are proved
GAP = 0.01  # of those, relative
LABEL = 0  # margins and penalties of all labels have the same range


class Fact(NamedTuple):
    """A function of p `[K]` whose range is proved, and how closely."""

    name: str
    function: Callable[[Any], Any]
    gap: float = GAP


class Row(NamedTuple):
    """A proved range, with the values that are attained next to its ends."""

    fact: str
    K: int
    least: float
    lowest: float
    highest: float
    largest: float
    document: dict[str, Any]


def facts(K: int) -> list[Fact]:
    """What is proved for K classes at the experiments' constants."""
    metrics = configurations.quadratics(K)
    found = margins()
    for name, F in zip(metrics.names, metrics.generators, strict=True):
        if name.endswith("clean seed 0"):
            found += [Fact(f"{name}: score of label {y}", metric_score(F, y)) for y in range(K)]
    if K <= SMALL:
        F = configurations.hyperbolics(K).get("HPG experiments R=4")
        found += [Fact(f"HPG R=4: score of label {y}", ridge_score(F, y)) for y in range(K)]
        found.append(Fact("logit gradients over √2·M_T/T, at most 8/27", LOGIT_GRADIENTS[K], 1e-3))
    return found


def margins() -> list[Fact]:
    """APMS's margin, which is concave, and its penalty."""
    tau, kappa, nu = (MARGIN[name] for name in ("tau", "kappa", "nu"))
    return [
        Fact("APMS: −m_τ(p, y)", lambda p: -smooth_margin(p, LABEL, tau=tau)),
        Fact("APMS: penalty r(p, y)", lambda p: penalty(p, LABEL, tau=tau, kappa=kappa, nu=nu)),
    ]


def prove(fact: Fact, K: int) -> Row:
    """The certificate of a fact in one row."""
    found = certify_range(fact.function, K, gap=fact.gap)
    least, lowest = float(found.least), float(found.lowest)
    highest, largest = float(found.highest), float(found.largest)
    return Row(fact.name, K, least, lowest, highest, largest, found.document)


def metric_score(F: Quadratic, y: int) -> Callable[[Any], Any]:
    """½(p − e_y)ᵀA(p − e_y)."""
    A = np.asarray(F.A, np.float64)

    def score(p):
        d = p - np.eye(len(A))[y]
        return d @ A @ d / 2

    return score


def ridge_score(F: Hyperbolic, y: int) -> Callable[[Any], Any]:
    """s[λ‖p − e_y‖²/2 + Σ a ρ² D(v(p), v(e_y))], D of log cosh."""
    w, b, rho, a = (np.asarray(x, np.float64) for x in (F.w, F.b, F.rho, F.a))
    kept = a != 0  # the others are there for a common shape
    w, b, rho, a = w[kept], b[kept], rho[kept], a[kept]
    end = (w[:, y] - b) / rho
    at_end = np.logaddexp(end, -end) - math.log(2)

    def score(p):
        v = (w @ p - b) / rho
        log_cosh = jax.nn.softplus(-2 * v) + v - math.log(2)
        divergence = at_end - log_cosh - jnp.tanh(v) * (end - v)
        square = jnp.sum((p - np.eye(w.shape[1])[y]) ** 2) / 2
        return float(F.scale) * (float(F.lam) * square + jnp.sum(a * rho**2 * divergence))

    return score


def _two_classes(p):
    """‖J(p − e_1)‖/√2: on two classes tangents are one line, and H ⪯ M there is a number."""
    return 2 * p[0] * p[1] ** 2


def _three_classes(p):
    """An upper bound on ‖JH(p − e_1)‖/(√2·M) for every 0 ⪯ H ⪯ M on tangents, tight at (1, 2, 0)/3.

    ‖JHd‖ ≤ (M/2)(‖J‖‖d‖ + ‖Jd‖), where ‖J‖ = (t + √(t² − 12 p_1p_2p_3))/2 and t is the trace of J.
    Roots and products are replaced by their tangents from above, √x ≤ (x/c + c)/2, at that point.
    Whole numbers alone: what is certified is the function with its constants as floats.
    """
    d = p - np.eye(3)[0]
    Jd = p * d - p * jnp.sum(p * d)
    trace = jnp.sum(p * (1 - p))
    norm = (trace + ((trace**2 - 12 * p[0] * p[1] * p[2]) * 81 / 4 + 4) / 18) / 2
    terms = jnp.sum(d**2) / 3 + 3 * norm**2 / 2 + 27 * jnp.sum(Jd**2) / 16
    return (27 * terms + 8) / 108


LOGIT_GRADIENTS = {2: _two_classes, 3: _three_classes}
