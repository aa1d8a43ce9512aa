"""Divergences and scores: the paper's identities, in float64, for every generator."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom

LABELS = np.arange(20) % 4


class Found(NamedTuple):
    """What one program of a generator computed in float64: 20 pairs (q, p), labels for p."""

    divergence: jax.Array
    divergence_slopes: tuple[jax.Array, jax.Array]  # in q, in p
    divergence_batched: jax.Array
    score: jax.Array
    score_slope: jax.Array
    score_batched: jax.Array
    regret: jax.Array
    risk: jax.Array
    scores: jax.Array  # of every label, `[20, 4]`


@pytest.fixture(scope="module")
def pairs(points):
    """The pairs (q, p) of every test, `[20, 4]` each."""
    return np.roll(points, 1, axis=0), points


@pytest.fixture(scope="module")
def actual(case, pairs):
    """Everything about a generator, compiled at once."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, program(case.make())(*pairs, LABELS))


def program(F):
    # jitted, to be traced once for one shape however often it is called
    divergence, score = jax.jit(pgeom.bregman_divergence(F)), jax.jit(pgeom.bregman_score(F))
    risk, shape = pgeom.conditional_risk(score), (4, 5, 4)

    @jax.jit
    def everything(q, p, labels):
        every_label = jax.vmap(lambda p: score(jnp.broadcast_to(p, (4, 4)), jnp.arange(4)))
        return Found(
            *jax.vmap(jax.value_and_grad(divergence, (0, 1)))(q, p),
            divergence(q.reshape(shape), p.reshape(shape)),
            *jax.vmap(jax.value_and_grad(score))(p, labels),
            score(p.reshape(shape), labels.reshape(shape[:2])),
            pgeom.regret(score)(q, p),
            risk(q, p),
            every_label(p),
        )

    return everything


def definition(case, q, p):
    return case.value(q) - case.value(p) - case.gradient(p) @ (q - p)


def test_the_divergence_is_its_definition_and_differentiates_in_both(case, actual, pairs):
    expected = [definition(case, *pair) for pair in zip(*pairs, strict=True)]
    np.testing.assert_allclose(actual.divergence, expected, rtol=1e-8, atol=1e-10)
    assert np.all(actual.divergence > 0)
    slope_in_q, slope_in_p = actual.divergence_slopes
    for i, (q, p) in enumerate(zip(*pairs, strict=True)):
        slope = case.gradient(q) - case.gradient(p)
        np.testing.assert_allclose(slope_in_q[i], slope, rtol=1e-8, atol=1e-8)
        hessian = case.hessian(p)
        size = np.max(np.abs(hessian))
        np.testing.assert_allclose(slope_in_p[i], hessian @ (p - q), rtol=1e-10, atol=1e-10 * size)


def test_the_score_and_its_gradient(case, actual, points):
    for i, (p, y) in enumerate(zip(points, LABELS, strict=True)):
        to_vertex = p - np.eye(4)[y]
        hessian = case.hessian(p)
        size = np.max(np.abs(hessian))
        np.testing.assert_allclose(actual.score_slope[i], hessian @ to_vertex, atol=1e-10 * size)
    near_vertex = (1 - 1e-12) * np.eye(4) + 1e-12 / 4  # where every closed form is finite
    expected = [definition(case, near_vertex[y], p) for p, y in zip(points, LABELS, strict=True)]
    np.testing.assert_allclose(actual.score, expected, rtol=1e-4, atol=1e-5)


def test_regret_is_the_divergence(actual, pairs):
    np.testing.assert_allclose(actual.regret, actual.divergence, rtol=1e-9, atol=1e-10)
    assert np.all(actual.regret > 0)
    np.testing.assert_allclose(actual.risk, np.sum(pairs[0] * actual.scores, axis=1), rtol=1e-12)


def test_leading_dimensions_and_vmap_agree(actual):
    for batched, mapped in (
        (actual.divergence_batched, actual.divergence),
        (actual.score_batched, actual.score),
    ):
        assert batched.shape == (4, 5)
        np.testing.assert_allclose(batched.ravel(), mapped, rtol=1e-12, atol=1e-14)


def test_scores_differentiate_twice(case, points, x64):
    """The Hessian in logits is the slope of the closed form of the gradient, J(p)H(p)(p − e_y)."""

    def gradient(z, y):
        p = np.exp(z) / np.sum(np.exp(z))
        slope = case.hessian(p) @ (p - np.eye(4)[y])
        return p * (slope - p @ slope)

    def difference(z, y, k, step=4e-3):
        """∂/∂z_k by central differences of sixth order."""
        ahead = (gradient(z + m * step * np.eye(4)[k], y) for m in (1, -1, 2, -2, 3, -3))
        return np.dot([45, -45, -9, 9, 1, -1], np.stack([*ahead])) / (60 * step)

    logits = np.log(points)
    loss = pgeom.on_logits(pgeom.bregman_score(case.make()))
    actual = jax.jit(jax.vmap(jax.hessian(loss)))(logits, LABELS)
    expected = [[difference(*row, k) for k in range(4)] for row in zip(logits, LABELS, strict=True)]
    np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-9)


def test_the_gradient_of_the_score_holds_on_the_boundary():
    """H(p)(p − e_y) at exact vertices, where softmax arrives by underflow."""
    for F in (pgeom.generators.squared_norm, lambda p: jnp.sum(p**2)):
        slope = jax.jit(jax.vmap(jax.grad(pgeom.bregman_score(F)), (0, None)))(jnp.eye(3), 1)
        np.testing.assert_allclose(slope, 2 * (np.eye(3) - np.eye(3)[1]), atol=1e-6)
    entropy = pgeom.on_logits(pgeom.bregman_score(lambda p: jnp.sum(p * jnp.log(p))))
    slope = jax.jit(jax.grad(entropy))(jnp.array([200.0, 0.0, 0.0]), 1)
    np.testing.assert_allclose(slope, [1.0, -1.0, 0.0], atol=1e-6)


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
    scores = {name: pgeom.bregman_score(F) for name, (F, _) in named.items()}
    actual = jax.jit(lambda p, y: {name: score(p, y) for name, score in scores.items()})
    for name, values in actual(points, LABELS).items():
        expected = [named[name][1](p, y) for p, y in zip(points, LABELS, strict=True)]
        np.testing.assert_allclose(values, expected, rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
def test_labels_of_any_integer_type(dtype):
    p = jnp.full((2, 300), 1 / 300)
    actual = pgeom.bregman_score(pgeom.generators.squared_norm)(p, np.array([0, 100], dtype))
    np.testing.assert_allclose(actual, 1 - 1 / 300, rtol=1e-5)
