"""The displaced target: its bounds by formulas in NumPy, and where descents end."""

import math
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.diagnosis.bounds import hessian_lipschitz
from pgeom.diagnosis.curvature import Envelope, envelope
from pgeom.generators import hyperbolic, quadratic
from pgeom.paper.displacement import (
    Penalty,
    displacement_bounds,
    minimise,
    penalised_regret,
    project_cone,
    safe_step,
)

pytestmark = pytest.mark.usefixtures("x64")

# compiled whole: operation by operation they take ten times as long
minimise, displacement_bounds = jax.jit(minimise), jax.jit(displacement_bounds, static_argnums=0)

A = np.array([[1.0, 0.3, 0.0], [0.3, 2.0, -0.4], [0.0, -0.4, 5.0]])
PENALTY = Penalty(tau=0.15, kappa=0.25, nu=0.3)
BETA = 0.07
TARGETS = [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.0, 0.6, 0.4], [0.3, 0.7, 0.0]]


def margin_slope(p, y):
    """∇m_τ(p, y) = e_y − the softmax of p/τ over the other classes."""
    others = np.exp(p / PENALTY.tau) * (np.arange(3) != y)
    return np.eye(3)[y] - others / others.sum()


def penalty_slope(p, eta):
    """∇ρ(p) = −Σ_y η_y σ((κ − m_y)/ν) ∇m_y."""
    total = np.zeros(3)
    for y in range(3):
        others = np.delete(p, y) / PENALTY.tau
        m = p[y] - PENALTY.tau * np.log(np.sum(np.exp(others)))
        total -= eta[y] / (1 + np.exp((m - PENALTY.kappa) / PENALTY.nu)) * margin_slope(p, y)
    return total


def largest_penalty():
    """C_r: at a wrong vertex, where one competitor has probability one and the other zero."""
    m = -PENALTY.tau * np.log(np.exp(1 / PENALTY.tau) + 1)
    return PENALTY.nu * np.log1p(np.exp((PENALTY.kappa - m) / PENALTY.nu))


def nearest_in_cone(z, eta):
    """The projection of z on {x : Σx = 0, x_k ≥ 0 where η_k = 0}, by trying which x_k are zero."""
    zero, candidates = np.flatnonzero(eta == 0), []
    for size in range(len(zero) + 1):
        for cut in combinations(zero, size):
            kept = np.setdiff1d(np.arange(len(z)), cut)
            x = np.zeros_like(z)
            x[kept] = z[kept] - np.mean(z[kept])
            candidates += [x] if np.all(x[zero] >= -1e-12) else []
    return min(candidates, key=lambda x: np.sum((x - z) ** 2))


def tangent_extremes():
    """m_T and M_T of A from its restriction to e_1 − e_2 and e_1 + e_2 − 2e_3."""
    basis = np.array([[1, -1, 0], [1, 1, -2]]).T / np.sqrt([2, 6])
    (a, b), (_, d) = basis.T @ A @ basis
    middle, radius = (a + d) / 2, np.hypot((a - d) / 2, b)
    return middle - radius, middle + radius


@pytest.mark.parametrize("eta", TARGETS)
def test_every_bound_is_its_formula(eta):
    eta, limits = np.array(eta), envelope(quadratic(A), 3)
    m, (m_T, M_T) = np.linalg.eigvalsh(A)[0], tangent_extremes()
    assert m_T > 1.1 * m and 0.9 * np.linalg.eigvalsh(A)[-1] > M_T  # or they could be confused
    g = penalty_slope(eta, eta)
    actual = displacement_bounds(limits, 0.0, jnp.asarray(eta), PENALTY, beta=BETA)
    cone = BETA / m_T * np.linalg.norm(nearest_in_cone(-g, eta))
    rise = BETA * (1 / (2 * 0.3) + 1 / (2 * 0.15))
    expected = {
        "square_root": math.sqrt(2 * BETA * largest_penalty() / m),
        "linear": math.sqrt(2) * BETA / m,
        "cone": cone,
        "lower": BETA * np.linalg.norm(g - g.mean()) / (M_T + rise),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(actual, name), value, rtol=1e-6, err_msg=name)
    # one stationary point if the radius of the cone times the Lipschitz constant is below m_T
    for factor, unique in ((0.99, True), (1.01, False)):
        again = displacement_bounds(
            limits, factor * m_T / cone, jnp.asarray(eta), PENALTY, beta=BETA
        )
        assert bool(again.unique) is unique


def test_the_safe_step_is_its_formula():
    limits = Envelope(m=0.5, M=3.0, m_tangent=0.7, M_tangent=2.0, how="exact")
    actual = safe_step(limits, 0.9, PENALTY, beta=BETA)
    curvature = 3.0 + math.sqrt(2) * 0.9 + BETA * (1 / (2 * 0.3) + 1 / (2 * 0.15))
    np.testing.assert_allclose(actual, 1 / curvature, rtol=1e-12)


