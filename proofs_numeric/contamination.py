"""Contamination: what a share ε of foreign labels costs the minimiser, for any bounded loss.

A loss in [0, B], R̃ = (1 − ε)R + εQ: |R̃ − R| ≤ εB, and the minimiser of R̃ exceeds the least R by
at most εB/(1 − ε). For Bregman scores the minimiser is η̃ = (1 − ε)η + εq, and its excess is
exactly D_F(η, η̃) ≤ M_T ε², which is quadratic in ε.
"""

from collections.abc import Callable

import jax
import numpy as np

from pgeom.compilation import quick_jit
from pgeom.diagnosis import bounds, curvature
from pgeom.scores import bregman_divergence
from proofs_numeric import configurations, probes
from proofs_numeric.check import Check, attainment, check_each, upper_bound
from proofs_numeric.configurations import Configurations

LABEL = "Fig. (supp-theory-binary)"
QUADRATIC = "beyond the paper: the excess risk of a Bregman score is D(η, η̃), quadratic in ε"
RATES = (0.01, 0.1, 0.3)
HYPOTHESES = 40


def generic_bound(B, epsilon):
    """εB/(1 − ε)."""
    return epsilon * B / (1 - epsilon)


def quadratic_bound(M_tangent, epsilon):
    """M_T ε²."""
    return M_tangent * epsilon**2


def checks(
    K: int,
    *,
    generic: Callable = generic_bound,
    quadratic: Callable = quadratic_bound,
) -> list[Check]:
    """Both bounds on K classes, under test."""
    metrics, ridges = configurations.quadratics(K), configurations.hyperbolics(K)
    return [
        *check_two_hypotheses(generic),
        *check_random_hypotheses(K, generic),
        *check_scores(metrics, generic, quadratic),
        *check_scores(ridges, generic, quadratic),
        *check_attained(metrics.select("pair metric"), quadratic),
    ]


def check_two_hypotheses(generic, B: float = 2.5) -> list[Check]:
    """Equality: three outcomes a, b, c; c is the contamination, b has clean mass ε/(1 − ε).

    The first hypothesis loses B on c alone, the second B on b alone. Their contaminated risks are
    εB each, so that by a hair the second is chosen; its clean risk is εB/(1 − ε), the other's 0.
    """
    rows = []
    for epsilon in RATES:
        mass = epsilon / (1 - epsilon) * (1 - 1e-9)
        clean, foreign = np.array([1 - mass, mass, 0.0]), np.array([0.0, 0.0, 1.0])
        losses = B * np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
        excess, shift = _minimise(losses, clean, foreign, epsilon)
        how = f"two hypotheses, ε={epsilon}, B={B}"
        claim = "εB/(1−ε) is attained"
        rows += [
            attainment(claim, LABEL, observed=excess, paper=generic(B, epsilon), how=how),
            attainment(
                "|R̃ − R| = εB is attained", LABEL, observed=shift, paper=epsilon * B, how=how
            ),
        ]
    return rows


def check_random_hypotheses(K: int, generic) -> list[Check]:
    """Random losses in [0, B] over K outcomes."""
    rng, B = np.random.default_rng([10, K]), 3.0
    rows = []
    for epsilon in RATES:
        drawn = [
            _minimise(
                B * rng.beta(0.3, 0.3, (HYPOTHESES, K)),
                rng.dirichlet(np.ones(K)),
                rng.dirichlet(np.ones(K)),
                epsilon,
            )
            for _ in range(20)
        ]
        excess, shift = np.max(drawn, axis=0)
        how = f"K={K}, ε={epsilon}: 20 × {HYPOTHESES} random hypotheses"
        rows += [
            upper_bound(
                "excess ≤ εB/(1−ε)", LABEL, observed=excess, paper=generic(B, epsilon), how=how
            ),
            upper_bound("|R̃ − R| ≤ εB", LABEL, observed=shift, paper=epsilon * B, how=how),
        ]
    return rows


def check_scores(cases: Configurations, generic, quadratic) -> list[Check]:
    """Bregman scores: D_F(η, η̃) within the generic and the quadratic bound."""
    eta, q = _pairs(cases.K)
    (B,), (M_T,) = (
        cases.evaluate(bounds.loss_range, "sharp"),
        cases.evaluate(curvature.envelope, "M_tangent"),
    )
    rows = []
    for epsilon in RATES:
        excess = _divergences(cases.stacked, eta, (1 - epsilon) * eta + epsilon * q)
        columns = {
            "observed": np.max(excess, axis=1),
            "paper": generic(B, epsilon),
            "sharp": np.minimum(generic(B, epsilon), quadratic(M_T, epsilon)),
        }
        how = f"ε={epsilon}, {len(eta)} pairs of η and q"
        rows += check_each(upper_bound, "score: D(η,η̃) ≤ M_T ε²", QUADRATIC, cases, how, **columns)
    return rows


def check_attained(cases: Configurations, quadratic) -> list[Check]:
    """M_T ε² at the pair metric: η = e₁ contaminated by q = e₂."""
    eta, q = np.eye(cases.K)[:1], np.eye(cases.K)[1:2]
    (M_T,) = cases.evaluate(curvature.envelope, "M_tangent")
    claim = "M_T ε² is attained"
    rows = []
    for epsilon in RATES:
        excess = np.asarray(_divergences(cases.stacked, eta, (1 - epsilon) * eta + epsilon * q))
        columns = {"observed": excess[:, 0], "sharp": quadratic(M_T, epsilon)}
        rows += check_each(
            attainment, claim, QUADRATIC, cases, f"ε={epsilon}, e₁ towards e₂", **columns
        )
    return rows


def _minimise(losses, clean, foreign, epsilon) -> tuple[float, float]:
    """The clean excess of the contaminated choice, and the largest shift of a risk."""
    R = losses @ clean
    contaminated = (1 - epsilon) * R + epsilon * (losses @ foreign)
    return R[np.argmin(contaminated)] - R.min(), np.abs(contaminated - R).max()


def _pairs(K: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (η, q): vertices, the worst case of ‖η − q‖, and draws."""
    points = probes.points(K, count=4)[1:]
    return np.concatenate([points, points]), np.concatenate(
        [np.roll(points, 1, axis=0), np.roll(points, 5, axis=0)]
    )


@quick_jit
def _divergences(stacked, eta, p):
    return jax.vmap(lambda F: bregman_divergence(F)(eta, p))(stacked)
