"""One line per generator, with closed forms in NumPy float64: every battery covers them all."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import pgeom

K = 4
DRAW = np.random.default_rng(7)
ROOT = DRAW.normal(size=(K, K)) / 2
A = np.eye(K) + ROOT @ ROOT.T
W = DRAW.normal(size=(3, K))
W = 0.9 * W / np.linalg.norm(W, axis=1, keepdims=True)
RIDGES = {
    "lam": 0.7,
    "a": np.array([0.4, 0.3, 0.9]),
    "rho": np.array([0.3, 0.25, 0.6]),
    "b": W.mean(axis=1) + np.array([0.1, -0.05, 0.0]),
    "scale": 1.3,
}


class Case(NamedTuple):
    """A generator, and its value, gradient, Hessian and score at a point `[K]` away from zero."""

    make: object
    value: object
    gradient: object
    hessian: object


def ridge_arguments(p):
    return (W @ p - RIDGES["b"]) / RIDGES["rho"]


def hyperbolic_value(p):
    a, rho = RIDGES["a"], RIDGES["rho"]
    ridges = np.sum(a * rho**2 * np.log(np.cosh(ridge_arguments(p))))
    return RIDGES["scale"] * (RIDGES["lam"] / 2 * np.sum((p - 1 / K) ** 2) + ridges)


def hyperbolic_gradient(p):
    ridges = (RIDGES["a"] * RIDGES["rho"] * np.tanh(ridge_arguments(p))) @ W
    return RIDGES["scale"] * (RIDGES["lam"] * (p - 1 / K) + ridges)


def hyperbolic_hessian(p):
    weights = RIDGES["a"] / np.cosh(ridge_arguments(p)) ** 2
    return RIDGES["scale"] * (RIDGES["lam"] * np.eye(K) + W.T @ np.diag(weights) @ W)


def tsallis(alpha):
    return Case(
        lambda: pgeom.generators.tsallis(alpha),
        lambda p: (np.sum(p**alpha) - 1) / (alpha - 1),
        lambda p: (alpha * p ** (alpha - 1) - 1) / (alpha - 1),
        lambda p: np.diag(alpha * p ** (alpha - 2)),
    )


def spherical_hessian(p):
    norm = np.linalg.norm(p)
    return np.eye(K) / norm - np.outer(p, p) / norm**3


CASES = {
    "shannon": Case(
        lambda: pgeom.generators.shannon,
        lambda p: np.sum(p * np.log(p)),
        lambda p: np.log(p) + 1,
        lambda p: np.diag(1 / p),
    ),
    "tsallis-half": tsallis(0.5),
    "tsallis-2.5": tsallis(2.5),
    "spherical": Case(
        lambda: pgeom.generators.spherical,
        np.linalg.norm,
        lambda p: p / np.linalg.norm(p),
        spherical_hessian,
    ),
    "squared-norm": Case(
        lambda: pgeom.generators.squared_norm,
        lambda p: np.sum(p**2),
        lambda p: 2 * p,
        lambda p: 2 * np.eye(K),
    ),
    "quadratic": Case(
        lambda: pgeom.generators.quadratic(jnp.asarray(A)),
        lambda p: 0.5 * (p - 1 / K) @ A @ (p - 1 / K),
        lambda p: A @ (p - 1 / K),
        lambda p: A,
    ),
    "hyperbolic": Case(
        lambda: pgeom.generators.hyperbolic(w=jnp.asarray(W), **RIDGES),
        hyperbolic_value,
        hyperbolic_gradient,
        hyperbolic_hessian,
    ),
    "user-cubic": Case(
        lambda: lambda p: jnp.sum(p**3),
        lambda p: np.sum(p**3),
        lambda p: 3 * p**2,
        lambda p: np.diag(6 * p),
    ),
    "user-entropy": Case(
        lambda: lambda p: jnp.sum(p * jnp.log(p)),
        lambda p: np.sum(p * np.log(p)),
        lambda p: np.log(p) + 1,
        lambda p: np.diag(1 / p),
    ),
}


@pytest.fixture(scope="session", params=CASES)
def case(request):
    """Each generator in turn, with its closed forms."""
    return CASES[request.param]


@pytest.fixture(params=["tsallis-half", "quadratic", "hyperbolic"])
def parameterised_case(request):
    """Each generator with parameters in turn, with its closed forms."""
    return CASES[request.param]


@pytest.fixture
def hyperbolic_case():
    """The generator with ridges alone, with its closed forms."""
    return CASES["hyperbolic"]


@pytest.fixture
def hyperbolic_parameters():
    """The keyword arguments of the generator with ridges."""
    return {"w": W, **RIDGES}


@pytest.fixture(scope="session")
def points():
    """Points `[20, 4]` of the simplex, spread and crowded, none on the boundary."""
    draws = np.random.default_rng(3)
    spread = [draws.dirichlet(np.full(K, c), size=10) for c in (0.5, 3.0)]
    return 0.999 * np.concatenate(spread) + 0.001 / K
