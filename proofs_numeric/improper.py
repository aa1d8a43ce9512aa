"""APMS with β > 0 is not proper: the penalty's conditional risk is not stationary at the truth.

The paper's counterexample, K = 2 and η = (0.8, 0.2), has the derivative

    −2(0.8)σ(−0.6) + 2(0.2)σ(0.6) = −0.308687…

and non-propriety is universal: at η = (1 − e)e_y + e·e_j the derivative along e_y − e_j tends, as
e → 0, to −σ((κ − m_max)/ν)(1 + 1/(K − 1)) < 0, while the proper core's is zero.
"""

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.paper import margin
from pgeom.paper.displacement import Penalty
from proofs_numeric.claims import Cases, Claim, Family
from proofs_numeric.configurations import float64

LABEL = "App. (not proper)"
UNIVERSAL = "beyond the paper: no β > 0 is proper, whatever K, τ, κ and ν"
CLOSE = 1e-7  # e, of the limit


def random_constants(K: int) -> Cases:
    """Sixteen random e, τ, κ and ν."""
    rng = np.random.default_rng([9, K])
    tau, nu, kappa = rng.uniform(-1.5, -0.7, 16), rng.uniform(-1, 0.5, 16), rng.uniform(-0.5, 2, 16)
    rows = np.stack([np.full(16, CLOSE), 10**tau, kappa, 10**nu], axis=1)
    return Cases(K, {f"τ={row[1]:.3g}, κ={row[2]:.3g}, ν={row[3]:.3g}": row for row in rows})


def measure(cases: Cases, penalty=margin.penalty) -> dict:
    """The derivative of E_η r(p, Y) along e₁ − e₂ at p = η = (1 − e)e₁ + e·e₂."""
    K = cases.K

    def one(case):
        e, constants = case[0], dict(zip(Penalty._fields, case[1:], strict=True))
        direction = jnp.zeros(K).at[:2].set(jnp.array([1.0, -1.0]))
        eta = jnp.zeros(K).at[0].set(1.0) - e * direction

        def risk(p):
            return eta @ penalty(jnp.broadcast_to(p, (K, K)), jnp.arange(K), **constants)

        return jax.jvp(risk, (eta,), (direction,))[1]

    slope, (_, tau, kappa, nu) = cases.map(one), np.array(list(cases.values.values())).T
    limit = -(1 + 1 / (K - 1)) * sigmoid((kappa - (1 - tau * np.log(K - 1))) / nu)
    # the derivative changes by at most the curvature 1/τ + 1/ν over a distance of the order e
    near = 10 * CLOSE * (1 / tau + 1 / nu)
    stated = -2 * 0.8 * sigmoid(-0.6) + 2 * 0.2 * sigmoid(0.6)
    return {"slope": slope, "stated": stated, "limit": limit, "near": near, "share": slope / limit}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def sign_of_the_margin(p, y, *, tau, kappa, nu):
    return nu * jax.nn.softplus((kappa + margin.smooth_margin(p, y, tau=tau)) / nu)


COUNTEREXAMPLE = Family(
    lambda K: Cases(K, {"τ=0.1, κ=0, ν=1, η=(0.8, 0.2)": float64([0.2, 0.1, 0.0, 1.0])}),
    measure,
    (
        Claim("derivative is −0.308687 ± 1e-6", LABEL, "slope ≈ -0.308687 ± 1e-6"),
        Claim("derivative is as stated", LABEL, "slope ≈ stated ± 1e-12"),
    ),
    how="autodiff",
    false={
        "sign of the margin": {"penalty": sign_of_the_margin, "classes": 2},
        "sign in the derivative": {
            "stated": lambda q: -1.6 * sigmoid(0.6) + 0.4 * sigmoid(-0.6),
            "classes": 2,
        },
    },
    classes=range(2, 3),
)
LIMIT = Family(
    random_constants,
    measure,
    (
        Claim("slope → −σ((κ−m_max)/ν)(1+1/(K−1))", UNIVERSAL, "slope ≈ limit ± near"),
        Claim("slope < 0, never zero", UNIVERSAL, "share ≥ 0.5", how="relative to the limit"),
    ),
    how=f"autodiff at 1 − η_y = {CLOSE:g}",
    false={"sign of the limit": {"limit": -1}},
    classes=range(2, 1001),
)
FAMILIES = COUNTEREXAMPLE, LIMIT
