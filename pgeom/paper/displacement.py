"""How far a margin penalty moves the conditional target of a proper score, Theorem (apms).

    p*_β ∈ argmin_p D_F(η, p) + β ρ(p),    ρ(p) = E_{Y∼η} r(p, Y)

D_F(η, ·) need not be convex, so the minimiser is sought from many starts. The bounds are the two of
the paper, a sharper one, and a lower bound.

>>> import jax, jax.numpy as jnp
>>> from pgeom.diagnosis.curvature import envelope
>>> from pgeom.generators import quadratic
>>> F, eta = quadratic(jnp.eye(2)), jnp.array([0.8, 0.2])
>>> penalty = Penalty(tau=0.1, kappa=0.2, nu=0.1)
>>> minimum = jax.jit(minimise)(F, eta, penalty, beta=0.1, step=0.4, starts=jnp.eye(2))
>>> bounds = displacement_bounds(envelope(F, 2), 0.0, eta, penalty, beta=0.1)
>>> bool(bounds.lower < jnp.linalg.norm(minimum.point - eta) < bounds.cone < bounds.linear)
True
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from pgeom import simplex
from pgeom.diagnosis.curvature import Envelope
from pgeom.paper import margin
from pgeom.scores import bregman_divergence
from pgeom.types import Generator, Point

STEPS = 3000
SETTLED = 1e-14  # the descent ends when no start moves more than this in a step


class Penalty(NamedTuple):
    """τ > 0, κ and ν > 0 of the margin penalty, Eq. (apms-penalty)."""

    tau: ArrayLike
    kappa: ArrayLike
    nu: ArrayLike


class Minimum(NamedTuple):
    """The lowest of the points reached by descents from several starts.

    Attributes:
      point: the minimiser, `[K]`.
      value: D_F(η, point) + β ρ(point).
      residual: the distance that the last step moved this point.
      ends: the points reached from each start, `[n, K]`.
      values: the objective there, `[n]`.
    """

    point: Array
    value: Array
    residual: Array
    ends: Array
    values: Array


class DisplacementBounds(NamedTuple):
    """Bounds on ‖p*_β − η‖₂; `lower` holds if p*_β is interior.

    `unique` certifies that the objective has only one stationary point.
    """

    square_root: Array
    linear: Array
    cone: Array
    lower: Array
    unique: Array


def expected_penalty(p: Point, eta: Point, penalty: Penalty) -> Array:
    """ρ(p) = E_{Y∼η} r(p, Y), convex in p."""
    return margin.expected_penalty(p, eta, **penalty._asdict())


def penalised_regret(
    F: Generator,
    p: Point,
    eta: Point,
    penalty: Penalty,
    *,
    beta: ArrayLike,
) -> Array:
    """D_F(η, p) + β ρ(p), the conditional risk of APMS minus that of its core at η."""
    return bregman_divergence(F)(eta, p) + beta * expected_penalty(p, eta, penalty)


def safe_step(
    envelope: Envelope, lipschitz: ArrayLike, penalty: Penalty, *, beta: ArrayLike
) -> ArrayLike:
    """1/(M + √2 L_H + β(1/(2ν) + 1/(2τ))): one over a bound on the objective's curvature."""
    return 1 / (envelope.M + math.sqrt(2) * lipschitz + beta * _penalty_curvature(penalty))


def minimise(
    F: Generator,
    eta: Point,
    penalty: Penalty,
    *,
    beta: ArrayLike,
    step: ArrayLike,
    starts: Array,
) -> Minimum:
    """Minimise D_F(η, p) + β ρ(p) over the simplex by accelerated projected descent.

    The step is fixed, because a line search stalls when the values round, at a distance of 1e-8.

    Args:
      F: a generator, defined also just outside the simplex, where extrapolation may lead.
      eta: the conditional distribution.
      penalty: its parameters.
      beta: β ≥ 0.
      step: see `safe_step`.
      starts: initial points, `[n, K]`.
    """

    def slope(p):
        # H(p)(p − η) directly from F, because the divergence is not differentiable where p_k is 0
        core = jax.jvp(jax.grad(F), (p,), (p - eta,))[1]
        return core + beta * jax.grad(expected_penalty)(p, eta, penalty)

    ends, moved = _descend(jax.vmap(slope), starts, step)
    values = jax.vmap(lambda p: penalised_regret(F, p, eta, penalty, beta=beta))(ends)
    best = jnp.argmin(values)
    return Minimum(ends[best], values[best], moved[best], ends, values)


