"""How far a margin penalty moves the conditional target of a proper score, Theorem (apms).

    p*_β ∈ argmin_p D_F(η, p) + β ρ(p),    ρ(p) = E_{Y∼η} r(p, Y)

D_F(η, ·) need not be convex, so that the minimiser is sought from many starts. The bounds are the
paper's two, a sharper one, and one from below.

>>> import jax, jax.numpy as jnp
>>> from pgeom.geometry.curvature import envelope
>>> from pgeom.geometry.generators import quadratic
>>> F, eta = quadratic(jnp.eye(2)), jnp.array([0.8, 0.2])
>>> penalty = Penalty(tau=0.1, kappa=0.2, nu=0.1)
>>> found = jax.jit(minimise)(F, eta, penalty, beta=0.1, step=0.4, starts=jnp.eye(2))
>>> bounds = displacement_bounds(envelope(F, 2), 0.0, eta, penalty, beta=0.1)
>>> bool(bounds.lower < jnp.linalg.norm(found.point - eta) < bounds.cone < bounds.linear)
True
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from pgeom.geometry import margin, simplex
from pgeom.geometry.bregman import bregman_divergence
from pgeom.geometry.curvature import Envelope
from pgeom.types import Generator

STEPS = 3000
SETTLED = 1e-14  # the movement of a step, in every start, at which the descent ends


class Penalty(NamedTuple):
    """τ > 0, κ and ν > 0 of the margin penalty, Eq. (apms-penalty)."""

    tau: jax.Array | float
    kappa: jax.Array | float
    nu: jax.Array | float


class Minimum(NamedTuple):
    """The lowest of the points that descents from several starts ended in.

    Attributes:
      point: `[K]`.
      value: D_F(η, point) + β ρ(point).
      residual: how much the last step moved this point.
      ends: `[n, K]`, where each start led.
      values: `[n]`, the objective there.
    """

    point: jax.Array
    value: jax.Array
    residual: jax.Array
    ends: jax.Array
    values: jax.Array


class DisplacementBounds(NamedTuple):
    """Bounds on ‖p*_β − η‖₂; `lower` holds where p*_β is interior.

    `unique` certifies that the objective has one stationary point only.
    """

    square_root: jax.Array
    linear: jax.Array
    cone: jax.Array
    lower: jax.Array
    unique: jax.Array


def expected_penalty(p: jax.Array, eta: jax.Array, penalty: Penalty) -> jax.Array:
    """ρ(p) = E_{Y∼η} r(p, Y), of `p[K]` and `eta[K]`; convex in p."""
    K = p.shape[-1]
    values = margin.penalty(jnp.broadcast_to(p, (K, K)), jnp.arange(K), **penalty._asdict())
    return jnp.dot(eta, values)


def penalised_regret(F: Generator, p, eta, penalty: Penalty, *, beta) -> jax.Array:
    """D_F(η, p) + β ρ(p), the conditional risk of APMS less that of its core at η."""
    return bregman_divergence(F)(eta, p) + beta * expected_penalty(p, eta, penalty)


def safe_step(found: Envelope, lipschitz, penalty: Penalty, *, beta) -> jax.Array | float:
    """1/(M + √2 L_H + β(1/(2ν) + 1/(2τ))): one over the largest curvature of the objective."""
    return 1 / (found.M + math.sqrt(2) * lipschitz + beta * _penalty_curvature(penalty))


def minimise(
    F: Generator, eta: jax.Array, penalty: Penalty, *, beta, step, starts: jax.Array
) -> Minimum:
    """Minimise D_F(η, p) + β ρ(p) over the simplex by accelerated projected descent.

    The step is fixed: a line search on values stalls where they round, at a distance of 1e-8.

    Args:
      F: a generator, defined around the simplex too, where extrapolation may lead.
      eta: the conditional distribution, `[K]`.
      penalty: its parameters.
      beta: β ≥ 0.
      step: see `safe_step`.
      starts: `[n, K]`.

    Returns:
      A `Minimum`.
    """

    def slope(p):
        # H(p)(p − η) from F itself: the divergence is not differentiable where p_k is 0
        core = jax.jvp(jax.grad(F), (p,), (p - eta,))[1]
        return core + beta * jax.grad(expected_penalty)(p, eta, penalty)

    ends, moved = _descend(jax.vmap(slope), starts, step)
    values = jax.vmap(lambda p: penalised_regret(F, p, eta, penalty, beta=beta))(ends)
    best = jnp.argmin(values)
    return Minimum(ends[best], values[best], moved[best], ends, values)


def displacement_bounds(
    found: Envelope, lipschitz, eta: jax.Array, penalty: Penalty, *, beta
) -> DisplacementBounds:
    """The paper's bounds √(2βC_r/m) and √2β/m, and sharper ones.

    With g = ∇ρ(η), ρ convex and d = p* − η, optimality gives dᵀH(p*)d ≤ −βgᵀd, and d lies in the
    cone {x : Σx = 0, x_k ≥ 0 where η_k = 0}; hence ‖d‖ ≤ (β/m_T)‖P_cone(−g)‖. At an interior p*,
    H(p*)d + β∇ρ(p*) vanishes on the tangent space, and a Lipschitz bound on ∇ρ gives
    ‖d‖ ≥ β‖Πg‖/(M_T + β(1/(2ν) + 1/(2τ))). Within that radius of η the objective is convex if
    radius times `lipschitz` is less than m_T, and every stationary point is within it.

    Args:
      found: the curvature envelope of F.
      lipschitz: of its tangent Hessian.
      eta: `[K]`.
      penalty: its parameters.
      beta: β ≥ 0.
    """
    _, largest = margin.penalty_range(eta.shape[-1], **penalty._asdict())
    pull = -jax.grad(expected_penalty)(eta, eta, penalty)
    cone = beta / found.m_tangent * jnp.linalg.norm(project_cone(pull, eta))
    tangent = jnp.linalg.norm(pull - jnp.mean(pull))
    return DisplacementBounds(
        square_root=jnp.sqrt(2 * beta * largest / found.m),
        linear=math.sqrt(2) * beta / found.m,
        cone=cone,
        lower=beta * tangent / (found.M_tangent + beta * _penalty_curvature(penalty)),
        unique=cone * lipschitz < found.m_tangent,
    )


def project_cone(z: jax.Array, eta: jax.Array) -> jax.Array:
    """The nearest point to `z[K]` of {x : Σx = 0, x_k ≥ 0 where η_k = 0}, the feasible directions.

    It is z − θ, cut at 0 where η_k = 0; θ is the largest mean of z over the support of η and any
    of the other classes, because the sum that must vanish is the largest of linear functions.
    """
    at_zero = eta <= 0
    others = jnp.sort(jnp.where(at_zero, z, -jnp.inf), descending=True)
    taken = jnp.arange(1, z.shape[-1] + 1, dtype=z.dtype)
    free, count = jnp.sum(jnp.where(at_zero, 0.0, z)), jnp.sum(~at_zero).astype(z.dtype)
    theta = jnp.maximum(free / count, jnp.max((free + jnp.cumsum(others)) / (count + taken)))
    return jnp.where(at_zero, jnp.maximum(z - theta, 0.0), z - theta)


def _penalty_curvature(penalty: Penalty):
    """1/(2ν) + 1/(2τ) ≥ ∇²r: softplus and log-sum-exp each contribute half a reciprocal."""
    return 1 / (2 * penalty.nu) + 1 / (2 * penalty.tau)


class _State(NamedTuple):
    points: jax.Array
    ahead: jax.Array
    momentum: jax.Array
    moved: jax.Array
    step: jax.Array


def _descend(slopes, starts: jax.Array, length) -> tuple[jax.Array, jax.Array]:
    """FISTA with gradient restart from each start `[n, K]`: the ends, and how much each moved."""

    def one(state: _State) -> _State:
        points = simplex.project(state.ahead - length * slopes(state.ahead))
        travel = points - state.points
        uphill = jnp.sum((state.ahead - points) * travel, axis=1) > 0
        momentum = jnp.where(uphill, 1.0, state.momentum)
        following = (1 + jnp.sqrt(1 + 4 * momentum**2)) / 2
        ahead = points + ((momentum - 1) / following)[:, None] * travel
        moved = jnp.max(jnp.abs(points - state.ahead), axis=1)
        return _State(points, ahead, following, moved, state.step + 1)

    def going(state: _State):
        return (state.step < STEPS) & jnp.any(state.moved > SETTLED)

    count, infinite = starts.shape[0], jnp.asarray(jnp.inf, starts.dtype)
    first = _State(
        starts,
        starts,
        jnp.ones(count, starts.dtype),
        jnp.broadcast_to(infinite, (count,)),
        jnp.zeros((), jnp.int32),
    )
    last = jax.lax.while_loop(going, one, first)
    return last.points, last.moved
