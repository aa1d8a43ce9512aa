"""Generators: limits, closed forms of a user's own, sums, multiples, and life as pytrees.

Values, gradients and Hessians of all of them are compared with mpmath in `test_scores.py`.
"""

from functools import cache

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import pgeom
from pgeom.generators import Combination

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


# the entropies ------------------------------------------------------------------------------------


def test_tsallis_passes_through_shannon_and_brier(x64):
    p = jnp.array([0.6, 0.3, 0.1])
    values, at_one = jax.jit(lambda alpha: G.tsallis(alpha)(p)), G.shannon(p)
    np.testing.assert_allclose(values(1.0), at_one, rtol=1e-12)
    for step in (1e-6, 1e-3, 9e-3):  # linear in the step: smooth through one
        above, below = values(1 + step), values(1 - step)
        np.testing.assert_allclose((above + below) / 2, at_one, atol=30 * step**2)
        assert above > at_one > below
    np.testing.assert_allclose(values(2.0), 0.46 - 1, rtol=1e-12)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 3.0])
def test_tsallis_is_right_at_an_exact_vertex(alpha):
    F, e = G.tsallis(alpha), jnp.array([1.0, 0.0, 0.0])
    value, slope, hessian = jax.jit(lambda p: (F(p), jax.grad(F)(p), jax.hessian(F)(p)))(e)
    assert value == 0
    np.testing.assert_allclose(slope, [1.0, -1 / (alpha - 1), -1 / (alpha - 1)], rtol=1e-6)
    curvature = alpha if alpha == 2 else 0.0 if alpha > 2 else np.inf
    np.testing.assert_allclose(np.diag(hessian), [alpha, curvature, curvature])


@pytest.mark.parametrize("alpha", [0.05, 0.9, 1.0, 1.001, 2.0, 3.0])
def test_the_order_of_a_tsallis_entropy_is_differentiated_at_the_boundary(alpha, x64):
    """A class of probability zero contributes nothing: (Σp^α − 1)/(α − 1) over the others."""

    def over_support(a):
        x = (1 - a) * np.log(2)  # Σp^α = 2^(1−α)
        return -np.log(2) * np.expm1(x) / x if x else -np.log(2)

    def F(a):
        return G.tsallis(a)(jnp.array([0.5, 0.5, 0.0]))

    slope = (over_support(alpha + 1e-5) - over_support(alpha - 1e-5)) / 2e-5
    forward, reverse = jax.jit(lambda a: (jax.jacfwd(F)(a), jax.grad(F)(a)))(alpha)
    np.testing.assert_allclose([forward, reverse], slope, rtol=1e-7)


# closed forms -------------------------------------------------------------------------------------


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
    for make in (pgeom.generator, lambda F: G.combine((1.0, F))):
        with pytest.raises(TypeError, match="must be a function F"):
            make(3.0)


class Lookalike:
    """A user's object, with attributes that mean something else to its author."""

    closed_forms = "of another library"

    def __call__(self, p):
        return jnp.sum(p**2)

    def divergence(self, q, p):
        return 77.0

    vertex_divergence = score_on_logits = rescaled = divergence


def test_attributes_of_a_users_object_are_its_own():
    close(everything(Lookalike()), known(square))
    doubled = G.rescale(Lookalike(), 2.0)
    np.testing.assert_allclose(loss(doubled)(Z, 0), 2 * known(square)["loss"][0], rtol=1e-6)


# sums and multiples -------------------------------------------------------------------------------


def test_sums_keep_the_closed_forms_of_their_parts():
    """At logits where p_y underflows, and −log p_y of a plain function with it."""
    logits = jnp.array([200.0, 0.0, -200.0])
    value, slope = jax.jit(jax.value_and_grad(loss(G.shannon + G.squared_norm)))(logits, 2)
    assert value == 400 + 2
    np.testing.assert_allclose(slope, [1.0, 0.0, -1.0], atol=1e-6)
    target = jnp.array([0.0, 0.5, 0.5])
    value = jax.jit(loss(2 * G.shannon + cubic))(logits, target)
    np.testing.assert_allclose(value, 2 * (200 + 400) / 2 + 3, rtol=1e-6)


