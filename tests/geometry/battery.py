"""Generators written as a user would and the library's own, each beside its fifty-digit reference.

A new generator is tested by adding a line to `CASES`. Parameters are float32 numbers, so that the
generator is the same function in float32, in float64 and in the reference.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import generators
from tests.geometry import reference
from tests.geometry.reference import Reference, weighted

K = 4  # of the generators with parameters


class Case(NamedTuple):
    """A generator under test.

    Attributes:
      make: builds the generator, in the test that asks for it.
      reference: the same in fifty digits.
      K: the number of classes.
      library: whether the library promises its digits near a vertex too.
      steepest: the lowest power of p on the way to its second derivative by autodiff, if negative.
    """

    make: Callable
    reference: Reference
    K: int = 5
    library: bool = False
    steepest: float = 0.0


def single(values):
    """Values rounded to float32, as float64 or as a Python float."""
    rounded = np.float32(values).astype(np.float64)
    return rounded if rounded.ndim else float(rounded)


DRAW = np.random.default_rng(17)


def symmetric(eigenvalues):
    """A random symmetric matrix `[K, K]` of these eigenvalues, rounded to float32."""
    basis, _ = np.linalg.qr(DRAW.normal(size=(K, K)))
    lower = np.tril(single(basis * eigenvalues @ basis.T))
    return lower + np.tril(lower, -1).T


A = symmetric(np.array([0.5, 1.0, 2.0, 4.0]))
ILL_CONDITIONED = symmetric(np.logspace(-6, 0, K))
COEFFICIENTS = single(DRAW.uniform(0.2, 5.0, size=K))
DIRECTIONS = DRAW.normal(size=(6, K))
DIRECTIONS = single(0.99 * DIRECTIONS / np.linalg.norm(DIRECTIONS, axis=1, keepdims=True))
# Each ridge crosses the way from the centre to the vertex that it tells most apart from the others,
# some of them close to the vertex.
CROSSINGS = np.array([0.9, 0.5, 0.95, 0.3, 0.8, 0.6])
CENTRES = DIRECTIONS.mean(axis=1)
FURTHEST = np.argmax(np.abs(DIRECTIONS - CENTRES[:, None]), axis=1)
OFFSETS = single((1 - CROSSINGS) * CENTRES + CROSSINGS * DIRECTIONS[np.arange(6), FURTHEST])
MIXING = single(DRAW.uniform(0.0, 1.0, size=(5, 6)))  # nonnegative: the network is convex
SKIP = single(DRAW.normal(size=(5, K)))
SECOND_OFFSETS = single((MIXING @ np.maximum(CENTRES - OFFSETS, 0)) + 0.1)
TENTH, THIRTY_PERCENT, NINE_TENTHS = (single(x) for x in (0.1, 0.3, 0.9))
SLOPE = 4.0  # of the softplus network, whose units bend over a quarter of the simplex


def affine(w, b, p):
    return jnp.dot(jnp.asarray(w, p.dtype), p) - jnp.asarray(b, p.dtype)


def cubic(p):
    return jnp.sum(p**3)


def relu_ridges(p):
    return TENTH * jnp.sum(p**2) + jnp.sum(jax.nn.relu(affine(DIRECTIONS, OFFSETS, p)))


def input_convex_network(p):
    hidden = jax.nn.relu(affine(DIRECTIONS, OFFSETS, p))
    second = jnp.dot(jnp.asarray(MIXING, p.dtype), hidden) + affine(SKIP, SECOND_OFFSETS, p)
    return TENTH * jnp.sum(p**2) + jnp.sum(jax.nn.relu(second))


def softplus_network(p):
    return jnp.sum(jax.nn.softplus(SLOPE * affine(DIRECTIONS, OFFSETS, p)))


def power(a):
    """−Σ p^a, as a user would write it; 0 < a < 1."""
    a = single(a)
    return Case(lambda: lambda p: -jnp.sum(p**a), reference.power(a), steepest=a - 2)


def log_sum_exp(c):
    return Case(lambda: lambda p: jax.nn.logsumexp(c * p), reference.log_sum_exp(c))


def log_cosh_ridge(rho, a=0.5):
    """½‖p‖² + a ρ² log cosh((w·p − b)/ρ), as a user would write it."""
    w, b, rho = DIRECTIONS[0], OFFSETS[0], single(rho)

    def F(p):
        v = affine(w, b, p) / rho
        return 0.5 * jnp.sum(p**2) + a * rho**2 * (jnp.logaddexp(v, -v) - math.log(2))

    ridge = reference.ridges(reference.log_cosh(rho), w[None], b[None])
    return Case(lambda: F, weighted((0.5, reference.power(2)), (a, ridge)), K=K)


def tsallis(alpha):
    alpha = single(alpha)
    steepest = min(alpha - 2, 0.0)
    return Case(
        lambda: generators.tsallis(alpha), reference.tsallis(alpha), library=True, steepest=steepest
    )


def hyperbolic(rho, lam=0.75, a=0.5, scale=1.25):
    rho = single(rho)
    square = reference.quadratic_form(lam * np.eye(K), centre=1 / K)
    ridges = reference.ridges(reference.log_cosh(rho), DIRECTIONS, OFFSETS)
    parameters = {"lam": lam, "a": a, "rho": rho, "w": DIRECTIONS, "b": OFFSETS, "scale": scale}
    return Case(
        lambda: generators.hyperbolic(**parameters),
        weighted((scale, square), (scale * a, ridges)),
        K=K,
        library=True,
    )


SQUARES = reference.power(2)
CAPM = reference.quadratic_form(A, centre=1 / K)

CASES = {
    "user-squares": Case(lambda: lambda p: jnp.sum(p**2), SQUARES),
    "user-cubic": Case(lambda: cubic, reference.power(3)),
    "user-quartic": Case(lambda: lambda p: jnp.sum(p**4), reference.power(4)),
    "user-p^30": Case(lambda: lambda p: jnp.sum(p**30), reference.power(30)),
    # Autodiff of p log p passes through p², in the denominator of the second derivative of log.
    "user-entropy": Case(
        lambda: lambda p: jnp.sum(p * jnp.log(p)), reference.entropy, steepest=-2.0
    ),
    **{f"user-power-{a}": power(a) for a in (0.1, 0.3, 0.5, 0.7, 0.9)},
    "user-spherical": Case(lambda: lambda p: jnp.sqrt(jnp.sum(p**2)), reference.spherical),
    **{f"user-log-sum-exp-{c}": log_sum_exp(float(c)) for c in (1, 10, 50)},
    "user-threshold": Case(
        lambda: lambda p: jnp.sum(p**2) + jax.nn.relu(p[0] - NINE_TENTHS),
        weighted((1, SQUARES), (1, reference.ridges(reference.relu, np.eye(5)[:1], [NINE_TENTHS]))),
    ),
    "user-relu-ridges": Case(
        lambda: relu_ridges,
        weighted((TENTH, SQUARES), (1, reference.ridges(reference.relu, DIRECTIONS, OFFSETS))),
        K=K,
    ),
    "user-input-convex-network": Case(
        lambda: input_convex_network,
        weighted(
            (TENTH, SQUARES),
            (
                1,
                reference.input_convex_network(DIRECTIONS, OFFSETS, MIXING, SKIP, SECOND_OFFSETS),
            ),
        ),
        K=K,
    ),
    "user-softplus-network": Case(
        lambda: softplus_network,
        reference.ridges(reference.softplus, SLOPE * DIRECTIONS, SLOPE * OFFSETS),
        K=K,
    ),
    **{f"user-log-cosh-{rho}": log_cosh_ridge(rho) for rho in (0.25, 0.02, 0.005, 0.001)},
    "user-ill-conditioned": Case(
        lambda: lambda p: 0.5 * jnp.dot(p, jnp.dot(jnp.asarray(ILL_CONDITIONED, p.dtype), p)),
        reference.quadratic_form(ILL_CONDITIONED),
        K=K,
    ),
    "user-weighted-squares": Case(
        lambda: lambda p: jnp.sum(jnp.asarray(COEFFICIENTS, p.dtype) * p**2),
        reference.power(2, COEFFICIENTS),
        K=K,
    ),
    **{f"tsallis-{x}": tsallis(x) for x in (0.05, 0.1, 0.3, 0.5, 0.7, 1, 1.5, 2, 2.5, 3)},
    "shannon": Case(lambda: generators.shannon, reference.entropy, library=True),
    "spherical": Case(lambda: generators.spherical, reference.spherical, library=True),
    "squared-norm": Case(lambda: generators.squared_norm, SQUARES, library=True),
    "quadratic": Case(lambda: generators.quadratic(A), CAPM, K=K, library=True),
    "hyperbolic-0.25": hyperbolic(0.25),
    "hyperbolic-0.02": hyperbolic(0.02),
    "2-shannon": Case(
        lambda: 2 * generators.shannon, weighted((2, reference.entropy)), library=True
    ),
    "shannon+squared-norm": Case(
        lambda: generators.shannon + generators.squared_norm,
        weighted((1, reference.entropy), (1, SQUARES)),
        library=True,
    ),
    "tsallis+quadratic": Case(
        lambda: 0.5 * generators.tsallis(0.5) + generators.quadratic(A),
        weighted((0.5, reference.tsallis(0.5)), (1, CAPM)),
        K=K,
        library=True,
        steepest=-1.5,
    ),
    "cubic+shannon": Case(
        lambda: generators.combine((THIRTY_PERCENT, cubic), (2.0, generators.shannon)),
        weighted((THIRTY_PERCENT, reference.power(3)), (2, reference.entropy)),
    ),
}