@pytest.mark.parametrize("eta", TARGETS)
def test_the_minimiser_is_stationary_and_within_its_bounds(eta):
    """A(p − η) + β∇ρ(p) is one number on the support of p and no less off it."""
    F, eta = quadratic(A), np.array(eta)
    limits = envelope(F, 3)
    step = safe_step(limits, 0.0, PENALTY, beta=BETA)
    minimum = minimise(F, jnp.asarray(eta), PENALTY, beta=BETA, step=step, starts=jnp.eye(3))
    p = np.asarray(minimum.point)
    slope = A @ (p - eta) + BETA * penalty_slope(p, eta)
    level = np.min(slope)
    np.testing.assert_allclose(slope[p > 1e-9], level, atol=1e-6)
    np.testing.assert_allclose(minimum.ends, np.broadcast_to(p, (3, 3)), atol=1e-10)
    bounds = displacement_bounds(limits, 0.0, jnp.asarray(eta), PENALTY, beta=BETA)
    moved = np.linalg.norm(p - eta)
    assert moved <= bounds.cone * (1 + 1e-9) <= bounds.linear
    assert moved <= bounds.square_root
    assert np.min(p) < 1e-9 or moved >= bounds.lower * (1 - 1e-9)


def test_descents_are_accelerated():
    """With a condition of 2000 on the tangent space, plain descents would be far from settled."""
    stiff, eta = np.diag([2000.0, 1.0, 1.0]), jnp.array([0.5, 0.25, 0.25])
    step = 1 / 2000.0
    minimum = minimise(quadratic(stiff), eta, PENALTY, beta=0.0, step=step, starts=jnp.eye(3))
    np.testing.assert_allclose(minimum.ends, np.broadcast_to(eta, (3, 3)), atol=1e-9)
    # a component along e_2 − e_3 shrinks by 1 − 1/2000 in a plain step
    assert 0.1 * (1 - step) ** 3000 > 0.02


@pytest.mark.parametrize("zeros", [(), (0,), (1, 3), (0, 1, 2, 3)])
def test_project_cone_is_nearest(zeros):
    rng = np.random.default_rng(0)
    eta = np.where(np.isin(np.arange(5), zeros), 0.0, 1.0 / (5 - len(zeros)))
    for z in rng.normal(size=(20, 5)):
        actual = project_cone(jnp.asarray(z), jnp.asarray(eta))
        np.testing.assert_allclose(actual, nearest_in_cone(z, eta), atol=1e-12)


def two_minima():
    """D_F(η, ·) + βρ has a local minimum at 0.78465 and the global one at 1."""
    w = np.array([[1.0, -1.0]]) / np.sqrt(2)
    F = hyperbolic(lam=0.01, a=1.0, rho=0.1, w=w, b=0.5 / np.sqrt(2))
    return F, jnp.array([0.75, 0.25]), Penalty(tau=0.1, kappa=0.0, nu=1.0), 0.25


def test_minimise_escapes_a_local_minimum_by_its_starts():
    F, eta, penalty, beta = two_minima()
    step = safe_step(envelope(F, 2), hessian_lipschitz(F, 2).paper, penalty, beta=beta)
    alone = minimise(F, eta, penalty, beta=beta, step=step, starts=eta[None])
    starts = jnp.concatenate([eta[None], jnp.eye(2)])
    several = minimise(F, eta, penalty, beta=beta, step=step, starts=starts)
    np.testing.assert_allclose(alone.point[0], 0.78465, atol=1e-5)
    np.testing.assert_allclose(several.point[0], 1.0, atol=1e-12)
    assert several.value < alone.value
    assert several.residual <= 1e-14


def test_minimise_agrees_with_a_grid():
    F, eta, penalty, beta = two_minima()
    x = jnp.linspace(0.0, 1.0, 20_001)
    grid = jnp.stack([x, 1 - x], axis=1)
    values = jax.jit(jax.vmap(lambda p: penalised_regret(F, p, eta, penalty, beta=beta)))(grid)
    step = safe_step(envelope(F, 2), hessian_lipschitz(F, 2).paper, penalty, beta=beta)
    actual = minimise(F, eta, penalty, beta=beta, step=step, starts=jnp.eye(2))
    assert actual.value <= jnp.min(values) + 1e-15


def test_a_certain_target_is_not_moved():
    """At a vertex the penalty pulls outwards only."""
    eta = jnp.eye(4)[1]
    F = quadratic(jnp.eye(4))
    bounds = displacement_bounds(envelope(F, 4), 0.0, eta, Penalty(0.1, 0.2, 0.1), beta=0.5)
    assert bounds.cone == 0
    assert bounds.linear > 0
    assert bounds.unique
