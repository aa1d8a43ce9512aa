"""The displaced target: where descents end, and the projection and bounds beside it."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.diagnosis.bounds import hessian_lipschitz
from pgeom.diagnosis.curvature import envelope
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


def nearest_in_cone(z, eta):
    """By brute force over which constraints are active."""
    zero = np.flatnonzero(eta == 0)
    best = None
    for size in range(len(zero) + 1):
        for cut in itertools.combinations(zero, size):
            kept = np.setdiff1d(np.arange(len(z)), cut)
            x = np.zeros_like(z)
            x[kept] = z[kept] - z[kept].mean()
            feasible = np.all(x[zero] >= -1e-12)
            if feasible and (best is None or np.sum((x - z) ** 2) < np.sum((best - z) ** 2)):
                best = x
    return best


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


def test_without_penalty_the_target_stays():
    eta, penalty = jnp.array([0.5, 0.3, 0.2]), Penalty(0.1, 0.2, 0.1)
    F = quadratic(jnp.diag(jnp.array([1.0, 2.0, 3.0])))
    actual = minimise(F, eta, penalty, beta=0.0, step=0.3, starts=jnp.eye(3))
    np.testing.assert_allclose(actual.ends, np.broadcast_to(eta, (3, 3)), atol=1e-12)


def test_a_certain_target_is_not_moved():
    """At a vertex the penalty pulls outwards only."""
    eta = jnp.eye(4)[1]
    F = quadratic(jnp.eye(4))
    bounds = displacement_bounds(envelope(F, 4), 0.0, eta, Penalty(0.1, 0.2, 0.1), beta=0.5)
    assert bounds.cone == 0
    assert bounds.linear > 0
    assert bounds.unique
