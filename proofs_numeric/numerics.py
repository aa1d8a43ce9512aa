"""The computed scores: float32 values and gradients next to a vertex, and at exact zeros.

The reference is independent of the library: ∫₀¹ (1 − t) dᵀH(p + td)d dt in float64, by 64 nodes of
Gauss–Legendre, and J H(p)(p − e_y), from the same float32 logits.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import simplex
from pgeom.compilation import quick_jit
from pgeom.generators import Tsallis, shannon
from pgeom.scores import bregman_score, on_logits
from pgeom.types import Generator, Loss
from proofs_numeric import configurations
from proofs_numeric.check import Check, agreement, check_each, finiteness, upper_bound
from proofs_numeric.configurations import Configurations, stack
from proofs_numeric.failures import FLOAT32
from proofs_numeric.instances import float64

DISTANCES = 10.0 ** -np.arange(1, 8)  # δ = 1 − p_y
SPLITS = 6  # ways to divide δ among the competitors
VALUE, GRADIENT = 1e-5, 5e-6  # the relative errors allowed
NODES = 64


class Plain:
    """A generator stripped of its closed forms: what a user's function looks like."""

    def __init__(self, generator):
        self.generator = generator

    def __call__(self, p):
        return self.generator(p)


def library_loss(F) -> Loss:
    """The loss on logits as the library makes it."""
    return on_logits(bregman_score(F))


def plain_loss(loss: Callable) -> Callable:
    """`loss`, of generators whose closed forms are hidden from it."""
    return lambda F: loss(Plain(F))


def checks(K: int, *, loss: Callable = library_loss) -> list[Check]:
    """Every check of the computed scores on K classes, with the loss under test."""
    metrics, ridges = configurations.quadratics(K), configurations.hyperbolics(K)
    metrics = metrics.select("seed 0", "random", "extremal")
    alphas = {f"Tsallis α={alpha}": Tsallis(float64(alpha)) for alpha in (0.5, 1.5, 2.5)}
    rows = [*check_near_vertices(metrics, loss), *check_near_vertices(ridges, loss)]
    if K == 2:  # nothing about the others is special to two classes, and each is a compilation
        return rows
    return [
        *rows,
        *check_near_vertices(stack(K, alphas), loss),
        *check_plain_functions(ridges, loss),
        *check_shannon(K, loss),
    ]


def check_near_vertices(cases: Configurations, loss, *, how: str = "its own form") -> list[Check]:
    """float32 against the reference for δ from 0.1 to 1e-7, and finite where p_j underflows."""
    logits = near_vertex_logits(cases.K)
    value, slope = map(np.asarray, _float32_losses(cases.stacked, logits, loss=loss))
    exact, exact_slope = map(np.asarray, _reference(cases.stacked, logits.astype(np.float64)))
    finite_share = np.isfinite(value) & np.isfinite(slope).all(axis=2)
    value, slope, exact, exact_slope = (x[:, :-2] for x in (value, slope, exact, exact_slope))
    error = np.max(np.abs(value - exact) / exact, axis=1)
    miss = np.linalg.norm(slope - exact_slope, axis=2) / np.linalg.norm(exact_slope, axis=2)
    claims = ("float32 loss: relative error", "float32 logit gradient: relative error")
    where = f"{how}, {logits.shape[0] - 2} logits, 1 − p_y = 1e-1 … 1e-7"
    negative, zeros = "float32 loss ≥ 0 (−min ℓ)", f"{how}, logits ±300"
    return [
        *check_each(agreement, claims[0], FLOAT32, cases, where, error=error, tolerance=VALUE),
        *check_each(
            agreement, claims[1], FLOAT32, cases, where, error=miss.max(axis=1), tolerance=GRADIENT
        ),
        *check_each(
            upper_bound, negative, FLOAT32, cases, where, observed=-value.min(axis=1), paper=0.0
        ),
        *check_each(
            agreement,
            "finite at exact zeros",
            FLOAT32,
            cases,
            zeros,
            error=1 - finite_share.mean(axis=1),
            tolerance=0.0,
        ),
    ]


def check_plain_functions(cases: Configurations, loss) -> list[Check]:
    """The same of a function that offers no closed form, by the library's quadrature.

    Only of ridges that twelve nodes resolve; all are evaluated, to compile no second reference.
    """
    rows = check_near_vertices(cases, plain_loss(loss), how="as a plain function")
    return [row for row in rows if "HPG experiments" in row.how or "one ridge" in row.how]


def check_shannon(K: int, loss) -> list[Check]:
    """Cross-entropy, whose generator has an infinite slope at the boundary."""
    logits = near_vertex_logits(K)
    value_and_slope = jax.value_and_grad(lambda z: loss(shannon)(z, jnp.array(0)))
    values = quick_jit(jax.vmap(value_and_slope))(logits)
    values = np.concatenate([np.ravel(value) for value in values])
    how = f"K={K}, Shannon: logits to ±300"
    return [finiteness("finite at exact zeros", FLOAT32, values=values, how=how)]


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


@partial(quick_jit, static_argnames="loss")
def _float32_losses(stacked, logits, *, loss):
    """Values `[c, n]` and logit gradients `[c, n, K]` of the label 0, as computed."""

    def one(F):
        return jax.vmap(jax.value_and_grad(lambda z: loss(F)(z, jnp.array(0))))(logits)

    return jax.vmap(one)(stacked)


@quick_jit
def _reference(stacked, logits):
    over_logits = jax.vmap(reference, in_axes=(None, 0))
    return jax.vmap(over_logits, in_axes=(0, None))(stacked, logits)


def reference(F: Generator, z: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The loss of label 0 and its gradient in `z[K]`, by the integral and Eq. (prob-gradient)."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    left, weights = ((1 - nodes) / 2) ** 2, weights * ((1 - nodes) / 2) ** 3  # graded to the vertex
    p = jax.nn.softmax(z)
    target = simplex.vertex(0, p.shape[0], p.dtype)
    d = simplex.displacement(target, p, target)

    def push(x):
        return jax.jvp(jax.grad(F), (x,), (d,))[1]

    integrand = jax.vmap(lambda rest: jnp.dot(d, push(target - rest * d)))(jnp.asarray(left))
    slope = -push(p)
    return jnp.dot(weights, integrand), p * (slope - jnp.dot(p, slope))
