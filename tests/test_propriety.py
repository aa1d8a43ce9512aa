"""Propriety as a test of the whole: the conditional risk is least at η, whatever the generator.

Families of generators are drawn at random, all of them strictly convex: a family that is not by
itself has `A_LITTLE` times the squared norm added. One program per family serves all its draws.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom import generators

pytestmark = pytest.mark.usefixtures("unchecked_module")

DRAWS, K = 12, 4
A_LITTLE = 0.05  # its curvature is 0.1: at a distance of 1e-5, 5e-12 of risk, far above rounding
RESOLUTION = 1e-5
OTHERS = 64  # points to compare η with, of each kind


def with_a_little(F):
    return lambda p: F(p) + A_LITTLE * jnp.sum(p**2)


def ridges(rng, R=6):
    """Directions `[R, K]` of norm one, and offsets `[R]` that let the ridges cross the simplex."""
    w = rng.normal(size=(R, K))
    w = w / np.linalg.norm(w, axis=1, keepdims=True)
    return w, w @ rng.dirichlet(np.ones(K))


def definite(rng):
    root = rng.normal(size=(K, K))
    return (root @ root.T + A_LITTLE * np.eye(K),)


def between(low, high, *shape):
    return lambda rng: (rng.uniform(low, high, size=shape),)


def together(*draws):
    return lambda rng: tuple(part for draw in draws for part in draw(rng))


def planes(w, b, p):
    return jnp.dot(w, p) - b


FAMILIES = {  # how to draw the parameters of a generator, and how to make it of them
    "powers": (between(1.1, 8.0), lambda a: with_a_little(lambda p: jnp.sum(p**a))),
    "negated powers": (between(0.05, 0.95), lambda a: lambda p: -jnp.sum(p**a)),
    "weighted entropies": (
        between(0.2, 3.0, K),
        lambda c: lambda p: jnp.sum(c * p * jnp.log(p)),
    ),
    "weighted norms": (  # strictly convex on the simplex, which has no two points on a ray
        between(0.2, 5.0, K),
        lambda c: lambda p: jnp.sqrt(jnp.sum(c * p**2)),
    ),
    "log-sum-exp": (
        between(1.0, 50.0),
        lambda c: with_a_little(lambda p: jax.nn.logsumexp(c * p)),
    ),
    "softplus networks": (
        together(ridges, between(1.0, 20.0)),
        lambda w, b, c: with_a_little(lambda p: jnp.sum(jax.nn.softplus(c * planes(w, b, p)))),
    ),
    "tsallis": (between(0.05, 3.0), generators.tsallis),
    "quadratic": (definite, generators.quadratic),
    "hyperbolic": (
        together(ridges, between(0.005, 0.5), between(0.5, 2.0)),
        lambda w, b, rho, lam: generators.hyperbolic(lam=lam, a=0.5, rho=rho, w=w, b=b),
    ),
    "combined": (
        together(between(0.1, 2.0), between(0.1, 2.0), between(0.3, 2.5)),
        lambda c, d, alpha: generators.combine(
            (c, lambda p: jnp.sum(p**3)), (d, generators.tsallis(alpha))
        ),
    ),
    "relu ridges": (
        ridges,
        lambda w, b: with_a_little(lambda p: jnp.sum(jax.nn.relu(planes(w, b, p)))),
    ),
    "greatest of planes": (
        ridges,
        lambda w, b: with_a_little(lambda p: jnp.max(planes(w, b, p))),
    ),
    "input convex networks": (
        together(ridges, between(0.0, 1.0, 5, 6)),
        lambda w, b, mixing: with_a_little(
            lambda p: jnp.sum(jax.nn.relu(mixing @ jax.nn.relu(planes(w, b, p)) - 0.5))
        ),
    ),
}


def competitors(rng):
    """An interior η for each draw, and points RESOLUTION away from it, around it and anywhere."""
    eta = 0.95 * rng.dirichlet(np.full(K, 2.0), size=DRAWS) + 0.05 / K
    directions = rng.normal(size=(DRAWS, OTHERS, K))
    directions -= directions.mean(axis=2, keepdims=True)
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    anywhere = rng.dirichlet(np.ones(K), size=(DRAWS, OTHERS))
    distances = RESOLUTION ** rng.uniform(size=(DRAWS, OTHERS, 1))  # from 1 down, evenly in logs
    near = eta[:, None] + RESOLUTION * directions
    return eta, np.concatenate([near, near + distances * (anywhere - near), anywhere], axis=1)


def risks(score, eta, points):
    """The conditional risk at η, and at the points `[n, K]`."""
    return score(eta, eta), score(points, jnp.broadcast_to(eta, points.shape))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_conditional_risk_is_least_at_the_target(name, x64):
    """Strictly, also at a distance of 1e-5, and on kinks, where there is no gradient to follow."""
    (draw, make), rng = FAMILIES[name], np.random.default_rng(sum(name.encode()))
    drawn = tuple(np.stack(part) for part in zip(*(draw(rng) for _ in range(DRAWS)), strict=True))
    program = jax.jit(jax.vmap(lambda drawn, *at: risks(pgeom.bregman_score(make(*drawn)), *at)))
    least, others = program(*jax.tree.map(jnp.asarray, (drawn, *competitors(rng))))
    assert np.all(np.asarray(others) > np.asarray(least)[:, None])


def test_an_improper_score_is_found_out(x64):
    """The teeth: the error |p − e_y|₁ has its least risk at a vertex."""

    def absolute(p, target):
        return 2 * jnp.sum(target * (1 - p), axis=-1)

    eta, points = competitors(np.random.default_rng(1))
    least, others = jax.vmap(lambda *at: risks(absolute, *at))(
        jnp.asarray(eta), jnp.asarray(points)
    )
    assert np.all(np.min(np.asarray(others), axis=1) < np.asarray(least))
