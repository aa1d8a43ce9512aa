"""Contamination: what a share ε of foreign labels costs the minimiser, for any bounded loss.

A loss in [0, B], R̃ = (1 − ε)R + εQ: |R̃ − R| ≤ εB, and the minimiser of R̃ exceeds the least R by
at most εB/(1 − ε). For Bregman scores the minimiser is η̃ = (1 − ε)η + εq, and its excess is
exactly D_F(η, η̃) ≤ M_T ε², which is quadratic in ε.
"""

import jax.numpy as jnp
import numpy as np

from pgeom.diagnosis import bounds, curvature
from pgeom.scores import bregman_divergence
from proofs_numeric.claims import Cases, Claim, Family
from proofs_numeric.configurations import hyperbolics, quadratics
from proofs_numeric.regret import ENVELOPE
from proofs_numeric.search import points

LABEL = "Fig. (supp-theory-binary)"
QUADRATIC = "beyond the paper: the excess risk of a Bregman score is D(η, η̃), quadratic in ε"
RATES = (0.01, 0.1, 0.3)
B = 2.5


def measure(cases: Cases) -> dict:
    """The excess and the shift of two hypotheses that attain the bounds, and of random ones.

    Of three outcomes a, b, c, the foreign one is c, and b has clean mass ε/(1 − ε). The first
    hypothesis loses B on c alone, the second B on b alone. Their contaminated risks are εB each, so
    that by a hair the second is chosen; its clean risk is εB/(1 − ε), the other's 0.
    """
    rng, rates = np.random.default_rng([10, cases.K]), np.array(list(cases.values.values()))
    attained, found, K = [], [], cases.K
    for epsilon in rates:
        mass = epsilon / (1 - epsilon) * (1 - 1e-9)
        clean, foreign = np.array([1 - mass, mass, 0.0]), np.array([0.0, 0.0, 1.0])
        attained.append(minimise(B * np.array([[0, 0, 1], [0, 1, 0]]), clean, foreign, epsilon))
        drawn = []
        for _ in range(20):
            losses = B * rng.beta(0.3, 0.3, (40, K))
            eta, q = rng.dirichlet(np.ones(K), 2)
            drawn.append(minimise(losses, eta, q, epsilon))
        found.append(np.max(drawn, axis=0))
    (met, met_shift), (excess, shift) = np.transpose(attained), np.transpose(found)
    q = {"excess": excess, "shift": shift, "met": met, "met_shift": met_shift}
    return q | {"εB/(1−ε)": rates * B / (1 - rates), "εB": rates * B}


def minimise(losses, clean, foreign, epsilon) -> tuple[float, float]:
    """The clean excess of the contaminated choice, and the largest shift of a risk."""
    R = losses @ clean
    contaminated = (1 - epsilon) * R + epsilon * (losses @ foreign)
    return R[np.argmin(contaminated)] - R.min(), np.abs(contaminated - R).max()


def measure_scores(cases: Cases) -> dict:
    """The largest D(η, η̃) over pairs η and q, the two ends of an edge among them."""

    def one(F, eta, q):
        D = bregman_divergence(F)
        return [jnp.max(D(eta, (1 - rate) * eta + rate * q)) for rate in RATES]

    some = points(cases.K, count=4)[1:]
    eta, q = (
        np.concatenate([some, some]),
        np.concatenate([np.roll(some, i, axis=0) for i in (1, 5)]),
    )
    found = cases.evaluate(bounds.loss_range, B="sharp")
    found |= cases.evaluate(curvature.envelope, **ENVELOPE)
    for rate, excess in zip(RATES, cases.map(one, eta, q), strict=True):
        generic, square = rate * found["B"] / (1 - rate), found["M_T"] * rate**2
        found |= {f"excess{rate}": excess, f"generic{rate}": generic, f"squared{rate}": square}
        found |= {f"sharp{rate}": np.minimum(generic, square)}
    return found


def score_claims(statement: str, relation: str, on: str = "") -> list[Claim]:
    return [
        Claim(statement, QUADRATIC, relation.replace("ε", str(rate)), on, how=f"ε={rate}, pairs")
        for rate in RATES
    ]


WITHIN = score_claims("score: D(η,η̃) ≤ M_T ε²", "excessε ≤ sharpε ≤ genericε")
HYPOTHESES = Family(
    lambda K: Cases(K, {f"ε={rate}": rate for rate in RATES}),
    measure,
    (
        Claim("εB/(1−ε) is attained", LABEL, "met = εB/(1−ε)", how="two hypotheses"),
        Claim("|R̃ − R| = εB is attained", LABEL, "met_shift = εB", how="two hypotheses"),
        Claim("excess ≤ εB/(1−ε)", LABEL, "excess ≤ εB/(1−ε)"),
        Claim("|R̃ − R| ≤ εB", LABEL, "shift ≤ εB"),
    ),
    how=f"20 × 40 random hypotheses, B={B}",
    false={"ε/(1−ε) → ε": {"εB/(1−ε)": lambda q: q["εB"]}},
    classes=range(2, 1001),
)
METRICS = Family(
    quadratics,
    measure_scores,
    (
        *WITHIN,
        *score_claims("M_T ε² is attained", "excessε = squaredε", "pair metric"),
    ),
    false={"M_T ε² → M_T ε²/2": {"sharp0.1": 0.5}},
    classes=range(2, 1001),
)
RIDGES = Family(hyperbolics, measure_scores, tuple(WITHIN), classes=range(2, 1001))
FAMILIES = HYPOTHESES, METRICS, RIDGES
