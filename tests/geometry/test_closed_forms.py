"""Closed forms are used where they are given, and only there; sums and multiples keep them."""

from functools import cache

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom

G = pgeom.generators
P, Q = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]], np.float32)
Z = np.array([0.3, -1.0, 0.8], np.float32)
LABELS = np.arange(3)
A = np.eye(3, dtype=np.float32) + 0.5
RIDGES = {"lam": 0.7, "a": 0.4, "rho": 0.3, "w": np.array([[0.6, -0.8, 0.0]]), "b": 0.1}


def square(p):
    return jnp.sum(p**2)


def cubic(p):
    return jnp.sum(p**3)


def loss(F):
    return pgeom.on_logits(pgeom.bregman_score(F))


def everything(F):
    """What a generator gives, by the closed form that it may come from."""
    score = pgeom.bregman_score(F)

    @jax.jit
    def program(p, q, z):
        each = jnp.broadcast_to(p, (3, 3)), jnp.broadcast_to(z, (3, 3))
        return {
            "divergence": pgeom.bregman_divergence(F)(q, p),
            "score": score(each[0], LABELS),
            "loss": loss(F)(each[1], LABELS),
            "expected score": score(p, q),
            "expected loss": loss(F)(z, q),
        }

    return jax.tree.map(np.asarray, program(P, Q, Z))


known = cache(everything)  # of the functions of this file


def close(actual, expected):
    chex.assert_trees_all_close(actual, expected, rtol=1e-6)


