"""The paper's three objectives: CAPM, HPG and APMS.

>>> import jax.numpy as jnp
>>> loss = capm(jnp.diag(jnp.array([1.0, 2.0, 3.0])))
>>> loss(jnp.zeros(3), jnp.array(0))  # ½ (e_y − p)ᵀA(e_y − p)
Array(0.5, dtype=float32)
"""

from collections.abc import Callable

import jax
from jax.typing import ArrayLike

from pgeom import checks
from pgeom.generators import hyperbolic, quadratic
from pgeom.paper import margin
from pgeom.pickling import picklable
from pgeom.scores import bregman_score, on_logits
from pgeom.simplex import softmax
from pgeom.types import Generator, Labels, Loss, Numbers, Values, Vectors


def capm(A: Numbers) -> Loss:
    """The class-aware quadratic loss ½ (e_y − p)ᵀA(e_y − p), Eq. (capm-loss)."""
    return on_logits(bregman_score(quadratic(A)))


def hpg(
    *, lam: ArrayLike, a: Numbers, rho: Numbers, w: Numbers, b: Numbers, scale: ArrayLike = 1.0
) -> Loss:
    """The hyperbolic proper loss: the score of the log-cosh ridges of Eq. (hpg-generator)."""
    return on_logits(bregman_score(hyperbolic(lam=lam, a=a, rho=rho, w=w, b=b, scale=scale)))


@picklable
def apms(
    F: Generator,
    *,
    tau: ArrayLike,
    kappa: ArrayLike,
    nu: ArrayLike,
    beta0: ArrayLike,
    horizon: ArrayLike,
    power: ArrayLike = 1.0,
) -> Callable[[Vectors, Labels, ArrayLike], Values]:
    """The score of F with an annealed margin penalty, Eq. (apms-loss).

    ℓ_F(p, y) + β_t r(p, y),  β_t = β₀(1 − min(t/T_s, 1))^q. For β_t > 0 it is not proper.

    Args:
      F: the generator of the proper core.
      tau: τ > 0, the smoothing of the margin.
      kappa: κ, the required margin.
      nu: ν > 0, the softness of the penalty.
      beta0: β₀ ≥ 0.
      horizon: T_s > 0, in steps.
      power: q > 0.

    Returns:
      `loss(logits[..., K], labels, step) -> [...]`; labels `[...]`, or soft targets `[..., K]`.
    """
    for name, value in {"tau": tau, "nu": nu, "horizon": horizon, "power": power}.items():
        checks.check_positive(name, value)
    checks.check_nonnegative("beta0", beta0)
    core, constants = on_logits(bregman_score(F)), {"tau": tau, "kappa": kappa, "nu": nu}

    def label_penalties(logits, labels):
        return margin.penalty(jax.vmap(softmax)(logits), labels, **constants)

    def target_penalties(logits, targets):
        return margin.expected_penalty(jax.vmap(softmax)(logits), targets, **constants)

    penalty = checks.lift_targets(label_penalties, target_penalties)

    def loss(logits, labels, step):
        beta = margin.anneal(step, beta0=beta0, horizon=horizon, power=power)
        values = core(logits, labels)
        return values + beta.astype(values.dtype) * penalty(logits, labels)

    return loss