@pytest.mark.parametrize("factor", [2, np.float64(2), np.int64(2), np.array(2.0), jnp.int32(2)])
def test_multiples_by_any_number_on_either_side(factor):
    expected = 2 * loss(G.shannon)(Z, 0)
    for F in (factor * G.shannon, G.shannon * factor, G.combine((factor, G.shannon))):
        np.testing.assert_allclose(loss(F)(Z, 0), expected, rtol=1e-6)
        np.testing.assert_allclose(F(P), 2 * G.shannon(P), rtol=1e-6)
    actual = jax.jit(lambda c: loss(c * G.shannon)(Z, 0))(factor)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_bad_factors_and_terms_are_refused():
    for factor in (-1, 0.0, jnp.float32(-2), np.nan, np.inf):
        for product in (lambda c: c * G.shannon, lambda c: G.shannon * c):
            with pytest.raises(ValueError, match="factor must be positive and finite"):
                product(factor)
    for factor in (np.ones(2), [1.0, 2.0], np.ones((1, 1))):
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
    assert isinstance(F, Combination)
    assert [float(c) for c in F.coefficients] == [2.0, 1.0, 1.0, 1.0]
    expected = 2 * G.shannon(P) + G.spherical(P) + cubic(P) + square(P)
    np.testing.assert_allclose(F(P), expected, rtol=1e-6)
    assert loss(G.combine((0.0, G.tsallis(0.5)), (1.0, F)))(Z, 0) == pytest.approx(
        float(loss(F)(Z, 0)), rel=1e-6
    )


RESCALED = [G.quadratic(A), G.hyperbolic(**RIDGES), G.tsallis(1.5), cubic]


@pytest.mark.parametrize("F", RESCALED, ids=["quadratic", "hyperbolic", "tsallis", "user"])
def test_rescaling_multiplies_and_the_papers_generators_stay_what_they_are(F):
    once = G.rescale(F, 3.0)
    assert type(once) is (type(F) if F in RESCALED[:2] else Combination)
    for factor, scaled in ((3, once), (1.5, G.rescale(once, 0.5))):
        np.testing.assert_allclose(scaled(P), factor * F(P), rtol=1e-6)
        np.testing.assert_allclose(loss(scaled)(Z, 0), factor * loss(F)(Z, 0), rtol=1e-6)
    assert jax.tree.leaves(once), "a rescaled generator carries its factor as a parameter"


# as pytrees ---------------------------------------------------------------------------------------


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


def test_parameterised_generators_are_vmapped_over_seeds():
    draws = np.random.default_rng(0).normal(size=(3, 3, 3))
    matrices = (np.eye(3) + np.stack([m @ m.T for m in draws])).astype(np.float32)
    values = jax.jit(jax.vmap(lambda A: G.quadratic(A)(P)))(jnp.asarray(matrices))
    one_by_one = [0.5 * (P - 1 / 3) @ A @ (P - 1 / 3) for A in matrices]
    np.testing.assert_allclose(values, one_by_one, rtol=1e-5)
    scales = jnp.array([0.5, 1.0, 2.0])
    values = jax.jit(jax.vmap(lambda s: G.hyperbolic(**RIDGES, scale=s)(P)))(scales)
    np.testing.assert_allclose(values / values[1], scales, rtol=1e-5)


@pytest.mark.parametrize(
    "make",
    [lambda: G.tsallis(0.5), lambda: G.quadratic(A), lambda: G.hyperbolic(**RIDGES)],
    ids=["tsallis", "quadratic", "hyperbolic"],
)
def test_mixed_second_derivatives_agree_in_both_orders(make, x64):
    """∂²ℓ/∂θ∂z, for the parameters θ of each generator, and as a check by differences."""
    leaves, structure = jax.tree.flatten(make())
    flat, unravel = ravel_pytree([jnp.asarray(leaf, float) for leaf in leaves])

    def of_parameters(theta, z):
        return loss(jax.tree.unflatten(structure, unravel(theta)))(z, 2)

    direction = jnp.asarray(np.random.default_rng(1).normal(size=flat.shape))

    @jax.jit
    def derivatives(theta, z):
        first = jax.jacfwd(jax.grad(of_parameters, 0), 1)(theta, z)
        second = jax.jacfwd(jax.grad(of_parameters, 1), 0)(theta, z)
        slope = jnp.dot(jax.grad(of_parameters)(theta, z), direction)
        nearby = theta[None] + jnp.outer(jnp.array([1e-6, -1e-6]), direction)
        return first, second, slope, jax.vmap(of_parameters, (0, None))(nearby, z)

    first, second, slope, (ahead, behind) = derivatives(flat, jnp.asarray(Z, float))
    np.testing.assert_allclose(first, second.T, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(slope, (ahead - behind) / 2e-6, rtol=1e-6)


def test_integer_parameters_are_numbers():
    whole = G.hyperbolic(lam=1, a=0.25, rho=0.5, w=[[1, 0], [0, 1]], b=0)
    exact = G.hyperbolic(lam=1.0, a=0.25, rho=0.5, w=jnp.eye(2), b=0.0)
    p = jnp.array([0.3, 0.7])
    assert whole(p) == exact(p)
    assert G.quadratic([[2, 0], [0, 2]])(p) == G.quadratic(2 * jnp.eye(2))(p)
