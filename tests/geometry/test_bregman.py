"""Divergences and scores: the paper's identities, in float64, for every generator."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom

LABELS = np.arange(20) % 4


def definition(case, q, p):
    return case.value(q) - case.value(p) - case.gradient(p) @ (q - p)


def test_the_divergence_is_its_definition_and_differentiates_in_both(case, points, x64):
    p, q = jnp.asarray(points), jnp.asarray(np.roll(points, 1, axis=0))
    divergence = pgeom.bregman_divergence(case.make())
    value, (in_q, in_p) = jax.jit(jax.vmap(jax.value_and_grad(divergence, (0, 1))))(q, p)
    expected = [definition(case, *pair) for pair in zip(q, p, strict=True)]
    np.testing.assert_allclose(value, expected, rtol=1e-8, atol=1e-10)
    assert np.all(value > 0)
    for i, (a, b) in enumerate(zip(np.asarray(q), np.asarray(p), strict=True)):
        slope = case.gradient(a) - case.gradient(b)
        np.testing.assert_allclose(in_q[i], slope, rtol=1e-8, atol=1e-8)
        hessian = case.hessian(b)
        size = np.max(np.abs(hessian))
        np.testing.assert_allclose(in_p[i], hessian @ (b - a), rtol=1e-10, atol=1e-10 * size)


def test_the_score_and_its_gradient(case, points, x64):
    score = pgeom.bregman_score(case.make())
    value, gradient = jax.jit(jax.vmap(jax.value_and_grad(score)))(jnp.asarray(points), LABELS)
    for i, (p, y) in enumerate(zip(points, LABELS, strict=True)):
        to_vertex = p - np.eye(4)[y]
        hessian = case.hessian(p)
        size = np.max(np.abs(hessian))
        np.testing.assert_allclose(gradient[i], hessian @ to_vertex, atol=1e-10 * size)
    near_vertex = (1 - 1e-12) * np.eye(4) + 1e-12 / 4  # where every closed form is finite
    expected = [definition(case, near_vertex[y], p) for p, y in zip(points, LABELS, strict=True)]
    np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)


def test_the_gradient_of_the_score_holds_on_the_boundary():
    """H(p)(p − e_y) at exact vertices, where softmax arrives by underflow."""
    for F in (pgeom.generators.squared_norm, lambda p: jnp.sum(p**2)):
        slope = jax.jit(jax.vmap(jax.grad(pgeom.bregman_score(F)), (0, None)))(jnp.eye(3), 1)
        np.testing.assert_allclose(slope, 2 * (np.eye(3) - np.eye(3)[1]), atol=1e-6)
    entropy = pgeom.on_logits(pgeom.bregman_score(lambda p: jnp.sum(p * jnp.log(p))))
    slope = jax.jit(jax.grad(entropy))(jnp.array([200.0, 0.0, 0.0]), 1)
    np.testing.assert_allclose(slope, [1.0, -1.0, 0.0], atol=1e-6)


def test_regret_is_the_divergence(case, points, x64):
    F = case.make()
    eta, p = jnp.asarray(points), jnp.asarray(np.roll(points, 3, axis=0))
    score = pgeom.bregman_score(F)
    parts = (pgeom.regret(score), pgeom.bregman_divergence(F), pgeom.conditional_risk(score))
    found, expected, risk = jax.jit(lambda eta, p: [f(eta, p) for f in parts])(eta, p)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)
    assert np.all(found > 0)
    per_label = jax.jit(jax.vmap(lambda y: score(p, jnp.full(len(p), y))))(jnp.arange(4))
    np.testing.assert_allclose(risk, np.sum(points * per_label.T, axis=1), rtol=1e-12)


def test_scores_differentiate_twice(case, points, x64):
    """The Hessian in logits is that of the definition, differentiated without our rules."""
    F = case.make()

    def plain(z, y):
        p = jax.nn.softmax(z)
        e = jnp.where(jnp.arange(4) == y, 1.0, 1e-300)
        return F(e) - F(p) - jnp.dot(jax.grad(F)(p), e - p)

    logits = jnp.asarray(np.log(points))
    loss = pgeom.on_logits(pgeom.bregman_score(F))
    both = jax.jit(jax.vmap(lambda z, y: (jax.hessian(loss)(z, y), jax.hessian(plain)(z, y))))
    found, expected = both(logits, LABELS)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_the_value_keeps_its_derivative_inside_other_derivatives():
    """The slope of the value that a gradient returns beside it is H(p)(p − e_y) too."""
    loss = pgeom.on_logits(pgeom.bregman_score(lambda p: jnp.sum(p**3)))
    z, direction = jnp.array([12.0, 0.0, -1.0]), jnp.array([0.3, 1.0, -0.2])
    both = jax.jit(lambda z, dot: jax.jvp(lambda z: jax.value_and_grad(loss)(z, 0), (z,), (dot,)))
    (_, gradient), (slope, _) = both(z, direction)
    np.testing.assert_allclose(slope, jnp.dot(gradient, direction), rtol=1e-5)


def test_a_closure_differentiates_in_what_it_closes_over(x64):
    z = jnp.array([0.3, -1.0, 0.8])

    def loss(weights):
        F = lambda p: jnp.sum(weights * p**3)  # noqa: E731
        return pgeom.on_logits(pgeom.bregman_score(F))(z, 0)

    weights = jnp.array([1.0, 2.0, 0.5])
    p = np.exp(z) / np.sum(np.exp(z))
    e = np.eye(3)[0]
    parts = (e - p) ** 2 * (e + 2 * p)  # e³ − p³ − 3p²(e − p)
    value, gradient = jax.jit(jax.value_and_grad(loss))(weights)
    np.testing.assert_allclose(value, np.sum(weights * parts), rtol=1e-12)
    np.testing.assert_allclose(gradient, parts, rtol=1e-12)
    each = jax.jit(jax.vmap(loss))(jnp.stack([weights, 2 * weights]))
    np.testing.assert_allclose(each, [value, 2 * value], rtol=1e-12)


def test_named_scores(points, x64):
    named = {
        "brier": (pgeom.generators.squared_norm, lambda p, y: np.sum((p - np.eye(4)[y]) ** 2)),
        "brier of order two": (
            pgeom.generators.tsallis(2.0),
            lambda p, y: np.sum((p - np.eye(4)[y]) ** 2),
        ),
        "logarithmic": (pgeom.generators.shannon, lambda p, y: -np.log(p[y])),
        "spherical": (pgeom.generators.spherical, lambda p, y: 1 - p[y] / np.linalg.norm(p)),
        "half": (
            pgeom.generators.tsallis(0.5),
            lambda p, y: np.sum(np.sqrt(p)) + 1 / np.sqrt(p[y]) - 2,
        ),
    }
    for F, formula in named.values():
        found = jax.jit(pgeom.bregman_score(F))(jnp.asarray(points), LABELS)
        expected = [formula(p, y) for p, y in zip(points, LABELS, strict=True)]
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_leading_dimensions_jit_and_vmap(case):
    p = jnp.asarray(np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 3)), jnp.float32)
    q, labels = jnp.roll(p, 1, axis=1), jnp.arange(6).reshape(2, 3) % 4
    divergence, score = pgeom.bregman_divergence(case.make()), pgeom.bregman_score(case.make())

    @jax.jit
    def batched_and_mapped(p, q, labels):
        mapped = jax.vmap(jax.vmap(lambda p, q, y: (divergence(q, p), score(p, y))))
        return (divergence(q, p), score(p, labels)), mapped(p, q, labels)

    for batched, mapped in zip(*batched_and_mapped(p, q, labels), strict=True):
        assert batched.shape == (2, 3)
        np.testing.assert_allclose(batched, mapped, rtol=1e-5, atol=1e-7)


def test_dtypes_come_back():
    score = pgeom.bregman_score(lambda p: jnp.sum(p**3))
    for dtype in (jnp.bfloat16, jnp.float16, jnp.float32):
        p = jnp.array([0.5, 0.25, 0.25], dtype)
        assert score(p, 0).dtype == dtype
        assert pgeom.bregman_divergence(lambda p: jnp.sum(p**2))(p, p[::-1]).dtype == dtype


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
def test_labels_of_any_integer_type(dtype):
    p = jnp.full((2, 300), 1 / 300)
    found = pgeom.bregman_score(pgeom.generators.squared_norm)(p, np.array([0, 100], dtype))
    np.testing.assert_allclose(found, 1 - 1 / 300, rtol=1e-5)
