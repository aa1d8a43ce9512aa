"""Generators: closed-form derivatives, limits, and life as pytrees."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from pgeom import bregman_score, on_logits
from pgeom.generators import Combination, hyperbolic, quadratic, rescale, shannon, tsallis


def test_autodiff_equals_the_closed_forms(case, points, x64):
    F = case.make()
    derivatives = jax.jit(jax.vmap(lambda p: (F(p), jax.grad(F)(p), jax.hessian(F)(p))))
    value, gradient, hessian = derivatives(jnp.asarray(points))
    for actual, closed_form in ((value, case.value), (gradient, case.gradient)):
        expected = np.stack([closed_form(p) for p in points])
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)
    expected = np.stack([case.hessian(p) for p in points])
    np.testing.assert_allclose(hessian, expected, rtol=1e-10, atol=1e-10 * np.max(expected))


def test_tsallis_passes_through_shannon_and_brier(points, x64):
    values = jax.jit(lambda p, alpha: jax.vmap(tsallis(alpha))(p))
    p = jnp.asarray(points)
    np.testing.assert_allclose(values(p, 1.0), jax.vmap(shannon)(p), rtol=1e-12)
    for step in (1e-6, 1e-3, 9e-3):  # linear in the step: smooth through one
        above, below = values(p, 1 + step), values(p, 1 - step)
        np.testing.assert_allclose((above + below) / 2, values(p, 1.0), atol=30 * step**2)
        assert np.all(above > values(p, 1.0)) and np.all(values(p, 1.0) > below)
    np.testing.assert_allclose(values(p, 2.0), np.sum(points**2, axis=1) - 1, rtol=1e-12)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 3.0])
def test_tsallis_is_right_at_an_exact_vertex(alpha):
    F, e = tsallis(alpha), jnp.array([1.0, 0.0, 0.0])
    value, slope, hessian = jax.jit(lambda p: (F(p), jax.grad(F)(p), jax.hessian(F)(p)))(e)
    assert value == 0
    np.testing.assert_allclose(slope, [1.0, -1 / (alpha - 1), -1 / (alpha - 1)], rtol=1e-6)
    curvature = alpha if alpha == 2 else 0.0 if alpha > 2 else np.inf
    np.testing.assert_allclose(np.diag(hessian), [alpha, curvature, curvature])


def test_parameterised_generators_are_vmapped_over_seeds(hyperbolic_parameters):
    draws = np.random.default_rng(0)
    matrices = np.eye(4) + np.stack([m @ m.T for m in draws.normal(size=(3, 4, 4))])
    scales = np.array([0.5, 1.0, 2.0])
    p = jnp.array([0.1, 0.2, 0.3, 0.4])
    stacked = jax.vmap(quadratic)(jnp.asarray(matrices, jnp.float32))
    values = jax.jit(jax.vmap(lambda F: F(p)))(stacked)
    one_by_one = [0.5 * (p - 0.25) @ A @ (p - 0.25) for A in matrices.astype(np.float32)]
    np.testing.assert_allclose(values, one_by_one, rtol=1e-5)

    ridges = jax.vmap(lambda s: hyperbolic(**(hyperbolic_parameters | {"scale": s})))
    values = jax.jit(jax.vmap(lambda F: F(p)))(ridges(jnp.asarray(scales, jnp.float32)))
    np.testing.assert_allclose(values / values[1], scales, rtol=1e-5)


def test_mixed_second_derivatives_agree_in_both_orders(parameterised_case, x64):
    """∂²ℓ/∂θ∂z, for the parameters θ of each generator, and as a check by differences."""
    leaves, structure = jax.tree.flatten(parameterised_case.make())
    flat, unravel = ravel_pytree(leaves)
    z = jnp.array([0.3, -1.0, 0.8, 0.2])

    @jax.jit  # to be traced once, however often it is called
    def loss(theta, z):
        F = jax.tree.unflatten(structure, unravel(theta))
        return on_logits(bregman_score(F))(z, 2)

    direction = jnp.asarray(np.random.default_rng(1).normal(size=flat.shape))

    @jax.jit
    def derivatives(theta, z):
        first = jax.jacfwd(jax.grad(loss, 0), 1)(theta, z)
        second = jax.jacfwd(jax.grad(loss, 1), 0)(theta, z)
        slope = jnp.dot(jax.grad(loss)(theta, z), direction)
        nearby = theta[None] + jnp.outer(jnp.array([1e-6, -1e-6]), direction)
        return first, second, slope, jax.vmap(loss, (0, None))(nearby, z)

    first, second, slope, (ahead, behind) = derivatives(flat, z)
    np.testing.assert_allclose(first, second.T, rtol=1e-9, atol=1e-10)
    assert np.max(np.abs(first)) > 1e-3
    np.testing.assert_allclose(slope, (ahead - behind) / 2e-6, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["quadratic", "hyperbolic", "tsallis", "user"])
def test_rescaling_multiplies_the_values(name, hyperbolic_parameters):
    made = {
        "quadratic": lambda: quadratic(jnp.eye(4)),
        "hyperbolic": lambda: hyperbolic(**hyperbolic_parameters),
        "tsallis": lambda: tsallis(1.5),
        "user": lambda: lambda p: jnp.sum(p**3),
    }
    F, p = made[name](), jnp.array([0.1, 0.2, 0.3, 0.4])
    once = rescale(F, 3.0)
    twice = rescale(once, 0.5)
    np.testing.assert_allclose(once(p), 3 * F(p), rtol=1e-6)
    np.testing.assert_allclose(twice(p), 1.5 * F(p), rtol=1e-6)
    assert jax.tree.leaves(once), "a rescaled generator carries its factor as a parameter"
    assert type(once) is (type(F) if name in ("quadratic", "hyperbolic") else Combination)


def test_integer_parameters_are_numbers():
    whole = hyperbolic(lam=1, a=0.25, rho=0.5, w=[[1, 0], [0, 1]], b=0)
    exact = hyperbolic(lam=1.0, a=0.25, rho=0.5, w=jnp.eye(2), b=0.0)
    p = jnp.array([0.3, 0.7])
    assert whole(p) == exact(p)
    assert quadratic([[2, 0], [0, 2]])(p) == quadratic(2 * jnp.eye(2))(p)
