"""Proper scores as losses on logits, and the paper's three objectives.

>>> import jax.numpy as jnp
>>> from pgeom.geometry.bregman import bregman_score
>>> def cubic(p): return jnp.sum(p**3)
>>> loss = on_logits(bregman_score(cubic))
>>> loss(jnp.array([[2.0, 0.0, 1.0]]), jnp.array([0]))
Array([0.29194], dtype=float32)
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from pgeom import edge
from pgeom.geometry import margin, simplex
from pgeom.geometry.bregman import bregman_score
from pgeom.geometry.generators import hyperbolic, quadratic, squared_norm
from pgeom.types import Generator, Loss, Score


def on_logits(score: Score, temperature=1.0) -> Loss:
    """A score of softmax(z/T), as a loss on the logits z.

    Args:
      score: `score(p[..., K], labels[...]) -> [...]`.
      temperature: T > 0.

    Returns:
      `loss(logits[..., K], labels[...]) -> [...]`.
    """
    edge.scalar("temperature", temperature)
    edge.positive("temperature", temperature)
    generator = getattr(score, "generator", None)
    of_logits = getattr(generator, "score_on_logits", None)
    of_softmax = getattr(score, "of_point", score)
    smooth = hasattr(generator, "divergence")  # up to the boundary, where others need a floor

    def example(logits, label):
        logits = logits / jnp.asarray(temperature, logits.dtype)
        if of_logits is not None:
            return of_logits(logits, label)
        return of_softmax(_softmax(logits, not smooth), label)

    return edge.over_examples(example)


def brier(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """Σ_k (p_k − e_{y,k})² (Brier, 1950).

    Args:
      logits: `[..., K]`.
      labels: `[...]`.

    Returns:
      `[...]`.
    """
    return on_logits(bregman_score(squared_norm))(logits, labels)


def capm(A) -> Loss:
    """The class-aware quadratic loss ½ (e_y − p)ᵀA(e_y − p), Eq. (capm-loss)."""
    return on_logits(bregman_score(quadratic(A)))


def hpg(*, lam, a, rho, w, b, scale=1.0) -> Loss:
    """The hyperbolic proper loss: the score of the log-cosh ridges of Eq. (hpg-generator)."""
    return on_logits(bregman_score(hyperbolic(lam=lam, a=a, rho=rho, w=w, b=b, scale=scale)))


def apms(
    F: Generator, *, tau, kappa, nu, beta0, horizon, power=1.0
) -> Callable[[jax.Array, jax.Array, jax.Array], jax.Array]:
    """The score of F with an annealed margin penalty, Eq. (apms-loss).

    ℓ_F(p, y) + β_t r(p, y),  β_t = β₀(1 − min(t/T_s, 1))^q. For β_t > 0 it is not proper.

    Args:
      F: the generator of the proper core.
      tau: τ > 0, the smoothing of the margin.
      kappa: κ, the margin asked for.
      nu: ν > 0, the softness of the penalty.
      beta0: β₀ ≥ 0.
      horizon: T_s > 0, in steps.
      power: q > 0.

    Returns:
      `loss(logits[..., K], labels[...], step) -> [...]`.
    """
    margin.check(tau=tau, nu=nu)
    margin.check_annealing(beta0=beta0, horizon=horizon, power=power)
    core = on_logits(bregman_score(F))

    def penalty(logits, label):
        return margin.penalty(jax.nn.softmax(logits), label, tau=tau, kappa=kappa, nu=nu)

    def loss(logits, labels, step):
        beta = margin.anneal(step, beta0=beta0, horizon=horizon, power=power)
        values = core(logits, labels)
        return values + beta.astype(values.dtype) * edge.over_examples(penalty)(logits, labels)

    return loss


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _softmax(logits: jax.Array, floored: bool) -> jax.Array:
    """softmax(z), moved inside the simplex where it is to be floored."""
    p = jax.nn.softmax(logits)
    return simplex.interior(p) if floored else p


@_softmax.defjvp
def _softmax_jvp(floored, primals, tangents):
    # By hand because next to a vertex the Jacobian takes off what a score's gradient has in common
    # over classes by a difference that loses every digit. Moving the entry next to one by minus
    # what the others move subtracts that class's component first, and exactly.
    (logits,), (logits_dot,) = primals, tangents
    p = _softmax(logits, floored)
    moved = p * (logits_dot - jnp.dot(p, logits_dot))
    dominant = p > 0.5
    others = jnp.where(dominant, 0.0, moved)
    return p, jnp.where(dominant, -jnp.sum(others), others)
