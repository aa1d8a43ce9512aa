"""Propriety as a test of the whole: the conditional risk is least at η, whatever the generator.

Families of generators are drawn at random, all of them strictly convex: a family that is not by
itself has `A_LITTLE` times the squared norm added. One program per family serves all its draws.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom import generators

DRAWS = 12  # of each family: over 200 generators in all
A_LITTLE = 0.05  # its curvature is 0.1: at a distance of 1e-5, 5e-12 of risk, far above rounding
RESOLUTION = 1e-5
STEPS = 60
OTHERS = 64  # points to compare η with, of each kind


class Family(NamedTuple):
    """Generators of one form.

    Attributes:
      K: the number of classes.
      draw: parameters of one generator, as a tuple of arrays, from a NumPy random generator.
      make: the generator with these parameters.
      smooth: whether it is differentiable twice, everywhere.
    """

    K: int
    draw: Callable
    make: Callable
    smooth: bool = True


def with_a_little(F):
    return lambda p: F(p) + A_LITTLE * jnp.sum(p**2)


def ridges(K, R=6):
    """Directions `[R, K]` of norm one, and offsets `[R]` that let the ridges cross the simplex."""

    def draw(rng):
        w = rng.normal(size=(R, K))
        w = w / np.linalg.norm(w, axis=1, keepdims=True)
        return w, w @ rng.dirichlet(np.ones(K))

    return draw


def definite(K):
    def draw(rng):
        root = rng.normal(size=(K, K))
        return (root @ root.T + A_LITTLE * np.eye(K),)

    return draw


def uniform(low, high, shape=()):
    return lambda rng: (rng.uniform(low, high, size=shape),)


def together(*draws):
    return lambda rng: tuple(part for draw in draws for part in draw(rng))


def log_cosh(v):
    return jnp.logaddexp(v, -v) - np.log(2)


def input_convex_network(w, b, mixing, c):
    def F(p):
        return jnp.sum(jax.nn.relu(jnp.dot(mixing, jax.nn.relu(jnp.dot(w, p) - b)) - c))

    return with_a_little(F)


def log_cosh_ridges(w, b, rho):
    return lambda p: 0.5 * jnp.sum(p**2) + rho**2 * jnp.sum(log_cosh((jnp.dot(w, p) - b) / rho))


FAMILIES = {
    "powers": Family(5, uniform(1.1, 8.0), lambda a: with_a_little(lambda p: jnp.sum(p**a))),
    "negated-powers": Family(4, uniform(0.05, 0.95), lambda a: lambda p: -jnp.sum(p**a)),
    "weighted-entropies": Family(
        3, uniform(0.2, 3.0, (3,)), lambda c: lambda p: jnp.sum(c * p * jnp.log(p))
    ),
    "weighted-squares": Family(4, uniform(0.2, 5.0, (4,)), lambda c: lambda p: jnp.sum(c * p**2)),
    "weighted-norms": Family(  # strictly convex on the simplex, which has no two points on a ray
        5, uniform(0.2, 5.0, (5,)), lambda c: lambda p: jnp.sqrt(jnp.sum(c * p**2))
    ),
    "quadratic-forms": Family(3, definite(3), lambda A: lambda p: 0.5 * jnp.dot(p, jnp.dot(A, p))),
    "log-sum-exp": Family(
        4, uniform(1.0, 50.0), lambda c: with_a_little(lambda p: jax.nn.logsumexp(c * p))
    ),
    "softplus-networks": Family(
        4,
        together(ridges(4), uniform(1.0, 20.0)),
        lambda w, b, c: with_a_little(lambda p: jnp.sum(jax.nn.softplus(c * (jnp.dot(w, p) - b)))),
    ),
    "log-cosh-ridges": Family(5, together(ridges(5), uniform(0.005, 0.25)), log_cosh_ridges),
    "tsallis": Family(5, uniform(0.05, 3.0), generators.tsallis),
    "quadratic": Family(4, definite(4), generators.quadratic),
    "hyperbolic": Family(
        4,
        together(ridges(4), uniform(0.02, 0.5), uniform(0.5, 2.0)),
        lambda w, b, rho, lam: generators.hyperbolic(lam=lam, a=0.5, rho=rho, w=w, b=b),
    ),
    "combined": Family(
        3,
        together(uniform(0.1, 2.0), uniform(0.1, 2.0), uniform(0.3, 2.5)),
        lambda c, d, alpha: generators.combine(
            (c, lambda p: jnp.sum(p**3)), (d, generators.tsallis(alpha))
        ),
    ),
    "thresholds": Family(
        3,
        uniform(0.05, 0.9, (3,)),
        lambda t: with_a_little(lambda p: jnp.sum(jax.nn.relu(p - t))),
        smooth=False,
    ),
    "relu-ridges": Family(
        4,
        ridges(4),
        lambda w, b: with_a_little(lambda p: jnp.sum(jax.nn.relu(jnp.dot(w, p) - b))),
        smooth=False,
    ),
    "greatest-of-planes": Family(
        5,
        ridges(5),
        lambda w, b: with_a_little(lambda p: jnp.max(jnp.dot(w, p) - b)),
        smooth=False,
    ),
    "input-convex-networks": Family(
        4,
        together(ridges(4), uniform(0.0, 1.0, (5, 6)), uniform(0.0, 1.0, (5,))),
        input_convex_network,
        smooth=False,
    ),
}


def parameters(name):
    """Stacked parameters of the draws, and an interior η `[K]` for each."""
    family, rng = FAMILIES[name], np.random.default_rng(sum(name.encode()))
    draws = zip(*(family.draw(rng) for _ in range(DRAWS)), strict=True)
    eta = rng.dirichlet(np.full(family.K, 2.0), size=DRAWS)
    return tuple(np.stack(part) for part in draws), 0.95 * eta + 0.05 / family.K


def competitors(eta, rng):
    """Points `[DRAWS, 3 · OTHERS, K]`: RESOLUTION away from η, around it, and anywhere."""
    K = eta.shape[1]
    directions = rng.normal(size=(DRAWS, OTHERS, K))
    directions -= directions.mean(axis=2, keepdims=True)
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    anywhere = rng.dirichlet(np.ones(K), size=(DRAWS, OTHERS))
    distances = RESOLUTION ** rng.uniform(size=(DRAWS, OTHERS, 1))  # from 1 down, evenly in logs
    near = eta[:, None] + RESOLUTION * directions
    around = near + distances * (anywhere - near)
    return np.concatenate([near, around, anywhere], axis=1)


def risks(score, eta, points):
    """The conditional risk at η, and at the points `[n, K]`."""
    targets = jnp.broadcast_to(eta, points.shape)
    return score(eta, eta), score(points, targets)


def descend(F, score, eta):
    """The minimiser of the risk in logits, from the uniform distribution.

    D_F(η, p) need not be convex in p, but it has only one stationary point: J H(p)(η − p) = 0
    means that (η − p)ᵀH(p)(η − p) = 0. The descent therefore only has to end, wherever the
    gradient of the score does: it is preconditioned by J H J, which is the Hessian of the risk at
    η and positive definite everywhere, and its steps are at most one.
    """

    def one(_, z):
        p = jax.nn.softmax(z)
        J = jnp.diag(p) - jnp.outer(p, p)
        gradient = jax.grad(lambda z: score(jax.nn.softmax(z), eta))(z)
        # A constant added to z changes nothing: ones make the matrix invertible.
        M = J @ jax.hessian(F)(p) @ J + jnp.ones_like(J)
        step = -jnp.linalg.solve(M, gradient)
        return z + step / jnp.maximum(1.0, jnp.max(jnp.abs(step)))

    return jax.nn.softmax(jax.lax.fori_loop(0, STEPS, one, jnp.zeros_like(eta)))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_conditional_risk_is_least_at_the_target(name, x64):
    family, (drawn, eta) = FAMILIES[name], parameters(name)
    points = competitors(eta, np.random.default_rng(1))

    @jax.jit
    @jax.vmap
    def program(drawn, eta, points):
        F = family.make(*drawn)
        score = pgeom.bregman_score(F)
        end = descend(F, score, eta) if family.smooth else eta
        return risks(score, eta, points), end

    (least, others), end = program(*jax.tree.map(jnp.asarray, (drawn, eta, points)))
    # Strictly, also at a distance of 1e-5: on a kink there is no gradient to follow, but values
    # tell the two apart.
    assert np.all(np.asarray(others) > np.asarray(least)[:, None])
    np.testing.assert_allclose(end, eta, rtol=0, atol=RESOLUTION)


def test_there_are_two_hundred_generators():
    assert DRAWS * len(FAMILIES) >= 200


def test_an_improper_score_is_found_out(x64):
    """The teeth: the error |p − e_y|₁ has its least risk at a vertex."""
    eta = parameters("powers")[1]
    points = competitors(eta, np.random.default_rng(1))

    def absolute(p, target):
        return 2 * jnp.sum(target * (1 - p), axis=-1)

    least, others = jax.vmap(lambda eta, points: risks(absolute, eta, points))(
        jnp.asarray(eta), jnp.asarray(points)
    )
    assert np.all(np.min(np.asarray(others), axis=1) < np.asarray(least))