EXPECTED = ["expected score", "expected loss"]
WRONG = {  # a false form, and what it changes
    "divergence": (lambda q, p, d: 7 * jnp.sum(d**2), ["divergence", "score", "loss", *EXPECTED]),
    "vertex_divergence": (lambda label, p, d: 7 * jnp.sum(d**2), ["score", "loss"]),
    "score_on_logits": (lambda z, label: 7 * loss(square)(z, label), ["loss"]),
    "divergence_on_logits": (
        lambda q, z: 7 * jnp.sum((q - jax.nn.softmax(z)) ** 2),
        ["expected loss"],
    ),
    "vertex_values": (lambda K, dtype: jnp.full(K, 2, dtype), EXPECTED),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_given_form_is_used(name):
    """Seen by a form that is deliberately another's: seven times too large, or one too many."""
    true, (form, changed) = known(square), WRONG[name]
    gap = 1 - square(Q)  # Σ η_y F(e_y) − F(η), of an expected score

    def wrong(what):
        if name == "vertex_values":
            return true[what] + 1
        rest = gap if what.startswith("expected") else 0
        return 7 * (true[what] - rest) + rest

    expected = true | {what: wrong(what) for what in changed}
    F = pgeom.generator(square, **{name: form})
    close(everything(F), expected)
    other = known(cubic)
    close(everything(2 * F + cubic), {what: 2 * expected[what] + other[what] for what in expected})


def test_another_value_is_refused():
    with pytest.raises(AssertionError, match="score"):
        close(known(square) | {"score": known(cubic)["score"]}, known(square))


def test_a_given_form_is_differentiated_as_it_stands():
    F = pgeom.generator(square, divergence=lambda q, p, d: jnp.sum(p**4))
    slope = jax.grad(pgeom.bregman_divergence(F), 1)(Q, P)
    np.testing.assert_allclose(slope, 4 * P**3, rtol=1e-6)


def test_what_is_no_closed_form_is_refused(unchecked_annotations):
    known = "divergence, vertex_divergence, score_on_logits, divergence_on_logits, vertex_values"
    with pytest.raises(TypeError, match=f"must be one of {known}, got 'hessian'"):
        pgeom.generator(square, hessian=square)
    with pytest.raises(TypeError, match="vertex_values must be a function, got ndarray"):
        pgeom.generator(square, vertex_values=np.ones(3))
    for F in (3.0, None):
        with pytest.raises(TypeError, match="must be a function F"):
            pgeom.generator(F)
        with pytest.raises(TypeError, match="must be a function F"):
            G.combine((1.0, F))


class Lookalike:
    """A user's object, with attributes that mean something else to its author."""

    closed_forms = "of another library"
    vertex_values = 3

    def __call__(self, p):
        return jnp.sum(p**2)

    def divergence(self, q, p):
        return 77.0

    vertex_divergence = score_on_logits = divergence_on_logits = rescaled = divergence


def test_attributes_of_a_users_object_are_its_own():
    close(everything(Lookalike()), known(square))
    actual = pgeom.bregman_score(Lookalike())(jnp.array([0.6, 0.2, 0.2]), 0)
    np.testing.assert_allclose(actual, 0.24, rtol=1e-6)
    doubled = G.rescale(Lookalike(), 2.0)
    np.testing.assert_allclose(loss(doubled)(Z, 0), 2 * known(square)["loss"][0], rtol=1e-6)


def test_sums_keep_the_closed_forms_of_their_parts():
    """At logits where p_y underflows, and −log p_y of a plain function with it."""
    logits = jnp.array([200.0, 0.0, -200.0])
    value, slope = jax.jit(jax.value_and_grad(loss(G.shannon + G.squared_norm)))(logits, 2)
    assert value == 400 + 2
    np.testing.assert_allclose(slope, [1.0, 0.0, -1.0], atol=1e-6)
    assert loss(lambda p: G.shannon(p) + G.squared_norm(p))(logits, 2) < 100
    target = jnp.array([0.0, 0.5, 0.5])
    value = jax.jit(loss(2 * G.shannon + cubic))(logits, target)
    np.testing.assert_allclose(value, 2 * (200 + 400) / 2 + 3, rtol=1e-6)


FACTORS = {
    "int": 2,
    "float": 2.0,
    "float32": np.float32(2),
    "float64": np.float64(2),
    "int64": np.int64(2),
    "array": np.array(2.0),
    "jax": jnp.float32(2),
    "jax int": jnp.int32(2),
}


@pytest.mark.parametrize("kind", FACTORS)
def test_multiples_by_any_number_on_either_side(kind):
    factor, expected = FACTORS[kind], 2 * loss(G.shannon)(Z, 0)
    for F in (factor * G.shannon, G.shannon * factor, G.combine((factor, G.shannon))):
        np.testing.assert_allclose(loss(F)(Z, 0), expected, rtol=1e-6)
        np.testing.assert_allclose(F(P), 2 * G.shannon(P), rtol=1e-6)
    for traced in (lambda c: c * G.shannon, lambda c: G.shannon * c):
        actual = jax.jit(lambda c, traced=traced: loss(traced(c))(Z, 0))(factor)
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_bad_factors_and_terms_are_refused():
    for factor in (-1, 0, 0.0, np.float32(-2), jnp.float32(-2), np.nan, np.inf):
        for product in (lambda c: c * G.shannon, lambda c: G.shannon * c):
            with pytest.raises(ValueError, match="factor must be positive and finite"):
                product(factor)
    for factor in (np.ones(2), jnp.ones(2), [1.0, 2.0], np.ones((1, 1))):
        with pytest.raises(ValueError, match="factor must be a scalar, got shape"):
            factor * G.shannon
        with pytest.raises(ValueError, match="coefficient must be a scalar, got shape"):
            G.combine((factor, square))
    with pytest.raises(ValueError, match="coefficient must be nonnegative and finite, got -1"):
        G.combine((-1.0, square))
    with pytest.raises(ValueError, match="at least one pair"):
        G.combine()
    for wrong in (lambda: G.shannon + 1.0, lambda: 1.0 + G.shannon, lambda: G.shannon * G.shannon):
        with pytest.raises(TypeError, match="unsupported operand"):
            wrong()


def test_sums_of_sums_are_flat():
    F = 2 * (G.shannon + 0.5 * (G.spherical + cubic)) + square
    assert isinstance(F, type(G.combine((1.0, square))))
    assert [float(c) for c in F.coefficients] == [2.0, 1.0, 1.0, 1.0]
    expected = 2 * G.shannon(P) + G.spherical(P) + cubic(P) + square(P)
    np.testing.assert_allclose(F(P), expected, rtol=1e-6)
    parts = [(2.0, G.shannon), (1.0, G.spherical), (1.0, cubic), (1.0, square)]
    part_values = [(c, known(part)) for c, part in parts]
    sums = {what: sum(c * part[what] for c, part in part_values) for what in part_values[0][1]}
    close(everything(G.combine((0.0, G.tsallis(0.5)), (1.0, F))), sums)


def test_combinations_are_pytrees():
    """Mapped over a coefficient; the slope in it is the score of the part."""

    def value(c, alpha, z):
        return loss(c * G.tsallis(alpha) + pgeom.generator(cubic))(z, 1)

    part = jax.jit(lambda alpha, z: loss(G.tsallis(alpha))(z, 1))
    factors = jnp.array([0.5, 1.0, 3.0])
    mapped = jax.jit(jax.vmap(value, (0, None, None)))(factors, 1.5, Z)
    np.testing.assert_allclose(mapped, factors * part(1.5, Z) + loss(cubic)(Z, 1), rtol=1e-6)
    slope_in_c, slope_in_alpha = jax.jit(jax.grad(value, (0, 1)))(2.0, 1.5, Z)
    np.testing.assert_allclose(slope_in_c, part(1.5, Z), rtol=1e-6)
    np.testing.assert_allclose(slope_in_alpha, 2 * jax.grad(part)(1.5, Z), rtol=1e-6)

    F = jnp.float32(2) * G.tsallis(jnp.float32(1.5)) + pgeom.generator(
        cubic, vertex_values=jnp.ones
    )
    assert [float(leaf) for leaf in jax.tree.leaves(F)] == [2.0, 1.0, 1.5]
    argument = jax.jit(lambda F, z: loss(F)(z, 1))(F, Z)
    np.testing.assert_allclose(argument, value(2.0, 1.5, Z), rtol=1e-6)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), F, 2 * F)
    both = jax.jit(jax.vmap(lambda F: loss(F)(Z, 1)))(stacked)
    np.testing.assert_allclose(both, argument * np.array([1.0, 2.0]), rtol=1e-6)


def test_the_papers_generators_stay_what_they_are():
    for F in (G.quadratic(A), G.hyperbolic(**RIDGES)):
        for product in (3 * F, F * 3.0, np.float32(3) * F, G.rescale(F, 3)):
            assert type(product) is type(F)
            np.testing.assert_allclose(product(P), 3 * F(P), rtol=1e-6)
            np.testing.assert_allclose(loss(product)(Z, 0), 3 * loss(F)(Z, 0), rtol=1e-6)
