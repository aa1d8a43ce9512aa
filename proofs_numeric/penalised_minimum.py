"""Conditional targets of APMS: the minima of `target_problems`, and what is known about them.

    p*_β ∈ argmin_p D_F(η, p) + β E_η r(p, Y)

Every problem is minimised from all starts at once, because D_F(η, ·) is not convex for HPG.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.compilation import quick_jit
from pgeom.diagnosis import bounds, curvature
from pgeom.paper import displacement
from pgeom.paper.displacement import DisplacementBounds, Minimum
from proofs_numeric import probes
from proofs_numeric.target_problems import Problem


class Facts(NamedTuple):
    """What a problem and its minimum are made of, by the library's functions and autodiff.

    Attributes:
      probe: the lowest objective at a probe.
      gaps: max_v ⟨∇f(p), p − v⟩ over the simplex at every end, zero where p is stationary.
      divergence: D(η, p*).
      decrease: E_η r(η, Y) − E_η r(p*, Y).
      largest: the largest penalty at a vertex.
      hessian: H(η), `[K, K]`.
      slope: the gradient of E_η r at η, `[K]`.
    """

    probe: jax.Array
    gaps: jax.Array
    divergence: jax.Array
    decrease: jax.Array
    largest: jax.Array
    hessian: jax.Array
    slope: jax.Array


class Solved(NamedTuple):
    """A problem, its global minimum, its bounds, its tangent envelope and the facts about it."""

    problem: Problem
    minimum: Minimum
    bounds: DisplacementBounds
    m_tangent: float
    facts: Facts

    @property
    def distance(self) -> float:
        return float(np.linalg.norm(self.minimum.point - self.problem.eta))

    @property
    def farthest(self) -> float:
        """The largest distance from η at which any start ended."""
        return float(np.linalg.norm(self.minimum.ends - self.problem.eta, axis=1).max())

    @property
    def linear(self) -> float:
        """√2β/m, the linear bound of the paper."""
        return float(np.asarray(self.bounds.linear))

    @property
    def how(self) -> str:
        return f"K={len(self.problem.eta)}, {self.problem.name}: {describe_ends(self)}"


def all_starts(eta: np.ndarray) -> np.ndarray:
    """η, the centre, every vertex and eight draws, `[K + 10, K]`."""
    K = len(eta)
    draws = np.random.default_rng([11, K]).dirichlet(np.ones(K), 8)
    return np.concatenate([eta[None], np.full((1, K), 1 / K), np.eye(K), draws])


def solve(
    problems: list[Problem],
    displacement_bounds: Callable,
    starts: Callable,
    minimise: Callable = displacement.minimise,
) -> list[Solved]:
    """Every problem at once: the minimum from all starts, the bounds, and the facts."""
    K = len(problems[0].eta)
    envelopes = [curvature.envelope(one.F, K) for one in problems]
    lipschitz = [bounds.hessian_lipschitz(one.F, K) for one in problems]
    steps = [
        displacement.safe_step(envelope, L.paper, one.penalty, beta=one.beta)
        for one, envelope, L in zip(problems, envelopes, lipschitz, strict=True)
    ]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *[one[1:] for one in problems])
    numbers = np.array(
        [[*envelope[:4], L.sharp] for envelope, L in zip(envelopes, lipschitz, strict=True)]
    )
    grid = probes.points(K, count=100) if K > 2 else _segment()
    each = np.stack([starts(one.eta) for one in problems])
    minima, facts = _minimise(stacked, np.array(steps), each, grid, minimise=minimise)
    limits = _limits(stacked, numbers, displacement_bounds=displacement_bounds)
    results = jax.tree.map(np.asarray, (minima, limits, facts))
    solved = []
    for i, one in enumerate(problems):
        minimum, limit, fact = jax.tree.map(lambda leaf, i=i: leaf[i], results)
        solved.append(Solved(one, minimum, limit, float(envelopes[i].m_tangent), fact))
    return solved


def describe_ends(one: Solved) -> str:
    """Where the starts led: how many to the minimum, and where the others ended."""
    ends, values = one.minimum.ends, one.minimum.values
    there = np.abs(ends - one.minimum.point).max(axis=1) < 1e-6
    text = f"{there.sum()} of {len(ends)} starts led to ‖p*−η‖={one.distance:.4g}"
    if there.all():
        return text
    worst = float(np.max(values[~there] - one.minimum.value))
    return f"{text}, {(~there).sum()} to local minima up to {worst:.2g} higher"


def _segment() -> np.ndarray:
    x = np.linspace(0, 1, 4001)
    return np.stack([x, 1 - x], axis=1)


@partial(quick_jit, static_argnames="minimise")
def _minimise(stacked, steps, starts, grid, *, minimise):
    """The minimum of each problem, and the facts about it."""

    def one(problem, step, starts):
        F, eta, penalty, beta = problem
        minimum = minimise(F, eta, penalty, beta=beta, step=step, starts=starts)
        objective = partial(displacement.penalised_regret, F, eta=eta, penalty=penalty, beta=beta)
        risk = partial(displacement.expected_penalty, eta=eta, penalty=penalty)

        def gap(p):
            slope = jax.jvp(jax.grad(F), (p,), (p - eta,))[1] + beta * jax.grad(risk)(p)
            return jnp.dot(slope, p) - jnp.min(slope)

        K = eta.shape[0]
        vertices = jax.vmap(lambda e: displacement.expected_penalty(e, jnp.eye(K)[0], penalty))
        return minimum, Facts(
            probe=jnp.min(jax.vmap(objective)(grid)),
            gaps=jax.vmap(gap)(minimum.ends),
            divergence=minimum.value - beta * risk(minimum.point),
            decrease=risk(eta) - risk(minimum.point),
            largest=jnp.max(vertices(jnp.eye(K))),
            hessian=jax.hessian(F)(eta),
            slope=jax.grad(risk)(eta),
        )

    return jax.vmap(one)(stacked, steps, starts)


@partial(quick_jit, static_argnames="displacement_bounds")
def _limits(stacked, numbers, *, displacement_bounds):
    """The bounds of each problem, from its m, M, m_T, M_T and L_T."""

    def one(problem, numbers):
        _, eta, penalty, beta = problem
        envelope = curvature.Envelope(*numbers[:4], how="")
        return displacement_bounds(envelope, numbers[4], eta, penalty, beta=beta)

    return jax.vmap(one)(stacked, numbers)
