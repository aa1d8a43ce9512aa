"""APMS with β > 0 is not proper: the penalty's conditional risk is not stationary at the truth.

The paper's counterexample, K = 2 and η = (0.8, 0.2), has the derivative

    −2(0.8)σ(−0.6) + 2(0.2)σ(0.6) = −0.308687…

and non-propriety is universal: at η = (1 − e)e_y + e·e_j the derivative along e_y − e_j tends, as
e → 0, to −σ((κ − m_max)/ν)(1 + 1/(K − 1)) < 0, while the proper core's is zero.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.compilation import quick_jit
from pgeom.paper import margin
from proofs_numeric.check import Check, agreement, lower_bound

COUNTEREXAMPLE = -0.308687  # as printed; to 1e-6
CLOSE = 1e-7  # e, of the limit
DRAWS = 16
UNIVERSAL = "beyond the paper: no β > 0 is proper, whatever K, τ, κ and ν"


def stated_derivative() -> float:
    """The paper's expression for the derivative of the counterexample."""
    sigma = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    return -2 * 0.8 * sigma(-0.6) + 2 * 0.2 * sigma(0.6)


def stated_limit(K: int, tau, kappa, nu):
    """−σ((κ − m_max)/ν)(1 + 1/(K − 1))."""
    m_max = 1 - tau * np.log(K - 1)
    return -(1 + 1 / (K - 1)) / (1 + np.exp(-(kappa - m_max) / nu))


def checks(
    K: int,
    *,
    penalty: Callable = margin.penalty,
    derivative: Callable = stated_derivative,
    limit: Callable = stated_limit,
) -> list[Check]:
    """The counterexample (K = 2) and the limit, with the formulas under test."""
    rows = check_limit(K, penalty, limit)
    return (check_counterexample(penalty, derivative) if K == 2 else []) + rows


def check_counterexample(penalty, derivative) -> list[Check]:
    """The derivative in x of E_η r((x, 1 − x), Y) at x = 0.8, κ = 0, ν = 1."""
    slope = float(_slopes(2, np.array([[0.1, 0.0, 1.0]]), 0.2, penalty)[0])
    label, how = "App. (not proper)", f"autodiff gives {slope:.9f}"
    return [
        agreement(
            "derivative is −0.308687 ± 1e-6",
            label,
            error=abs(slope - COUNTEREXAMPLE),
            tolerance=1e-6,
            how=how,
        ),
        agreement(
            "derivative is as stated",
            label,
            error=abs(slope - derivative()),
            tolerance=1e-12,
            how=f"{how}, the formula {derivative():.9f}",
        ),
    ]


def check_limit(K: int, penalty, limit) -> list[Check]:
    """The limit at e = 1e-7 for random τ, κ, ν, and that it is never zero."""
    rng = np.random.default_rng([9, K])
    tau, nu = 10 ** rng.uniform(-1.5, -0.7, DRAWS), 10 ** rng.uniform(-1, 0.5, DRAWS)
    parameters = np.stack([tau, rng.uniform(-0.5, 2, DRAWS), nu], axis=1)
    slopes = np.asarray(_slopes(K, parameters, CLOSE, penalty))
    expected = np.array([limit(K, *row) for row in parameters])
    # the derivative changes by at most the curvature 1/τ + 1/ν over a distance of the order e
    tolerance = 10 * CLOSE * np.max(1 / tau + 1 / nu)
    how = f"K={K}: {DRAWS} random τ, κ, ν at 1 − η_y = {CLOSE:g}"
    return [
        agreement(
            "slope → −σ((κ−m_max)/ν)(1+1/(K−1))",
            UNIVERSAL,
            error=np.abs(slopes - expected),
            tolerance=tolerance,
            how=how,
        ),
        lower_bound(
            "slope < 0, never zero",
            UNIVERSAL,
            observed=np.min(slopes / expected),
            sharp=0.5,
            how=f"{how}, relative to the limit",
        ),
    ]


def _slopes(K: int, parameters: np.ndarray, e: float, penalty) -> jax.Array:
    """The derivative of E_η r(p, Y) along e₁ − e₂ at p = η = (1 − e)e₁ + e·e₂, `[n]`."""
    eta = jnp.zeros(K).at[:2].set(jnp.array([1 - e, e]))
    direction = jnp.zeros(K).at[:2].set(jnp.array([1.0, -1.0]))

    @quick_jit
    @jax.vmap
    def one(parameters):
        tau, kappa, nu = parameters

        def risk(p):
            stacked = jnp.broadcast_to(p, (K, K))
            return jnp.dot(eta, penalty(stacked, jnp.arange(K), tau=tau, kappa=kappa, nu=nu))

        return jax.jvp(risk, (eta,), (direction,))[1]

    return one(jnp.asarray(parameters))
