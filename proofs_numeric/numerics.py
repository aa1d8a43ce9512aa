"""The computed scores: float32 values and gradients next to a vertex, and at exact zeros.

The reference is independent of the library: ∫₀¹ (1 − t) dᵀH(p + td)d dt in float64, by 64 nodes of
Gauss–Legendre, and J H(p)(p − e_y), from the same float32 logits.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.numpy.linalg import norm

from pgeom import simplex
from pgeom.compilation import quick_jit
from pgeom.generators import Tsallis, shannon
from pgeom.scores import bregman_score, on_logits
from pgeom.types import Generator, Loss
from proofs_numeric.claims import Cases, Claim, Family
from proofs_numeric.configurations import float64, hyperbolics, quadratics

FLOAT32 = "arithmetic in float32"
DISTANCES = 10.0 ** -np.arange(1, 8)  # δ = 1 − p_y
SPLITS = 6  # ways to divide δ among the competitors
NODES = 64
ZEROS = Claim("finite at exact zeros", FLOAT32, "broken ~ 0", how="logits ±300")


class Plain:
    """A generator stripped of its closed forms: what a user's function looks like."""

    def __init__(self, generator):
        self.generator = generator

    def __call__(self, p):
        return self.generator(p)


def library_loss(F) -> Loss:
    """The loss on logits as the library makes it."""
    return on_logits(bregman_score(F))


def near_vertex_logits(K: int) -> np.ndarray:
    """Logits `[n, K]`, float32, whose softmax is at each distance from the vertex of class 0.

    The last two put every mass but one at exact zero: on class 0, and on another.
    """
    rng = np.random.default_rng([13, K])
    shares = rng.dirichlet(np.ones(K - 1), (len(DISTANCES), SPLITS))
    odds = np.log(DISTANCES / (1 - DISTANCES))[:, None, None]
    near = np.pad(odds + np.log(shares), ((0, 0), (0, 0), (1, 0))).reshape(-1, K)
    extreme = 600 * np.eye(K)[:2] - 300
    return np.concatenate([near, extreme]).astype(np.float32)


def reference(F: Generator, z: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The loss of label 0 and its gradient in `z[K]`, by the integral and Eq. (prob-gradient)."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    left, weights = ((1 - nodes) / 2) ** 2, weights * ((1 - nodes) / 2) ** 3  # graded to the vertex
    p = jax.nn.softmax(z)
    target = simplex.vertex(0, p.shape[0], p.dtype)
    d = simplex.displacement(target, p, target)

    def push(x):
        return jax.jvp(jax.grad(F), (x,), (d,))[1]

    integrand = jax.vmap(lambda rest: d @ push(target - rest * d))(jnp.asarray(left))
    slope = -push(p)
    return weights @ integrand, p * (slope - (p @ slope))


def computed(loss: Loss, logits):
    """Values `[n]` and logit gradients `[n, K]` of the label 0."""
    return jax.vmap(jax.value_and_grad(lambda z: loss(z, jnp.array(0))))(logits)


def measure(cases: Cases, loss: Callable = library_loss, plain: bool = False) -> dict:
    """Errors for δ from 0.1 to 1e-7, the least loss, and what is not finite at exact zeros."""

    def one(F, logits, near):
        exact, exact_slope = jax.vmap(partial(reference, F))(near)

        def compare(prefix, F):
            values, slopes = computed(loss(F), logits)
            finite = jnp.isfinite(values) & jnp.all(jnp.isfinite(slopes), axis=1)
            value, slope = (x[:-2].astype(near.dtype) for x in (values, slopes))
            miss = norm(slope - exact_slope, axis=1)
            return {
                f"{prefix}error": jnp.max(jnp.abs(value - exact) / exact),
                f"{prefix}miss": jnp.max(miss / norm(exact_slope, axis=1)),
                f"{prefix}negative": -jnp.min(value),
                f"{prefix}broken": jnp.mean((~finite).astype(near.dtype)),
            }

        return compare("", F) | (compare("plain_", Plain(F)) if plain else {})

    logits = near_vertex_logits(cases.K)
    return cases.map(one, logits, logits[:-2].astype(np.float64))


def measure_plain(cases: Cases, loss: Callable = library_loss) -> dict:
    """The same also of functions that offer no closed form, by the library's quadrature."""
    return measure(cases, loss=loss, plain=cases.K > 2)  # nothing about them is special to two


def measure_shannon(cases: Cases, loss: Callable = library_loss) -> dict:
    """Cross-entropy, whose generator has an infinite slope at the boundary."""
    results = quick_jit(partial(computed, loss(shannon)))(near_vertex_logits(cases.K))
    return {"broken": np.mean([not np.all(np.isfinite(x)) for x in results])}


def float32_claims(prefix: str = "", **limits) -> tuple[Claim, ...]:
    how = f"{prefix.strip('_') or 'its own form'}, 1 − p_y = 1e-1 … 1e-7"
    return (
        Claim("float32 loss: relative error", FLOAT32, f"{prefix}error ~ 1e-5", how=how, **limits),
        Claim(
            "float32 logit gradient: relative error",
            FLOAT32,
            f"{prefix}miss ~ 5e-6",
            how=how,
            **limits,
        ),
        Claim("float32 loss ≥ 0 (−min ℓ)", FLOAT32, f"{prefix}negative ≤ 0", how=how, **limits),
        ZEROS._replace(relation=f"{prefix}broken ~ 0", **limits),
    )


def naive_loss(F):
    def loss(z, label):
        p, e_y = jax.nn.softmax(z), (jnp.arange(z.shape[-1]) == label).astype(z.dtype)
        return F(e_y) - F(p) - (jax.grad(F)(p) @ (e_y - p))

    return loss


def without_gauge(F):
    return lambda z, label: bregman_score(F)(jax.nn.softmax(z), label)


FALSE = {"naive form": {"loss": naive_loss}, "missing gauge": {"loss": without_gauge}}
METRICS = Family(
    lambda K: quadratics(K).select("seed 0|random|extremal"), measure, float32_claims(), false=FALSE
)
RIDGES = Family(
    hyperbolics,
    measure_plain,
    # as plain functions those ridges that twelve nodes resolve
    (*float32_claims(), *float32_claims("plain_", on="HPG experiments|one ridge", least=3)),
    false=FALSE,
)
ALPHAS = Family(
    lambda K: Cases(
        K, {f"Tsallis α={alpha}": Tsallis(float64(alpha)) for alpha in (0.5, 1.5, 2.5)}
    ),
    measure,
    float32_claims(),
    classes=range(3, 33),
)
SHANNON = Family(
    lambda K: Cases(K, {"Shannon": 0.0}), measure_shannon, (ZEROS,), classes=range(3, 33)
)
FAMILIES = METRICS, RIDGES, ALPHAS, SHANNON