def displacement_bounds(
    envelope: Envelope,
    lipschitz: ArrayLike,
    eta: Point,
    penalty: Penalty,
    *,
    beta: ArrayLike,
) -> DisplacementBounds:
    """The paper's bounds √(2βC_r/m) and √2β/m, and sharper ones.

    With g = ∇ρ(η), ρ convex and d = p* − η, optimality gives dᵀH(p*)d ≤ −βgᵀd, and d lies in the
    cone {x : Σx = 0, x_k ≥ 0 where η_k = 0}; hence ‖d‖ ≤ (β/m_T)‖P_cone(−g)‖. At an interior p*,
    H(p*)d + β∇ρ(p*) vanishes on the tangent space, and a Lipschitz bound on ∇ρ gives
    ‖d‖ ≥ β‖Πg‖/(M_T + β(1/(2ν) + 1/(2τ))). Every stationary point is within the radius of the cone
    bound, and the objective is convex there if the radius times `lipschitz` is less than m_T.

    Args:
      envelope: the curvature envelope of F.
      lipschitz: the Lipschitz constant of its tangent Hessian.
      eta: the conditional distribution.
      penalty: its parameters.
      beta: β ≥ 0.
    """
    _, largest = margin.penalty_range(eta.shape[-1], **penalty._asdict())
    pull = -jax.grad(expected_penalty)(eta, eta, penalty)
    cone = beta / envelope.m_tangent * jnp.linalg.norm(project_cone(pull, eta))
    tangent = jnp.linalg.norm(pull - jnp.mean(pull))
    return DisplacementBounds(
        square_root=jnp.sqrt(2 * beta * largest / envelope.m),
        linear=jnp.asarray(math.sqrt(2) * beta / envelope.m),
        cone=cone,
        lower=beta * tangent / (envelope.M_tangent + beta * _penalty_curvature(penalty)),
        unique=cone * lipschitz < envelope.m_tangent,
    )


def project_cone(z: Point, eta: Point) -> Point:
    """The nearest feasible direction to z: projection on {x : Σx = 0, x_k ≥ 0 where η_k = 0}.

    It is z − θ, clipped at 0 where η_k = 0; θ is the largest mean of z over the support of η and
    any subset of the other classes, because the sum that must vanish is a maximum of linear
    functions.
    """
    at_zero, (K,) = eta <= 0, z.shape
    others = jnp.sort(jnp.where(at_zero, z, -jnp.inf), descending=True)
    sums = jnp.cumsum(jnp.append(jnp.sum(jnp.where(at_zero, 0.0, z)), others))
    theta = jnp.max(sums / (jnp.sum(~at_zero) + jnp.arange(K + 1)).astype(z.dtype))
    return jnp.where(at_zero, jnp.maximum(z - theta, 0.0), z - theta)


def _penalty_curvature(penalty: Penalty):
    """1/(2ν) + 1/(2τ) ≥ ∇²r: softplus and log-sum-exp each contribute half a reciprocal."""
    return 1 / (2 * penalty.nu) + 1 / (2 * penalty.tau)


class _State(NamedTuple):
    points: Array
    ahead: Array
    momentum: Array
    moved: Array
    steps: Any


def _descend(slopes, starts: Array, length: ArrayLike) -> tuple[Array, Array]:
    """FISTA with gradient restart from each start `[n, K]`: the ends, and the last movements."""

    def descend(state: _State) -> _State:
        points = simplex.project(state.ahead - length * slopes(state.ahead))
        travel = points - state.points
        uphill = jnp.sum((state.ahead - points) * travel, axis=1) > 0
        momentum = jnp.where(uphill, 1.0, state.momentum)
        following = (1 + jnp.sqrt(1 + 4 * momentum**2)) / 2
        ahead = points + ((momentum - 1) / following)[:, None] * travel
        moved = jnp.max(jnp.abs(points - state.ahead), axis=1)
        return _State(points, ahead, following, moved, state.steps + 1)

    def unsettled(state: _State):
        return (state.steps < STEPS) & jnp.any(state.moved > SETTLED)

    ones = jnp.ones(len(starts), starts.dtype)
    last = jax.lax.while_loop(unsettled, descend, _State(starts, starts, ones, ones, 0))
    return last.points, last.moved
